"""What is said about lost messages, wherever a latency stands that they do not enter. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.findings import CellFigures, Drops, LevelInfo, Loss, Standing
from netdyno.base import quantities
from netdyno.model.transports import TRANSPORTS

MARK = "!"
"""Beside a share of lost messages that is above the bound."""
MOST_TOLD = 6
"""Losses that are told one by one; all stand in the table."""


def named(standing: Standing) -> str:
    """A contestant as sentences name it: over a transport that may lose messages never without its loss."""
    if standing.loss is None:
        return standing.contestant
    return f"{standing.contestant} ({of_messages(standing.loss)})"


def of_messages(lost: float) -> str:
    """A share of lost messages, beside a name or a latency."""
    return f"{quantities.share(lost) if lost else 'none'} lost"


def largest(standing: Standing) -> str:
    """The loss as it stands beside a rank: the largest of any load."""
    return f"{quantities.share(standing.loss or 0.0)}{f' {MARK}' if standing.lossy else ''}"


def apart(standings: Sequence[Standing], bound: float) -> str:
    """The sentence about those that are ranked apart, with a space before it; nothing where there are none, or nobody
    else."""
    names = [named(one) for one in standings if one.lossy and not one.faults]
    if not names or not any(one.kind == 0 for one in standings):
        return ""
    lost = f"they lost more than {quantities.share(bound)} of the messages in some trial"
    return f" Ranked separately, as {lost}: {quantities.listed(names)}."


def evidence(
    standings: Sequence[Standing], cells: Sequence[CellFigures], levels: Sequence[LevelInfo]
) -> tuple[str, ...]:
    """How much each contestant lost, how else its messages went wrong, and where: at the load where it lost most."""
    labels = {level.key: level.label for level in levels}
    told: list[str] = []
    for standing in standings:
        imperfect = [
            (cell, cell.loss)
            for cell in cells
            if cell.contestant == standing.contestant and cell.loss is not None and _went_wrong(cell.loss)
        ]
        if imperfect:
            cell, loss = max(imperfect, key=lambda one: one[1].lost.value)
            told.append(f"At {labels[cell.level]}, {cell.contestant}: {shares(loss)}. {where(loss)}".rstrip())
    if len(told) > MOST_TOLD:
        return (*told[:MOST_TOLD], f"{len(told) - MOST_TOLD} more contestants lost messages; the table has all.")
    return tuple(told)


def _went_wrong(loss: Loss) -> bool:
    return bool(loss.messages or loss.late or loss.duplicated or loss.reordered)


def shares(loss: Loss) -> str:
    """All that went wrong, each with its share."""
    each = {
        "lost": loss.lost.value,
        "late": loss.late,
        "duplicated": loss.duplicated,
        "reordered": loss.reordered,
    }
    return ", ".join(f"{name} {quantities.share(value)}" for name, value in each.items())


def where(loss: Loss) -> str:
    """Where messages were lost, as a sentence; nothing where none were."""
    if not loss.messages:
        return ""
    found = places(loss.drops)
    unexplained = loss.messages - _explained(loss.drops)
    if not found:
        return "Where they were lost is unknown: no drop was counted."
    rest = (
        f"; the other {unexplained:,.0f} of {loss.messages:,} lost messages were counted nowhere"
        if unexplained >= 1
        else ""
    )
    each = (
        f" (each request costs {loss.drops.recipients:,.0f} messages)"
        if _requests(loss.drops) and _fans_out(loss.drops)
        else ""
    )
    return f"Dropped: {'; '.join(found)}{each}{rest}."


def _fans_out(drops: Drops) -> bool:
    return drops.recipients > 1


def places(drops: Drops) -> list[str]:
    """Each place where something was dropped, the side whose request or answer is lost first with the server."""
    told = (
        (drops.generator, "{:,} datagrams at the generator's sockets, whose buffers were full"),
        (drops.unsent, "{:,} messages by the server, which could not send them"),
        (drops.elsewhere, "{:,} datagrams at other sockets"),
        (drops.unserved, "{:,} requests by the server, which had too many waiting"),
        (drops.server, "{:,} datagrams at the server's sockets, whose buffers were full"),
    )
    return [text.format(count) for count, text in told if count]


def _requests(drops: Drops) -> int:
    """Those that no recipient can have, as the server did not serve them."""
    return (drops.server or 0) + (drops.unserved or 0)


def _explained(drops: Drops) -> float:
    """How many messages the counted drops cost: a request that is not served is lost to all its recipients."""
    return _requests(drops) * drops.recipients + sum(
        count or 0 for count in (drops.generator, drops.unsent, drops.elsewhere)
    )


def caveats(cells: Sequence[CellFigures], bound: float) -> tuple[str, ...]:
    """What a reader must know of latencies beside which messages were lost."""
    if not any(cell.loss is not None for cell in cells):
        return ()
    marked = sum(trial.above for cell in cells if cell.loss for trial in cell.loss.trials)
    carriers = quantities.listed([name for name, one in TRANSPORTS.items() if one.messages])
    text = (
        f"Over {carriers} messages may be lost. Latencies are those of the messages that arrived, so loss makes them "
        "look better; the share lost in the whole trial is shown beside each."
    )
    if not marked:
        return (text,)
    trials = f"{quantities.plural(marked, 'trial')} {'is' if marked == 1 else 'are'}"
    return (text, f"{trials} marked in every figure: more than {quantities.share(bound)} of the messages lost.")
