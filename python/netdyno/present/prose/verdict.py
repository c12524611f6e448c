"""The answer to a scenario in words: a headline, one sentence, and its evidence. The terminal and the report say the
same. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from netdyno.analysis.found.cells import BoundDirection, CellFigures
from netdyno.analysis.found.notices import Company
from netdyno.analysis.found.ranking import AxisRatio, Decision, Pair, RankingVerdict
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.ranking.answers import find_comparison
from netdyno.kit import quantities
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import Comparison
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS
from netdyno.present.prose import (
    capacity,
    company,
    faults,
    flips,
    ground,
    knobs,
    loads,
    loss,
    ranking,
    unranked,
    unread,
)
from netdyno.present.prose.exclusions import STATUS_WORDS

BOUND_SIGNS: dict[BoundDirection, str] = {"": "", "at least": "≥", "at most": "≤"}
"""The sign before a figure that is a bound."""
BADGES: Mapping[RankingVerdict, str] = {
    "not_enough_blocks": "Not enough blocks",
    "unopposed": "Nothing to compare",
    "no_data": "No valid trial",
    "not_ranked": unread.HEADLINE,
    "flip": "Where the winner changes",
}
"""The badge of a verdict that recommends none."""
UNKNOWN = "an unknown factor"
"""The bound of a difference where the blocks leave none."""
MOST_IN_BADGE = 5
"""The most names in a badge; the sentence has all that are recommended."""
MOST_RIVALS = 2
"""The most rivals that the sentence about more blocks names."""
MOST_COSTS = 3
"""The most axes that a sentence names for a contestant; the table has all."""
WHAT_HOLDS = (
    "A difference is stated only where its interval excludes 0%. In a scenario, all intervals of the ranked metric "
    "hold together with 95% confidence, and so do those of the other axes, and the one-sided bounds against the best "
    '("equal within", "behind the best"). In simulations of equal servers, at most '
    "5.5% of scenarios state a difference in the ranked metric and 5.1% on another axis. With one server slow in one "
    "trial of ten: 5.7% and 6.5%."
)
"""The sentences at the foot of table and report (docs/adr/statistics.md)."""


class AnswerText(msgspec.Struct, frozen=True):
    """`short` says which to take, `rest` what the others cost and which are ranked separately."""

    headline: str
    short: str
    rest: str

    @property
    def sentence(self) -> str:
        return f"{self.short}{self.rest}"


def answer(findings: ScenarioFindings) -> AnswerText:
    result = _answer_search(findings) or _answer_flips(findings) or _answer_verdict(findings)
    of_knobs = "".join(f" {text}" for text in knobs.describe_knobs(findings))
    return AnswerText(result.headline, result.short, result.rest + of_knobs + unranked.name_left_out(findings.unsafe))


def _answer_search(findings: ScenarioFindings) -> AnswerText | None:
    """A search for a capacity has one contestant, and an answer of its own."""
    if findings.capacity is None or findings.capacity.search is None:
        return None
    return AnswerText(_answer_verdict(findings).headline, capacity.describe_search(findings.capacity), "")


def _answer_flips(findings: ScenarioFindings) -> AnswerText | None:
    """Return the levels between which the winner changes: the answer of a scenario with levels chosen for that."""
    if not findings.flips:
        return None
    headline = quantities.listed(list(dict.fromkeys(flips.summarise_flip(flip) for flip in findings.flips)))
    rest = loss.name_separately_ranked(findings.standings, findings.loss_bound) + faults.name_separately_ranked(
        findings.faulty
    )
    return AnswerText(headline, " ".join(f"{flips.describe_flip(flip)}." for flip in findings.flips), rest)


def _answer_verdict(findings: ScenarioFindings) -> AnswerText:
    if findings.verdict == "not_ranked":
        return AnswerText(unread.HEADLINE, unread.WHY_NOT_RANKED, faults.name_separately_ranked(findings.faulty))
    if findings.verdict == "no_data":
        headline, nothing = "No valid trial", "No trial of this workload was valid, so there is no answer."
        if findings.without_figure:
            headline = "No figure"
            nothing = (
                f"No valid trial has a figure for {METRICS[findings.scenario.metric].title}, so there is no answer."
            )
        return AnswerText(headline, nothing, faults.name_separately_ranked(findings.faulty))
    answers = [
        (decision, _answer_decision(Speech(findings, decision)))
        for decision in (findings.decision, *findings.elsewhere)
    ]
    apart = loss.name_separately_ranked(findings.standings, findings.loss_bound) + faults.name_separately_ranked(
        findings.faulty
    )
    if len(findings.ground.together) < 2:
        only = answers[0][1]
        return AnswerText(only.headline, only.short, only.rest + apart)
    return _join_grounds(findings, answers, apart)


def _join_grounds(findings: ScenarioFindings, answers: Sequence[tuple[Decision, AnswerText]], apart: str) -> AnswerText:
    """Join the answers for each number of cores that contestants could use; none is compared with another. A contestant
    alone with its number has no answer, but is named."""
    first = answers[0][1]
    compared = [(decision, result) for decision, result in answers if decision.verdict != "unopposed"]
    headlines = [f"{result.headline} on {_describe_cores(findings, decision)}" for decision, result in compared]
    further = "".join(f" {result.sentence}" for _, result in compared if result is not first)
    named = {findings.ground.group_of(decision.eligible[0]) for decision, _ in [answers[0], *compared]}
    rest = f"{first.rest}{further}{ground.name_unranked(findings.ground, named)}{apart}"
    return AnswerText("; ".join(headlines) or "Not compared: different numbers of cores", first.short, rest)


def _describe_cores(findings: ScenarioFindings, decision: Decision) -> str:
    group = findings.ground.together[findings.ground.group_of(decision.eligible[0])]
    return ground.describe_usable_cores(group.cores)


# --- figures -----------------------------------------------------------------------------------------------------


def format_value(scenario: Scenario, figure: float) -> str:
    """A figure of the scenario's metric with its unit."""
    return METRICS[scenario.metric].speak(figure)


