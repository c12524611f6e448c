"""The text about lost messages, shown beside every latency, because latencies leave them out. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.cells import CellFigures, Drops, LevelInfo, Loss
from netdyno.analysis.found.ranking import Standing
from netdyno.kit import quantities
from netdyno.model.transports import TRANSPORTS

MARK = "!"
"""The mark of a share of lost messages above the bound."""
MOST_NAMED = 6
"""The most losses that are listed one by one; the table has all."""
KINDS = ("lost", "late", "duplicated", "reordered")
"""The metrics that count faulty messages."""


def name_with_loss(standing: Standing) -> str:
    """Name a contestant in a sentence: over a transport that may lose messages, always with its loss."""
    if standing.loss is None:
        return standing.contestant
    return f"{standing.contestant} ({format_lost_share(standing.loss)})"


def format_lost_share(lost: float) -> str:
    """A share of lost messages, beside a name or a latency."""
    return f"{quantities.share(lost) if lost else 'none'} lost"


def format_largest(standing: Standing) -> str:
    """The loss shown beside a rank: the largest of any load."""
    return f"{quantities.share(standing.loss or 0.0)}{f' {MARK}' if standing.lossy else ''}"


def name_separately_ranked(standings: Sequence[Standing], bound: float) -> str:
    """The sentence about contestants ranked separately for loss, with a leading space; empty where there are none, or
    no others."""
    names = [name_with_loss(standing) for standing in standings if standing.lossy and not standing.faults]
    if not names or not any(standing.kind == 0 for standing in standings):
        return ""
    lost = f"they lost more than {quantities.share(bound)} of the messages in some trial"
    return f" Ranked separately, as {lost}: {quantities.listed(names)}."


def list_evidence(
    standings: Sequence[Standing], cells: Sequence[CellFigures], levels: Sequence[LevelInfo]
) -> tuple[str, ...]:
    """Say how much each contestant lost, its other faulty messages, and where: at the load where it lost most."""
    labels = {level.key: level.label for level in levels}
    texts: list[str] = []
    for standing in standings:
        imperfect = [
            (cell, cell.loss)
            for cell in cells
            if cell.contestant == standing.contestant and cell.loss is not None
            if any(cell.value(kind) > 0 for kind in KINDS)
        ]
        if imperfect:
            cell, loss = max(imperfect, key=lambda cell_and_loss: cell_and_loss[0].value("lost"))
            texts.append(
                f"At {labels[cell.level]}, {cell.contestant}: {list_shares(cell)}. {describe_drops(loss)}".rstrip()
            )
    if len(texts) > MOST_NAMED:
        return (*texts[:MOST_NAMED], f"{len(texts) - MOST_NAMED} more contestants lost messages; the table has all.")
    return tuple(texts)


def list_shares(cell: CellFigures) -> str:
    """List each kind of faulty message with its share."""
    return ", ".join(f"{kind} {quantities.share(cell.value(kind))}" for kind in KINDS)


def describe_drops(loss: Loss) -> str:
    """Say where messages were lost, as a sentence; empty where none were."""
    if not loss.messages:
        return ""
    dropped = list_places(loss.drops)
    unexplained = loss.messages - _count_explained_messages(loss.drops)
    if not dropped:
        return "Where they were lost is unknown: no drop was counted."
    rest = (
        f"; the other {unexplained:,.0f} of {loss.messages:,} lost messages were counted nowhere"
        if unexplained >= 1
        else ""
    )
    cost = (
        f" (each request costs {loss.drops.recipients:,.0f} messages)"
        if _count_unserved_requests(loss.drops) and loss.drops.recipients > 1
        else ""
    )
    return f"Dropped: {'; '.join(dropped)}{cost}{rest}."


def list_places(drops: Drops) -> list[str]:
    """List each place where something was dropped, with the count: first lost answers, then lost requests."""
    texts = (
        (drops.generator, "{:,} datagrams at the generator's sockets, whose buffers were full"),
        (drops.unsent, "{:,} messages by the server, which could not send them"),
        (drops.elsewhere, "{:,} datagrams at other sockets"),
        (drops.unserved, "{:,} requests by the server, which had too many waiting"),
        (drops.server, "{:,} datagrams at the server's sockets, whose buffers were full"),
    )
    return [text.format(count) for count, text in texts if count]


def _count_unserved_requests(drops: Drops) -> int:
    """The requests that reach no recipient, as the server did not serve them."""
    return (drops.server or 0) + (drops.unserved or 0)


def _count_explained_messages(drops: Drops) -> float:
    """The messages that the counted drops cost: a request that is not served is lost to all its recipients."""
    return _count_unserved_requests(drops) * drops.recipients + sum(
        count or 0 for count in (drops.generator, drops.unsent, drops.elsewhere)
    )


def list_caveats(cells: Sequence[CellFigures], bound: float) -> tuple[str, ...]:
    """All that a reader must know of latencies beside which messages were lost."""
    if not any(cell.loss is not None for cell in cells):
        return ()
    marked = sum(trial.above for cell in cells if cell.loss for trial in cell.loss.trials)
    carriers = quantities.listed([name for name, transport in TRANSPORTS.items() if transport.messages])
    text = (
        f"Over {carriers} messages may be lost. Latencies are those of the messages that arrived, so loss makes them "
        "look better; the share lost in the whole trial is shown beside each."
    )
    if not marked:
        return (text,)
    trials = f"{quantities.plural(marked, 'trial')} {'is' if marked == 1 else 'are'}"
    return (text, f"{trials} marked in every figure: more than {quantities.share(bound)} of the messages lost.")
