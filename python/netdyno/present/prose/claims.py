"""A verdict on a claim in words: its comparisons, why there is none, and what is shown beside it. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from netdyno.kit import quantities
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS, MANY_BLOCKS
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT, Cells
from netdyno.model.levels import level_words, place
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import (
    ClaimComparison,
    ComparisonResult,
    GeneratorAtLimit,
    JudgedClaim,
    Lacking,
    Limit,
    NotCounted,
    NotOffered,
    NotPlanned,
    OnlyOne,
    Refused,
    SettledVerdict,
    SeveralHosts,
    SingleLevel,
    Skipped,
    TooFewCores,
)
from netdyno.present.prose import loss

Speak = Callable[[float], str]
Scenarios = Mapping[str, str]
"""The displayed name of each scenario, by its name; empty where there is only one scenario."""

LIMITS: Mapping[Limit | None, str] = {None: "", "at_least": "at least ", "at_most": "at most "}
MOST_SIDES = 6
"""The most sides of a claim that the sentence of what was counted beside it lists one by one."""
SCENARIO = "scenario"
"""The scenario, among the names of coordinates that are left out."""


# --- why there is no verdict -----------------------------------------------------------------------------------------


def explain_no_verdict(judged: JudgedClaim) -> str:
    """Say why there is no verdict; empty where there is one."""
    if judged.lacking is not None:
        return describe_lack(judged.lacking)
    if judged.verdict != "undecided":
        return ""
    first, *further = judged.open_checks
    more = f"; and {len(further)} more {'is' if len(further) == 1 else 'are'} open" if further else ""
    return f"{describe_comparison(first, judged.scenarios)}: {explain_open(first, len(judged.checks))}{more}"


def describe_lack(missing: Lacking) -> str:
    """Say what the claim needs and the run did not have."""
    match missing:
        case NotOffered(beyond):
            return describe_generator_limit(beyond)
        case TooFewCores(needed, cores, of_server, verdict):
            owner = " for the server" if of_server else ""
            were = "was" if cores == 1 else "were"
            available = "their number was not recorded" if cores is None else f"there {were} {cores}"
            return f"{_describe_need(verdict)} {quantities.plural(needed, 'core')}{owner}, and {available}"
        case OnlyOne(need, verdict):
            return f"{_describe_need(verdict)} a {need}, and this run had only one"
        case SeveralHosts(verdict):
            return f"{_describe_need(verdict)} one host, and this run had several"
        case Refused(contestants):
            names = quantities.listed(list(contestants))
            kinds = " or ".join(sorted(set(contestants.values())))
            return f"{names} {'is' if len(contestants) == 1 else 'are'} {kinds} and in no claim"
        case SingleLevel(along):
            return f"this run has only one level of {along!r} there"
        case NotPlanned(contestant, cells):
            levels = describe_cells(cells, {}, {CONTESTANT})
            at_levels = f" at {levels}" if cells.at.keys() - {CONTESTANT} else ""
            return f"this run has no trial of {contestant or 'any contestant'} in {cells.scenario!r}{at_levels}"
        case Skipped(contestant, why):
            return f"{contestant} was skipped: {why}"
        case GeneratorAtLimit(contestant):
            where = f"with {contestant} " if contestant else ""
            return f"{where}the generator was at its limit there, and bounds give no verdict here"
        case NotCounted(name, why):
            return f"the code of {name} was not counted{'' if why is None else f': {why}'}"


def _describe_need(verdict: SettledVerdict | None) -> str:
    return {None: "it needs", "confirm": "to be confirmed it needs", "refute": "to be refuted it needs"}[verdict]


def explain_open(check: ComparisonResult, comparisons: int) -> str:
    """Say why a check is open; empty where it is not. `comparisons`: the number of the claim's checks."""
    match check.why_open:
        case None:
            return ""
        case "no_figures":
            return "no block has all the figures to compare"
        case "zero":
            return f"a {METRICS[check.step.metric].title} of 0 has no ratio"
        case "few_blocks":
            return f"too few blocks: {check.blocks}, and a verdict needs {FEWEST_BLOCKS}"
        case "unproven":
            p_value = quantities.p_value(check.p_corrected)
            return (
                f"a failure is not proven among {comparisons} comparisons ({p_value} corrected); "
                f"{_describe_blocks_needed(check)}"
            )
        case "near":
            p_value = quantities.p_value(check.p)
            return (
                f"{format_effect(check)} is not proven different from the threshold ({p_value}); "
                f"{_describe_blocks_needed(check)}"
            )
        case "bound":
            return (
                f"{format_effect(check)} is a bound that gives no verdict" if check.figures else "both sides are bounds"
            )
        case "need":
            return f"{format_effect(check)} gives no verdict on this machine"