def format_pair(scenario: Scenario, outcome: Pair) -> str:
    """The outcome of a server with a client in a few characters: the figure, its number of trials where some do not
    count, or why there is none."""
    if not outcome.trials:
        return quantities.DASH
    if outcome.figure is None:
        return ", ".join(STATUS_WORDS[status] for status in outcome.statuses)
    figure = format_value(scenario, outcome.figure)
    if outcome.lost is not None:
        figure += f", {quantities.share(outcome.lost)} lost"
    return figure if outcome.valid == outcome.trials else f"{figure} ({outcome.valid}/{outcome.trials})"


# --- the sentence ------------------------------------------------------------------------------------------------


class Speech:
    """The parts of an answer's sentences: the scenario's first answer unless `decision` is given. `says` names a
    contestant."""

    def __init__(self, findings: ScenarioFindings, decision: Decision | None = None) -> None:
        self.scenario = findings.scenario
        self.family = findings.comparisons
        self.decision = decision or findings.decision
        self.at_least = "at least " if findings.censored else ""
        bound = findings.axes[0].bound if findings.axes else ""
        self.generator_in_it = ", generator included (true differences may be larger)" if bound else ""
        count = findings.ranked_levels
        self.over_loads = f" over {count} loads" if count > 1 else ""
        self.axes = [axis.metric for axis in findings.axes]
        self.higher = findings.better == "higher"
        self.says = {standing.contestant: loss.name_with_loss(standing) for standing in findings.standings}
        self.ranks = {standing.contestant: standing.rank for standing in findings.standings}
        self.qualified = _describe_eligible(findings, self.decision)
        self.neighbours = _describe_neighbours(findings.company)
        self.one_of = "ranked contestant" if findings.without_figure else "contestant with valid trials"

    def list_names(self, names: Sequence[str]) -> str:
        return quantities.listed([self.says[name] for name in names])

    def list_first(self, names: Sequence[str]) -> str:
        return quantities.list_first([self.says[name] for name in names])

    def name_subject(self) -> str:
        """The compared metric, the contestants compared, and the load."""
        under = f" under {self.scenario.objective}" if self.scenario.objective else ""
        metric = f"{METRICS[self.scenario.metric].title}{under}{self.over_loads}"
        return f"{metric}{self.qualified} ({loads.describe_load(self.scenario)}{self.neighbours})"

    def name_best(self) -> str:
        return f"the {'highest' if self.higher else 'lowest'} {self.name_subject()}"


def _describe_neighbours(neighbours: Company | None) -> str:
    if neighbours is None:
        return ""
    return f", {'partly ' if neighbours.trials < neighbours.total else ''}{company.label(neighbours)}"


