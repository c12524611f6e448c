"""A verdict on a claim in words: its comparisons, why there is none, and what goes beside it. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from netdyno.base import quantities
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT, Cells
from netdyno.model.levels import level_words
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import (
    Check,
    GeneratorAtLimit,
    Judged,
    Lacking,
    Limit,
    NotCounted,
    NotOffered,
    NotPlanned,
    OnlyOne,
    Refused,
    SingleLevel,
    Skipped,
    Step,
    TooFewCores,
    Verdict,
)
from netdyno.present.prose import loss
from netdyno.statistics.block_counts import FEWEST_BLOCKS, MANY_BLOCKS

Speak = Callable[[float], str]
Scenarios = Mapping[str, str]
"""By the name of a scenario what it is called beside others; empty where there are none."""

MINUS = "\N{MINUS SIGN}"
LIMITS: Mapping[Limit | None, str] = {None: "", "at_least": "at least ", "at_most": "at most "}
MOST_SIDES = 6
"""Sides of a claim that the sentence of what was counted beside it tells one by one."""
SCENARIO = "scenario"
"""What may be left out like a coordinate."""


# --- why there is no verdict -----------------------------------------------------------------------------------------


def reason(one: Judged) -> str:
    """Why there is no verdict; empty where there is one."""
    if one.lacking is not None:
        return lacking(one.lacking)
    if one.verdict != "undecided":
        return ""
    first, *others = one.open_checks
    more = f"; and {len(others)} more {'is' if len(others) == 1 else 'are'} open" if others else ""
    return f"{what(first, one.scenarios)}: {why_open(first, len(one.checks))}{more}"


def lacking(missing: Lacking) -> str:
    """What the claim needs and the run did not have."""
    match missing:
        case NotOffered(beyond):
            return not_offered(beyond)
        case TooFewCores(needed, cores, of_server, to):
            who = " for the server" if of_server else ""
            were = "was" if cores == 1 else "were"
            found = "how many there were was not recorded" if cores is None else f"there {were} {cores}"
            return f"{_needs(to)} {quantities.plural(needed, 'core')}{who}, and {found}"
        case OnlyOne(need, to):
            return f"{_needs(to)} a {need}, and this run had only one"
        case Refused(contestants):
            names = quantities.listed(list(contestants))
            is_what = " or ".join(sorted(set(contestants.values())))
            return f"{names} {'is' if len(contestants) == 1 else 'are'} {is_what} and in no claim"
        case SingleLevel(along):
            return f"this run has only one level of {along!r} there"
        case NotPlanned(contestant):
            return f"this run planned no such trial of {contestant or 'any contestant'}"
        case Skipped(contestant, why):
            return f"{contestant} was skipped: {why}"
        case GeneratorAtLimit(contestant):
            where = f"with {contestant} " if contestant else ""
            return f"{where}the generator was at its limit there, so its figures are bounds, which do not decide it"
        case NotCounted(name, why):
            return f"the code of {name} was not counted{'' if why is None else f': {why}'}"


def _needs(to: Verdict | None) -> str:
    return {None: "it needs", "confirm": "to be confirmed it needs", "refute": "to be refuted it needs"}[to]


def why_open(check: Check, comparisons: int) -> str:
    """Why one of so many comparisons of a claim is open; empty where it is not."""
    match check.why_open:
        case None:
            return ""
        case "no_figures":
            return "no block has a figure for everything it compares"
        case "zero":
            return f"a {METRICS[check.step.metric].title} of 0 has no ratio"
        case "few_blocks":
            return f"too few blocks: {check.blocks}, and a verdict needs {FEWEST_BLOCKS}"
        case "unproven":
            p = quantities.p_value(check.p_corrected)
            return f"it fails, but this is not proven among {comparisons} comparisons ({p} corrected); {_enough(check)}"
        case "near":
            p = quantities.p_value(check.p)
            return f"{shown(check)} is not proven different from the threshold ({p}); {_enough(check)}"
        case "bound":
            return f"{shown(check)} is a bound, which does not decide it" if check.figures else "both sides are bounds"
        case "need":
            return f"{shown(check)} decides nothing on this machine"


def _enough(check: Check) -> str:
    """How many blocks would decide it."""
    if check.blocks_to_decide is None:
        return f"as it stands, {quantities.plural(MANY_BLOCKS, 'block')} would not decide it"
    return f"as it stands, {quantities.plural(check.blocks_to_decide, 'block')} would decide it"


# --- cells -----------------------------------------------------------------------------------------------------------


def cells(selection: Cells, scenarios: Scenarios, leave_out: Collection[str] = ()) -> str:
    """The cells as people say them: "folly-async at threads 1, 100 connections"."""
    names = quantities.listed([str(name) for name in selection.at.get(CONTESTANT, ())])
    factors = {name: values for name, values in selection.at.items() if name not in {CONTESTANT, *leave_out}}
    where = [_levels(name, values) for name, values in factors.items()]
    if scenarios and SCENARIO not in leave_out:
        where.insert(0, f"in {scenarios[selection.scenario]}")
    if CONTESTANT not in selection.at or CONTESTANT in leave_out:
        return ", ".join(where) or "all cells"
    return f"{names}, {', '.join(where)}" if where else names


def shared(selections: Collection[Cells]) -> set[str]:
    """What all of these selections have in common, and need not be said of each; of one alone, nothing."""
    first, *others = selections
    if not others:
        return set()
    same = {name for name, values in first.at.items() if all(one.at.get(name) == values for one in others)}
    return same | ({SCENARIO} if all(one.scenario == first.scenario for one in others) else set())


def _levels(name: str, values: tuple[type_level, ...]) -> str:
    """One level, or several with the factor said once."""
    plain = [str(value) for value in values]
    first, last = level_words(name, values[0]), level_words(name, values[-1])
    if first.endswith(plain[0]):  # "backlog 10 or 42", and else "10 or 42 connections"
        return " or ".join([first, *plain[1:]])
    return " or ".join([*plain[:-1], last])


# --- comparisons -----------------------------------------------------------------------------------------------------


def what(check: Check, scenarios: Scenarios) -> str:
    """The comparison without its outcome."""
    return f"{_compared(check, scenarios)}{_divided(check.step, scenarios)}"


def _divided(step: Step, scenarios: Scenarios) -> str:
    """What each side is divided by, where it is."""
    if step.over is None:
        return ""
    base = step.over[0]
    other = {name: values for name, values in base.at.items() if step.a.at.get(name) != values}
    moved = scenarios if base.scenario != step.a.scenario else {}
    how = "of " if CONTESTANT in other else "" if moved else "at "  # "in rpc"
    relation = "less" if step.subtracts else "divided by"
    return f", each {relation} that {how}{cells(Cells(scenario=base.scenario, at=other), moved)}"


def _compared(check: Check, scenarios: Scenarios) -> str:
    step, paired = check.step, check.paired_by
    title = METRICS[step.metric].title
    metric = f"{title} of" if CONTESTANT in step.a.at else title  # "throughput in rpc", of whomever
    if step.b is None:
        return f"{metric} {cells(step.a, scenarios)}"
    if step.a.scenario != step.b.scenario or not paired:
        said_already = {SCENARIO} if step.a.scenario == step.b.scenario else set()
        return f"{metric} {cells(step.a, scenarios)} against {cells(step.b, scenarios, said_already)}"
    return f"{metric} {cells(step.a, scenarios)} against {_difference(step.b, paired)}"


def _difference(one: Cells, shared: Collection[str]) -> str:
    names = [str(name) for name in one.at.get(CONTESTANT, ()) if CONTESTANT not in shared]
    levels = [_levels(name, values) for name, values in one.at.items() if name not in {CONTESTANT, *shared}]
    return ", ".join([*([quantities.listed(names)] if names else []), *levels])


def claimed(step: Step) -> str:
    """What the effect was to be."""
    if step.b is None or step.subtracts:
        return f"{step.side} {_speak(step)(step.threshold)}"
    if METRICS[step.metric].scale == "ratio":
        return f"{step.side} {quantities.TIMES}{step.threshold:.3g}"
    return f"{step.side} {100 * step.threshold:.3g} points"


def shown(check: Check) -> str:
    """The effect with its interval; of a bound with the loss beside it."""
    if not check.figures:
        return quantities.DASH
    step, interval = check.step, check.interval
    speak = _speak(step)
    lost = _loss_beside(check.losses[0]) if step.b is None else ""
    limit = LIMITS[check.limit]
    if interval is None:
        return f"{limit}{speak(check.effect)}{lost}"
    short = f", short of the published {speak(step.least_published)}" if step.least_published else ""
    short = short if check.is_short_of_published else ""
    return f"{limit}{speak(check.effect)} [{speak(interval.low)}, {speak(interval.high)}]{lost}{short}"


def figures(check: Check) -> tuple[str, ...]:
    """The metric on each side, a latency with its loss; where it is divided by another, how many times that; where
    another is subtracted, the difference."""
    step = check.step
    speak = _times if step.over is not None and not step.subtracts else _signed(step)
    return tuple(
        f"{speak(figure)}{_loss_beside(lost)}" for figure, lost in zip(check.figures, check.losses, strict=True)
    )


def _loss_beside(lost: float | None) -> str:
    return "" if lost is None else f" ({loss.of_messages(lost)})"


def _speak(step: Step) -> Speak:
    """How the effect of a comparison is said."""
    if step.b is None or step.subtracts:
        return _signed(step)
    return _times if METRICS[step.metric].scale == "ratio" else _points


def _signed(step: Step) -> Speak:
    """The metric's own unit; a difference may be below 0."""
    speak = METRICS[step.metric].speak
    return lambda value: f"{MINUS}{speak(-value)}" if value < 0 else speak(value)