def _describe_blocks_needed(check: ComparisonResult) -> str:
    """Say how many blocks would give a verdict."""
    if check.blocks_to_decide is None:
        return f"if these figures hold, even {quantities.plural(MANY_BLOCKS, 'block')} would give no verdict"
    return f"if these figures hold, {quantities.plural(check.blocks_to_decide, 'block')} would give a verdict"


# --- cells -----------------------------------------------------------------------------------------------------------


def describe_cells(selection: Cells, scenarios: Scenarios, leave_out: Collection[str] = ()) -> str:
    """Describe the cells as people say them: "folly-async at threads 1, 100 connections"."""
    names = quantities.listed([str(name) for name in selection.at.get(CONTESTANT, ())])
    factors = {name: values for name, values in selection.at.items() if name not in {CONTESTANT, *leave_out}}
    where = [_list_levels(name, values) for name, values in factors.items()]
    if scenarios and SCENARIO not in leave_out:
        where.insert(0, f"in {scenarios[selection.scenario]}")
    if CONTESTANT not in selection.at or CONTESTANT in leave_out:
        return ", ".join(where) or "all cells"
    return f"{names}, {', '.join(where)}" if where else names


def find_shared(selections: Collection[Cells]) -> set[str]:
    """Return what all of these selections have in common; of a single one, nothing."""
    first, *rest = selections
    if not rest:
        return set()
    same = {name for name, values in first.at.items() if all(selection.at.get(name) == values for selection in rest)}
    return same | ({SCENARIO} if all(selection.scenario == first.scenario for selection in rest) else set())


def _list_levels(name: str, values: tuple[type_level, ...]) -> str:
    """List one level, or several with the factor named once."""
    plain = [str(value) for value in values]
    first, last = level_words(name, values[0]), level_words(name, values[-1])
    # "backlog 10 or 42", and else "10 or 42 connections"
    words = [first, *plain[1:]] if first.endswith(plain[0]) else [*plain[:-1], last]
    return quantities.listed(words, "or")


# --- comparisons -----------------------------------------------------------------------------------------------------


def describe_comparison(check: ComparisonResult, scenarios: Scenarios) -> str:
    """Describe the comparison without its outcome."""
    return f"{_describe_sides(check, scenarios)}{_describe_divisor(check.step, scenarios)}"


def _describe_divisor(step: ClaimComparison, scenarios: Scenarios) -> str:
    """Say what each side is divided by, or what is subtracted, if anything."""
    if step.over is None:
        return ""
    base = step.over[0]
    moved_levels = {name: values for name, values in base.at.items() if step.a.at.get(name) != values}
    named_scenarios = scenarios if base.scenario != step.a.scenario else {}
    preposition = "of " if CONTESTANT in moved_levels else "" if named_scenarios else "at "  # "in rpc"
    relation = "less" if step.subtracts else "divided by"
    return (
        f", each {relation} that {preposition}"
        f"{describe_cells(Cells(scenario=base.scenario, at=moved_levels), named_scenarios)}"
    )


def _describe_sides(check: ComparisonResult, scenarios: Scenarios) -> str:
    step, paired = check.step, check.paired_by
    title = METRICS[step.metric].title
    metric = f"{title} of" if CONTESTANT in step.a.at else title  # "throughput in rpc", of any contestant
    if step.b is None:
        return f"{metric} {describe_cells(step.a, scenarios)}"
    if step.a.scenario != step.b.scenario or not paired:
        omitted = {SCENARIO} if step.a.scenario == step.b.scenario else set()
        return f"{metric} {describe_cells(step.a, scenarios)} against {describe_cells(step.b, scenarios, omitted)}"
    return f"{metric} {describe_cells(step.a, scenarios)} against {_describe_difference(step.b, paired)}"


def _describe_difference(selection: Cells, shared: Collection[str]) -> str:
    names = [str(name) for name in selection.at.get(CONTESTANT, ()) if CONTESTANT not in shared]
    levels = [_list_levels(name, values) for name, values in selection.at.items() if name not in {CONTESTANT, *shared}]
    return ", ".join([*([quantities.listed(names)] if names else []), *levels])


def format_claimed_effect(step: ClaimComparison) -> str:
    """The claimed effect."""
    if step.b is None or step.subtracts:
        return f"{step.side} {_choose_format(step)(step.threshold)}"
    if METRICS[step.metric].scale == "ratio":
        return f"{step.side} {quantities.TIMES}{step.threshold:.3g}"
    return f"{step.side} {100 * step.threshold:.3g} points"