def _describe_eligible(findings: ScenarioFindings, decision: Decision) -> str:
    """Name the contestants that the answer covers, where cores, loss or faults separate some."""
    group = findings.ground.group_of(decision.eligible[0])
    kinds = {standing.kind for standing in findings.standings if standing.group == group}
    subject = "all of them" if len(decision.eligible) > 1 else "it"
    is_divided = len(findings.ground.together) > 1
    used = f"could use {ground.describe_usable_cores(findings.ground.together[group].cores)}" if is_divided else ""
    bound = quantities.share(findings.loss_bound)
    lost = f"lost at most {bound} of their messages" if {0, 1} <= kinds else ""
    of_those = f" of those that {' and '.join(filter(None, [used, lost]))}" if used or lost else ""
    if kinds == {2}:
        return f"{of_those}, though {subject} failed in some trial"
    if 0 not in kinds:
        return f"{of_those}, though {subject} lost more than {bound} of their messages"
    return of_those


def _answer_decision(speech: Speech) -> AnswerText:
    decision = speech.decision
    leader = speech.says[decision.eligible[0]]
    if decision.verdict == "unopposed":
        alone = f"{leader} is the only {speech.one_of}{speech.qualified}; nothing to compare."
        return AnswerText(leader, alone, "")
    if decision.verdict == "winner":
        return AnswerText(leader, _describe_winner(speech), _compare_axes(speech))
    if decision.verdict == "equal":
        return AnswerText(_name_recommended(decision, speech), _describe_equal(speech), _compare_axes(speech))
    if decision.verdict == "undecided":
        return AnswerText(_head_undecided(speech), _describe_undecided(speech), _compare_axes(speech))
    if not decision.front:
        apart = f"No two of {speech.list_first(decision.eligible)} share a block: nothing to compare."
        return AnswerText("Not enough blocks", apart, "")
    return AnswerText("Not enough blocks", _describe_too_few(speech), "")


def make_badge(findings: ScenarioFindings) -> str:
    """Return which to take, in a few words: "a", "a or b", "Any of 5, equal within 4%", or that it is undecided."""
    decision = findings.decision
    if decision.verdict in ("winner", "equal"):
        return _name_recommended(decision, Speech(findings))
    if decision.verdict == "undecided":
        return _head_undecided(Speech(findings))
    return BADGES[decision.verdict]


def _name_recommended(decision: Decision, speech: Speech) -> str:
    if len(decision.recommended) > MOST_IN_BADGE:
        return f"Any of {len(decision.recommended)}, equal within {format_bound(decision.within)}"
    return quantities.listed([speech.says[name] for name in decision.recommended], "or")


def format_bound(factor: float | None) -> str:
    """Return a bound: "4.2%", or "×2.1" from double upwards."""
    if factor is None or not math.isfinite(factor):
        return UNKNOWN
    return f"{quantities.TIMES}{quantities.three_digits(factor)}" if factor >= 2 else quantities.margin(factor)


def _describe_interval(comparison: Comparison) -> str:
    if comparison.interval is None:
        return f"no interval from {quantities.plural(comparison.blocks, 'block')}"
    return f"95% interval {ranking.format_change_interval(comparison.interval)}"


def _describe_gap(speech: Speech, comparison: Comparison) -> str:
    """Describe a difference: "12% above b", or "2.4 times that of b"."""
    if comparison.ratio >= 2:
        return f"{speech.at_least}{quantities.margin(comparison.ratio)} that of {speech.says[comparison.b]}"
    return (
        f"{speech.at_least}{quantities.margin(comparison.ratio)} "
        f"{'above' if comparison.ratio > 1 else 'below'} {speech.says[comparison.b]}"
    )


def _describe_winner(speech: Speech) -> str:
    leader, second = speech.decision.eligible[:2]
    start = f"Take {speech.says[leader]}: it has {speech.name_best()}"
    comparison = find_comparison(leader, second, speech.family)
    gap = f", {_describe_gap(speech, comparison)}, the next ({_describe_interval(comparison)})" if comparison else ""
    return f"{start}{gap}."


def _describe_equal(speech: Speech) -> str:
    """Say which to take of those as good as the best, how precisely that is known, and which metrics chose it."""
    decision = speech.decision
    far = [name for name in decision.tied if name not in decision.near]
    margin = quantities.share(speech.scenario.margin)
    rest = f" {speech.list_first(far)} may be as good, or worse by more than {margin}." if far else ""
    return f"{_describe_close(speech)}.{rest}{_describe_more_time(speech)}{_describe_few_blocks(speech)}"