def _times(ratio: float) -> str:
    return f"{quantities.TIMES}{quantities.three_digits(ratio)}"


def _points(difference: float) -> str:
    """A difference of shares, in points of a percent."""
    return f"{quantities.three_digits(100 * difference)} points"


# --- what goes with a verdict ----------------------------------------------------------------------------------------


def beside(one: Judged) -> str:
    """What was counted on each side, by its name; a side without trials is left out. Empty where there is none. That
    one is the cause of the other is for the reader to judge."""
    if one.beside is None:
        return ""
    metric, sides = METRICS[one.beside.metric], one.beside.sides[:MOST_SIDES]
    same = shared([side.cells for side in sides]) if sides else set()
    each = [
        f"{'not recorded' if side.figure is None else metric.speak(side.figure)} "
        f"({cells(side.cells, one.scenarios, same)})"
        for side in sides
        if side.trials
    ]
    return f"{metric.title[0].upper()}{metric.title[1:]}: {', '.join(each)}." if each else ""


def not_offered(beyond: Sequence[Cells]) -> str:
    """Where the generator was at its limit, by the levels in all of these cells."""
    levels: dict[str, dict[type_level, None]] = {}
    for selection in beyond:
        for name, values in selection.at.items():
            if name != CONTESTANT:
                levels.setdefault(name, {}).update(dict.fromkeys(values))
    where = ", ".join(_levels(name, tuple(values)) for name, values in levels.items())
    return f"the generator could not offer the rate{f' at {where}' if where else ''}"


def left_out(one: Judged) -> str:
    """What the verdict says nothing of; empty where that is nothing."""
    return f"left out: {not_offered(one.left_out.cells)}" if one.left_out is not None else ""


def measured_on(one: Judged) -> str:
    """Which systems the sentence is about, and which one the verdict; empty where the claim does not say."""
    system = f"Linux ({one.system})" if one.system else "Linux"
    where = one.claim.published_on
    return f"published for {where}; this verdict is about {system}" if where else ""


def losses(one: Judged) -> tuple[str, ...]:
    """How many messages each contestant lost. None at all is said, too: the reader must not have to guess."""
    return tuple(
        f"{name} lost up to {quantities.share(lost)} of its messages in a trial, and latencies leave those out"
        if lost
        else f"{name} lost none of its messages"
        for name, lost in one.losses.items()
    )