def format_effect(check: ComparisonResult) -> str:
    """The effect with its interval; of a bound with the loss beside it."""
    if not check.figures:
        return quantities.DASH
    step, interval = check.step, check.interval
    speak = _choose_format(step)
    lost = _format_loss(check.losses[0]) if step.b is None else ""
    limit = LIMITS[check.limit]
    if interval is None:
        return f"{limit}{speak(check.effect)}{lost}"
    short = f", short of the published {speak(step.least_published)}" if step.least_published else ""
    short = short if check.is_short_of_published else ""
    return f"{limit}{speak(check.effect)} [{speak(interval.low)}, {speak(interval.high)}]{lost}{short}"


MEANS = "means of the trials"
"""The figures of a claim: a table's figure is over all trials together, and its peak memory the largest."""


def list_figures(check: ComparisonResult) -> tuple[str, ...]:
    """The metric on each side, a latency with its loss; where it is divided by another, the ratio; where another is
    subtracted, the difference."""
    step = check.step
    speak = _format_ratio if step.over is not None and not step.subtracts else _make_signed_format(step)
    return tuple(
        f"{speak(figure)}{_format_loss(lost)}" for figure, lost in zip(check.figures, check.losses, strict=True)
    )


def _format_loss(lost: float | None) -> str:
    return "" if lost is None else f" ({loss.format_lost_share(lost)})"


def _choose_format(step: ClaimComparison) -> Speak:
    """Choose the format of a comparison's effect."""
    if step.b is None or step.subtracts:
        return _make_signed_format(step)
    return _format_ratio if METRICS[step.metric].scale == "ratio" else _format_points


def _make_signed_format(step: ClaimComparison) -> Speak:
    """The metric's own unit; a difference may be below 0."""
    speak = METRICS[step.metric].speak
    return lambda value: f"{quantities.MINUS}{speak(-value)}" if value < 0 else speak(value)


def _format_ratio(ratio: float) -> str:
    return f"{quantities.TIMES}{quantities.three_digits(ratio)}"


def _format_points(difference: float) -> str:
    """A difference of shares, in points of a percent."""
    return f"{quantities.three_digits(100 * difference)} points"


# --- what goes with a verdict ----------------------------------------------------------------------------------------


def describe_counts(judged: JudgedClaim) -> str:
    """Say what was counted on each side; a side without trials is left out. Empty where there is none. Whether the
    count is the cause of the verdict is for the reader to judge."""
    if judged.counts is None:
        return ""
    metric, sides = METRICS[judged.counts.metric], judged.counts.sides[:MOST_SIDES]
    same = find_shared([side.cells for side in sides]) if sides else set()
    counts = [
        f"{'not recorded' if side.figure is None else metric.speak(side.figure)} "
        f"({describe_cells(side.cells, judged.scenarios, same)})"
        for side in sides
        if side.trials
    ]
    return f"{metric.heading}: {', '.join(counts)}." if counts else ""


def describe_generator_limit(beyond: Sequence[Cells]) -> str:
    """Say where the generator was at its limit, by the levels in all of these cells."""
    levels: dict[str, dict[type_level, None]] = {}
    for selection in beyond:
        for name, values in selection.at.items():
            if name != CONTESTANT:
                levels.setdefault(name, {}).update(dict.fromkeys(values))
    where = ", ".join(
        _list_levels(name, tuple(sorted(values, key=lambda level: place(level) or 0.0)))
        for name, values in levels.items()
    )
    return f"the generator could not offer the rate{f' at {where}' if where else ''}"


def name_left_out(judged: JudgedClaim) -> str:
    """Name the cells that the verdict leaves out; empty where there are none."""
    return f"left out: {describe_generator_limit(judged.left_out.cells)}" if judged.left_out is not None else ""


def name_systems(judged: JudgedClaim) -> str:
    """Name the system of the claim and that of the verdict; empty where the claim does not say."""
    system = f"Linux ({judged.system})" if judged.system else "Linux"
    published_on = judged.claim.published_on
    return f"published for {published_on}; this verdict is about {system}" if published_on else ""


def name_difference(judged: JudgedClaim) -> str:
    """Say what is measured otherwise than in the source; empty where the claim says nothing of it."""
    return f"differs from the source: {judged.claim.differs}" if judged.claim.differs else ""


def describe_losses(judged: JudgedClaim) -> tuple[str, ...]:
    """Say how many messages each contestant lost; also that it lost none, so that the reader need not guess."""
    return tuple(
        f"{name} lost up to {quantities.share(lost)} of its messages in a trial, and latencies leave those out"
        if lost
        else f"{name} lost none of its messages"
        for name, lost in judged.losses.items()
    )