def _describe_close(speech: Speech) -> str:
    decision = speech.decision
    take = quantities.listed([speech.says[name] for name in decision.recommended], "or")
    metric = f"in {speech.name_subject()}{speech.generator_in_it}"
    within = format_bound(decision.within)
    if len(decision.near) == 1:
        near = "no rival is better" if decision.within == 1 else f"it is at most {within} behind the best"
        return f"Take {take}: {near} {metric}"
    alike = f"equal within {within} {metric}"
    if decision.near != decision.tied:
        alike = f"at most {within} behind the best {metric}"
    if decision.recommended == decision.near:
        return f"{speech.list_names(decision.near)} are {alike}; take any of them"
    metrics = ", then ".join(METRICS[metric].short for metric in decision.by)
    decide = "decides" if len(decision.by) == 1 else "decide"
    near = speech.list_names(decision.near)
    return f"Take {take}: {metrics} {decide} among {near}, which are {alike}{_name_silent_axes(speech)}"


def _name_silent_axes(speech: Speech) -> str:
    """Name the axes that come before the last deciding one and separate none of those near."""
    earlier = speech.axes[1 : speech.axes.index(speech.decision.by[-1])]
    by_least_change: dict[str, list[str]] = {}
    for metric in (METRICS[name] for name in earlier if name not in speech.decision.by):
        by_least_change.setdefault(metric.describe_least_change(1 + speech.scenario.margin), []).append(metric.short)
    silent = [f"{least} in {quantities.listed(names, 'or')}" for least, names in by_least_change.items()]
    return f"; between them no difference of {', or '.join(silent)} is proven" if silent else ""


def _head_undecided(speech: Speech) -> str:
    """Say among how many of those compared it is undecided, and by how much they may differ; the bound is of no others,
    so there is no count where some have too few blocks."""
    decision = speech.decision
    compared = [name for name in decision.eligible if speech.ranks[name] is not None]
    few = not decision.undecided and len(decision.tied) < len(compared)
    group = f" among {len(decision.tied)} of {len(compared)}" if few else ""
    return f"Undecided{group}: {_describe_bound(decision)}"


def _describe_undecided(speech: Speech) -> str:
    decision = speech.decision
    cannot = (
        f"{speech.list_first(decision.tied)}{_name_rest(speech)} are not proven different "
        f"in {speech.name_subject()}{speech.generator_in_it}"
    )
    return f"{cannot}: {_describe_bound(decision)}.{_describe_more_time(speech)}{_describe_few_blocks(speech)}"


def _name_rest(speech: Speech) -> str:
    """Name all others of the scenario where they are few, fewer than those that stay unnamed, and proven worse."""
    decision = speech.decision
    others = [name for name in speech.ranks if name not in decision.tied]
    unnamed = len(decision.tied) - quantities.MOST_NAMED
    are_worse = all(name in decision.eligible and speech.ranks[name] is not None for name in others)
    is_shorter = 0 < len(others) <= min(quantities.MOST_NAMED, unnamed - 1)
    return f" (all but {speech.list_names(others)})" if is_shorter and are_worse and not decision.undecided else ""


def _describe_bound(decision: Decision) -> str:
    within = format_bound(decision.within)
    return "the size of the difference is unknown" if within == UNKNOWN else f"the difference is at most {within}"


def _describe_more_time(speech: Speech) -> str:
    """Say how much longer it would take to show whether the best are equal, and which these are."""
    decision = speech.decision
    if decision.blocks_to_settle is None:
        return ""
    blocks = f"About {decision.blocks_to_settle:,} more block{'s' if decision.blocks_to_settle > 1 else ''}"
    leader, *rivals = (speech.says[name] for name in decision.open)
    group = f"{leader} and its {len(rivals)} nearest rivals"
    if len(rivals) <= MOST_RIVALS:
        group = quantities.listed([leader, *rivals])
    margin = quantities.share(speech.scenario.margin)
    if decision.seconds_to_settle is None:
        return f" {blocks} would show whether {group} are equal within {margin}."
    seconds = math.ceil(decision.seconds_to_settle)
    time = (
        quantities.plural(seconds, "second") if seconds < 60 else quantities.plural(math.ceil(seconds / 60), "minute")
    )
    return f" {blocks} of this scenario ({time}) would show whether {group} are equal within {margin}."


def _describe_few_blocks(speech: Speech) -> str:
    few = speech.decision.undecided
    return f" There are too few blocks to decide about {speech.list_first(few)}." if few else ""


def _compare_axes(speech: Speech) -> str:
    """Say in what the others are worse and better than the first of those that are recommended, or may be."""
    decision = speech.decision
    first = speech.says[(decision.recommended or decision.front)[0]]
    worse = {rival.contestant: rival.worse for rival in decision.trade_offs if rival.worse}
    better = {rival.contestant: rival.better for rival in decision.trade_offs if rival.better}
    return "".join(
        f" {word} than {first}{speech.over_loads}: {_list_trade_offs(speech, changes)}."
        for word, changes in (("Worse", worse), ("Better", better))
        if changes
    )


def _list_trade_offs(speech: Speech, changes: Mapping[str, Sequence[AxisRatio]]) -> str:
    texts = [f"{speech.says[name]} in {_list_changes(ratios)}" for name, ratios in changes.items()]
    more = len(texts) - MOST_IN_BADGE
    return "; ".join([*texts[:MOST_IN_BADGE], f"and {more} more"] if more > 1 else texts)


def _list_changes(ratios: Sequence[AxisRatio]) -> str:
    changes = [f"{METRICS[axis.metric].short} ({quantities.percent_change(axis.ratio)})" for axis in ratios]
    return quantities.listed(changes[:MOST_COSTS])


def _describe_too_few(speech: Speech) -> str:
    front = speech.decision.front
    facing = [comparison for name in front[1:] if (comparison := find_comparison(front[0], name, speech.family))]
    fewest = min((comparison.blocks for comparison in facing), default=0)
    leader = speech.says[front[0]]
    start = (
        f"Not enough blocks to say which has {speech.name_best()}: {leader} shares "
        f"{quantities.plural(fewest, 'block')} with a rival, and {FEWEST_BLOCKS} are needed"
    )
    measured = (
        f" Measured, but not proven: {leader} {_describe_gap(speech, facing[0])} ({_describe_interval(facing[0])})."
        if facing
        else ""
    )
    return f"{start}.{measured}"


# --- what goes with it -------------------------------------------------------------------------------------------


def list_evidence(findings: ScenarioFindings) -> tuple[str, ...]:
    """The servers' cost, of the first and of the last, and the losses."""
    return (*_compare_costs(findings), *loss.list_evidence(findings.standings, findings.cells, findings.levels))


def _compare_costs(findings: ScenarioFindings) -> tuple[str, ...]:
    """Compare the first and the last at the heaviest level."""
    group = findings.ground.group_of(findings.decision.eligible[0]) if findings.decision.eligible else 0
    standings = [standing for standing in findings.standings if standing.group == group]
    if len(standings) < 2 or not findings.levels:
        return ()
    level = findings.heaviest
    first, last = (findings.cell(standing.contestant, level.key) for standing in (standings[0], standings[-1]))
    if not (first and last and "cpu" in first.values and "cpu" in last.values):
        return ()
    place = f"ranked last ({standings[-1].rank})" if standings[-1].rank != standings[0].rank else "of equal rank"
    says = {standing.contestant: loss.name_with_loss(standing) for standing in (standings[0], standings[-1])}
    switches = [_describe_switches(cell) for cell in (first, last)]
    cpu = (
        f"At {level.label}, {says[first.contestant]} spends {quantities.microseconds(first.value('cpu'))} of "
        f"server CPU per message ({quantities.microseconds(first.value('cpu-system'))} of it in the kernel); "
        f"{says[last.contestant]}, "
        f"{place}, {quantities.microseconds(last.value('cpu'))} "
        f"({quantities.microseconds(last.value('cpu-system'))})."
    )
    rest = (
        f"Context switches per message: {switches[0]} against {switches[1]}; "
        f"peak memory {quantities.memory(first.value('memory'))} against "
        f"{quantities.memory(last.value('memory'))}; "
        f"threads {first.value('threads'):.0f} against {last.value('threads'):.0f}."
    )
    return (cpu, rest)


def _describe_switches(cell: CellFigures) -> str:
    if "switches" not in cell.values:
        return "an unknown number"
    return quantities.three_digits(cell.value("switches"))
