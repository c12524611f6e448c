"""The words of the answer: from comparisons to a verdict, one sentence, and what goes with it. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from netdyno.analysis.findings import (
    Axis,
    CellFigures,
    Censored,
    ErrorBar,
    Faulty,
    LevelInfo,
    Pair,
    Standing,
    Verdict,
    heaviest,
)
from netdyno.base import quantities
from netdyno.base.units import parse_duration
from netdyno.model.contestant import GENERATOR
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial
from netdyno.present.prose import faults, loss, ranking
from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Better, Comparison, Interval

STATUS_WORDS = {
    "valid": "valid",
    "struck_out": "struck out",
    "skipped": "skipped",
    "failed": "failed",
    "faulty": "faulty",
    "made_again": "made again",
    "censored": "valid, as a bound",
}
BOUND_SIGNS = {"": "", "at least": "≥", "at most": "≤"}
"""Before a figure that is a bound."""
LARGE_LAG_SHARE = 0.1
MOST_GAPS = 4
"""Holes in a ranking that are told one by one."""


WHAT_HOLDS = (
    "All intervals of a question hold together with 95%, and a difference is told where its interval leaves out none. "
    "Simulated: at most 5.4% of questions about equal servers find some difference, 7% where one of them is slow in "
    "one trial of ten."
)
"""At the foot of table and report (docs/adr/statistics.md)."""


@dataclass(frozen=True)
class Answer:
    """`short` says which to take, `rest` what the others cost and who is ranked apart."""

    verdict: Verdict
    headline: str
    short: str
    rest: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.short}{self.rest}"


def better(scenario: Scenario) -> Better:
    return METRICS[scenario.metric].better


def value(scenario: Scenario, figure: float) -> str:
    """A figure of the scenario's metric with its unit."""
    return METRICS[scenario.metric].speak(figure)


def pair(scenario: Scenario, one: Pair) -> str:
    """What came of a server and a client in a few characters: the figure, of how many trials where some do not count,
    or why there is none."""
    if not one.trials:
        return quantities.DASH
    if one.figure is None:
        return ", ".join(STATUS_WORDS[status] for status in one.statuses)
    figure = value(scenario, one.figure)
    if one.lost is not None:
        figure += f", {quantities.share(one.lost)} lost"
    return figure if one.valid == one.trials else f"{figure} ({one.valid}/{one.trials})"


def load_words(scenario: Scenario) -> str:
    """How the load was offered; closed loop is always named as such."""
    if scenario.arrivals == "closed":
        rounds = "" if parse_duration(scenario.round) == 0 else f" in rounds of {scenario.round}"
        each = "" if scenario.depth == 1 else f", {scenario.depth} in flight per connection"
        return f"closed loop{rounds}{each}"
    return f"open loop {_offered(scenario)}, {scenario.arrivals} arrivals"


def _offered(scenario: Scenario) -> str:
    if "rate" in scenario.factors or "rate-per-connection" in scenario.factors:
        return "at the offered rates"
    if scenario.rate_per_connection is not None:
        return f"at {quantities.rate(scenario.rate_per_connection)} offered on each connection"
    return f"at {quantities.rate(scenario.rate or 0)} offered"


def against(first: str, second: str, family: Sequence[Comparison]) -> Comparison | None:
    """The comparison of two, turned so that `first` is `a`; None where they share no cell."""
    for one in family:
        if (one.a, one.b) == (first, second):
            return one if one.pairs else None
        if (one.b, one.a) == (first, second):
            return _turned(one) if one.pairs else None
    return None


def _turned(one: Comparison) -> Comparison:
    interval = one.interval and Interval(1 / one.interval.high, 1 / one.interval.low)
    return replace(one, a=one.b, b=one.a, ratio=1 / one.ratio, interval=interval)


@dataclass(frozen=True)
class Basis:
    """What an answer stands on. `family` are the comparisons of the scenario's own metric."""

    scenario: Scenario
    standings: Sequence[Standing]
    family: Sequence[Comparison]
    axes: Sequence[Axis]
    faulty: Sequence[Faulty]
    censored: Sequence[Censored]
    loss_bound: float


def answer(basis: Basis) -> Answer:
    """The verdict on one scenario: on those that did it without a fault, or on all where nobody did."""
    if not basis.standings:
        nothing = "No trial of this workload was valid, so there is no answer."
        return Answer("no_data", "No valid trial", nothing, faults.sentence(basis.faulty))
    speech = Speech(basis)
    found = _verdict(speech)
    apart = loss.apart(basis.standings, basis.loss_bound) + faults.sentence(basis.faulty)
    return replace(found, rest=found.rest + apart)


class Speech:
    """What the sentences of one answer are made of. `standings` are of those that it is about; `says` names them."""

    def __init__(self, basis: Basis) -> None:
        self.scenario = basis.scenario
        self.family = basis.family
        self.axes = basis.axes
        self.at_least = "at least " if basis.censored else ""
        best = min(one.kind for one in basis.standings)
        self.standings = [one for one in basis.standings if one.kind == best]
        self.says = {one.contestant: loss.named(one) for one in basis.standings}
        self.qualified = _qualified(basis.standings, basis.loss_bound)

    def listed(self, names: Sequence[str]) -> str:
        return quantities.listed([self.says[name] for name in names])

    def subject(self) -> str:
        """What is compared, among whom, and under which load."""
        under = f" under {self.scenario.slo}" if self.scenario.slo else ""
        metric = f"{METRICS[self.scenario.metric].title}{under}"
        return f"{metric}{self.qualified} ({load_words(self.scenario)})"

    def superlative(self) -> str:
        return f"the {'highest' if better(self.scenario) == 'higher' else 'lowest'} {self.subject()}"


def _qualified(standings: Sequence[Standing], loss_bound: float) -> str:
    """Among whom the answer holds, where loss or faults set some apart."""
    kinds = {one.kind for one in standings}
    bound = quantities.share(loss_bound)
    if kinds == {2}:
        return ", though everybody failed in some trial"
    if 0 not in kinds:
        return f", though everybody lost more than {bound} of their messages"
    return f" of those that lost at most {bound} of their messages" if 1 in kinds else ""


def _verdict(speech: Speech) -> Answer:
    standings, family = speech.standings, speech.family
    leader = standings[0].contestant
    if len(standings) == 1:
        alone = f"{speech.says[leader]} is the only contestant with valid trials{speech.qualified}; nothing to compare."
        return Answer("unopposed", speech.says[leader], alone)
    if standings[0].rank is None:
        apart = f"No two of {speech.listed([one.contestant for one in standings])} share a block: nothing to compare."
        return Answer("not_enough_blocks", "Not enough blocks", apart)
    front = front_runners(standings, family, better(speech.scenario))
    if len(front) == 1:
        return Answer("winner", speech.says[leader], _winner(speech), _elsewhere(speech, [leader]))
    undecided = [name for name in front[1:] if _undecided_between(leader, name, family)]
    tied = [name for name in front if name not in undecided]
    if len(tied) == 1:
        return Answer("not_enough_blocks", "Not enough blocks", _undecided(speech, front))
    return Answer("tie", f"Tie: {speech.listed(tied)}", *_tie(speech, tied, undecided))


def _undecided_between(first: str, second: str, family: Sequence[Comparison]) -> bool:
    one = against(first, second, family)
    return one is None or not (one.decidable or one.different)


def front_runners(standings: Sequence[Standing], family: Sequence[Comparison], direction: Better) -> list[str]:
    """The winner alone, or those who tie for first: nobody is proven better than any of them."""
    names = [one.contestant for one in standings if one.rank is not None]
    if sum(one.rank == standings[0].rank for one in standings) == 1:
        return names[:1]
    unbeaten = stats.unbeaten(names, family, direction)
    if len(unbeaten) > 1:
        return unbeaten
    # Someone beat every rival of the leader, but not the leader's own narrow lead over one of them: that is a tie too.
    apart = {frozenset((one.a, one.b)) for one in family if one.different}
    return [names[0], *(name for name in names[1:] if frozenset((names[0], name)) not in apart)]


def _side(ratio: float) -> str:
    return "above" if ratio > 1 else "below"


def _interval(one: Comparison) -> str:
    if one.interval is None:
        return f"no interval from {quantities.plural(one.blocks, 'block')}"
    return f"95% interval {ranking.change_interval(one.interval)}"


def _gap(speech: Speech, one: Comparison) -> str:
    """ "12% above b", or "2.4 times that of b"."""
    if one.ratio >= 2:
        return f"{speech.at_least}{quantities.margin(one.ratio)} that of {speech.says[one.b]}"
    return f"{speech.at_least}{quantities.margin(one.ratio)} {_side(one.ratio)} {speech.says[one.b]}"


def _winner(speech: Speech) -> str:
    leader, second = speech.standings[0].contestant, speech.standings[1].contestant
    start = f"Take {speech.says[leader]}: it has {speech.superlative()}"
    one = against(leader, second, speech.family)
    seen = f", {_gap(speech, one)}, the next ({_interval(one)})" if one else ""
    return f"{start}{seen}."


def _tie(speech: Speech, tied: Sequence[str], undecided: Sequence[str]) -> tuple[str, str]:
    """Which to take, and the rest of it."""
    taken = _undominated(speech, tied)
    too_few = f" For {speech.listed(undecided)} there are too few blocks to say." if undecided else ""
    rest = f"{_elsewhere(speech, taken)}{too_few}"
    alike = f"{speech.listed(tied)} cannot be told apart in {speech.subject()}"
    if len(taken) == len(tied):
        return f"{alike}; take any of them.", rest
    why = "nobody of these beats it on another axis" if len(taken) == 1 else "they are not beaten on the other axes"
    return f"{alike}. Take {_any_of(speech, taken)}: {why}.", rest


def _any_of(speech: Speech, names: Sequence[str]) -> str:
    return " or ".join(speech.says[name] for name in names)


def _undominated(speech: Speech, tied: Sequence[str]) -> list[str]:
    """Of those that tie, the ones that nobody beats on some other axis without being beaten on another."""

    def dominates(one: str, other: str) -> bool:
        sides = [lead for axis in speech.axes if (lead := _lead(axis, one, other)) is not None]
        return bool(sides) and all(sides)

    return [name for name in tied if not any(dominates(other, name) for other in tied if other != name)]


def _lead(axis: Axis, one: str, other: str) -> bool | None:
    """Whether the first is proven better than the other on an axis by what is worth telling; None where neither is."""
    found = against(one, other, axis.comparisons)
    if found is None or not found.different or 1 / WORTH_TELLING < found.ratio < WORTH_TELLING:
        return None
    return (found.ratio > 1) == (axis.better == "higher")


WORTH_TELLING = 1.05
"""A proven difference of less changes nobody's choice."""
MOST_COSTS = 3
"""Axes that a sentence tells of one contestant; the table has all."""


def _elsewhere(speech: Speech, taken: Sequence[str]) -> str:
    """What the others cost beside the first of those that are taken, and in what they are better."""
    chosen = taken[0]
    others = [one.contestant for one in speech.standings if one.contestant not in taken]
    costs = [
        f"{speech.says[name]} {quantities.listed(found)}"
        for name in others
        if (found := _differences(speech, name, chosen, worse=True))
    ]
    gains = [
        f"{speech.says[name]} {quantities.listed(found)}"
        for name in others
        if (found := _differences(speech, name, chosen, worse=False))
    ]
    beside = f" beside {speech.says[chosen]}" if len(taken) > 1 else ""
    text = f" What the others cost{beside}: {'; '.join(costs)}." if costs else ""
    return f"{text} In their favour: {'; '.join(gains)}." if gains else text


def _differences(speech: Speech, name: str, chosen: str, *, worse: bool) -> list[str]:
    """The axes on which a contestant is proven worse (or better) than the one that is taken, the largest first."""
    found = [
        (abs(math.log(one.ratio)), f"{METRICS[axis.metric].short} {quantities.percent_change(one.ratio)}")
        for axis in speech.axes
        if (one := against(name, chosen, axis.comparisons)) is not None
        if _lead(axis, name, chosen) is (not worse)
    ]
    return [text for _, text in sorted(found, key=lambda each: -each[0])[:MOST_COSTS]]


def _undecided(speech: Speech, front: Sequence[str]) -> str:
    facing = [one for name in front[1:] if (one := against(front[0], name, speech.family))]
    fewest = min((one.blocks for one in facing), default=0)
    leader = speech.says[front[0]]
    start = (
        f"Not enough blocks to say who has {speech.superlative()}: {leader} shares "
        f"{quantities.plural(fewest, 'block')} with a rival, {FEWEST_BLOCKS} needed"
    )
    seen = f" Seen, not proven: {leader} {_gap(speech, facing[0])} ({_interval(facing[0])})." if facing else ""
    return f"{start}.{seen}"


def bounds(
    censored: Sequence[Censored], bars: Sequence[ErrorBar], levels: Sequence[LevelInfo], scenario: Scenario
) -> tuple[str, ...]:
    """Why figures are bounds."""
    labels = {level.key: level.label for level in levels}
    told = []
    for key in dict.fromkeys(one.level for one in censored):
        who = [f"{one.contestant} ({one.share:.0%} of a core)" for one in censored if one.level == key]
        told.append(
            f"At {labels[key]} the generator was at its limit with {quantities.listed(who)}: what is measured there is "
            f"the "
            "generator as well. Rates are 'at least', response times 'at most', for all contestants alike, and gaps "
            "between them may be larger than they look."
        )
    for bar in bars:
        received = "not known" if bar.receive_ns is None else quantities.duration(bar.receive_ns)
        sent = f"it sent {quantities.duration(bar.send_ns)} late, and " if scenario.scheduled else ""
        told.append(
            f"At {labels[bar.level]} the generator's own part of {bar.percentile} is {bar.share:.0%} of the shortest "
            f"({quantities.duration(bar.of)}): {sent}it read replies {received} after they had come. So these response "
            "times are 'at most', and the ratios between servers may be larger."
        )
    return tuple(told)


def unsteady(found: Sequence[tuple[str, int, int]]) -> tuple[str, ...]:
    """Whose level moved within windows more often than chance does."""
    return tuple(
        f"{name} did not keep its level within the window in {moved} of {quantities.plural(trials, 'trial')}."
        for name, moved, trials in found
    )


def evidence(
    standings: Sequence[Standing], cells: Sequence[CellFigures], levels: Sequence[LevelInfo]
) -> tuple[str, ...]:
    """What goes with the result at the heaviest level: the server's cost, the first beside the last."""
    if len(standings) < 2 or not levels:
        return ()
    level = heaviest(levels, cells)
    by_name = {one.contestant: one for one in cells if one.level == level.key}
    first, last = by_name.get(standings[0].contestant), by_name.get(standings[-1].contestant)
    if not (first and last and first.cost and last.cost):
        return ()
    a, b = first.cost, last.cost
    says = {one.contestant: loss.named(one) for one in (standings[0], standings[-1])}
    switches = [one.voluntary_switches.value + one.involuntary_switches.value for one in (a, b)]
    cpu = (
        f"At {level.label}, {says[first.contestant]} spends {quantities.three_digits(a.cpu_us.value)} µs of server CPU "
        f"per message ({quantities.three_digits(a.cpu_system_us.value)} µs of it in the kernel); "
        f"{says[last.contestant]}, "
        f"the last in rank, {quantities.three_digits(b.cpu_us.value)} µs "
        f"({quantities.three_digits(b.cpu_system_us.value)} µs)."
    )
    rest = (
        f"Context switches per message: {quantities.three_digits(switches[0])} against "
        f"{quantities.three_digits(switches[1])}; "
        f"peak memory {quantities.memory(a.rss_peak_bytes.value)} against {quantities.memory(b.rss_peak_bytes.value)}; "
        f"threads {a.threads} against {b.threads}."
    )
    return (cpu, rest)


def caveats(
    scenario: Scenario,
    standings: Sequence[Standing],
    cells: Sequence[CellFigures],
    levels: Sequence[LevelInfo],
    planned: Sequence[str],
    faulty: Collection[str] = (),
) -> tuple[str, ...]:
    """What a reader must know before quoting the answer."""
    ranked = {one.contestant for one in standings}
    absent = [name for name in planned if name not in ranked and name not in faulty]
    lost = [f"{one.contestant} ({one.missing})" for one in standings if one.missing]
    notes = _loop_caveats(scenario, cells)
    if scenario.client != GENERATOR or set(scenario.factors.get("client", ())) - {GENERATOR}:
        notes.append(
            "The load came from client contestants: a client's own time per request is part of every figure. Servers "
            "are compared with the same client only."
        )
    if scenario.scheduled and scenario.metric == "throughput":
        notes.append("The rate was prescribed: equal throughput says that each kept up, not that all are equally fast.")
    if absent:
        notes.append(f"Without any valid trial, so not ranked: {quantities.listed(absent)}.")
    if lost:
        notes.append(f"Compared on fewer cells than planned (trials set aside): {quantities.listed(lost)}.")
    # A capacity lies below the loads that nobody could carry any more: no valid trial there is what is to be seen.
    gaps = [] if scenario.metric == "capacity" else _gaps(standings, cells, levels)
    if len(gaps) > MOST_GAPS:
        gaps = [f"{len(gaps)} contestants at a load have no valid trial there: a rank speaks for the other loads only."]
    notes += gaps
    return tuple(note for note in notes if note)


def added_options(scenario: Scenario, trials: Sequence[Trial]) -> tuple[str, ...]:
    """What the harness set beside the options of the cell, and for whom."""
    wished = scenario.where_possible
    had: dict[str, dict[str, None]] = {}
    for trial in trials:
        for name, value in trial.added.items():
            if wished.get(name) in (value, "cores"):
                had.setdefault(f"{name} {value}", {})[trial.contestant] = None
    texts = [f"{option} ({quantities.listed(sorted(names))})" for option, names in sorted(had.items())]
    given = (f"Set only where a server can have it: {'; '.join(texts)}.",) if texts else ()
    return (
        *given,
        *_added_threads(
            trial for trial in trials if wished.get("threads") not in (trial.added.get("threads"), "cores")
        ),
    )


def sampled_threads(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Whose context switches and waits are estimates from some of its threads."""
    seen: dict[str, set[tuple[int, int]]] = {}
    for trial in trials:
        if trial.server is not None and trial.server.threads_sampled:
            seen.setdefault(trial.contestant, set()).add((trial.server.threads, trial.server.threads_sampled))
    return tuple(
        f"Context switches and waits of {name} are estimates where it has thousands of threads: "
        f"{max(counts)[1]} of up to {max(counts)[0]:,} were read, at random."
        for name, counts in sorted(seen.items())
    )


def _added_threads(trials: Iterable[Trial]) -> tuple[str, ...]:
    """Which contestants got a thread for each connection from the harness, and how many threads they were seen to run.
    A trial in which a client had waited would have met its time limit and not be valid."""
    seen: dict[str, set[int]] = {}
    for trial in trials:
        threads = trial.added.get("threads")
        if threads is None or trial.load is None or trial.server is None:
            continue
        if int(threads) >= trial.load.plan.connections:  # one for each of its cores is another matter
            seen.setdefault(trial.contestant, set()).add(trial.server.threads)
    return tuple(
        f"{name} serves no more clients at a time than it has threads: one more waits until another leaves, as its "
        "conformance test shows. So it was started with a thread for each connection, and ran "
        f"{quantities.listed([str(count) for count in sorted(counts)])} threads in all."
        for name, counts in sorted(seen.items())
    )


def _gaps(standings: Sequence[Standing], cells: Sequence[CellFigures], levels: Sequence[LevelInfo]) -> list[str]:
    """Whole levels that a ranked contestant did not finish though others did."""
    finished = {(one.contestant, one.level) for one in cells}
    return [
        f"{one.contestant} has no valid trial at {level.label}: its rank speaks for the other levels only."
        for level in levels
        if any(key == level.key for _, key in finished)
        for one in standings
        if (one.contestant, level.key) not in finished
    ]


def _loop_caveats(scenario: Scenario, cells: Sequence[CellFigures]) -> list[str]:
    caveats = []
    if scenario.arrivals == "closed":
        caveats.append(
            "Closed loop: each connection waits for its reply before it sends again, so a slow server is asked less. "
            + (
                "In a round all that are answered send at the same moment, and the generator receives on its own cores "
                "what the server sends: its work is part of each latency."
                if scenario.scheduled
                else "Its latencies are service times under full load, not what users at a fixed rate would see."
            )
        )
    if scenario.scheduled and cells:
        caveats.append(_lag_caveat(cells))
    return caveats


def lags(scenario: Scenario, cells: Sequence[CellFigures]) -> str:
    """The generator's own part of the response times: what it sends late, where it has a schedule, and what it reads
    late."""
    told = []
    if scenario.scheduled and cells:
        told.append(f"send lag p99 at most {quantities.duration(max(cell.send_lag.p99_ns for cell in cells))}")
    received = [cell.receive_lag for cell in cells if cell.receive_lag is not None]
    if received:
        told.append(f"receive lag p50 at most {quantities.duration(max(lag.p50_ns for lag in received))}")
    return ", ".join(told)


def _lag_caveat(cells: Sequence[CellFigures]) -> str:
    worst = max(cells, key=lambda one: one.send_lag.p99_ns)
    lag, response = worst.send_lag, worst.response_ns.p99.value
    text = (
        f"Send lag, the error bar of these latencies: p99 at most {quantities.duration(lag.p99_ns)}, "
        f"largest {quantities.duration(max(one.send_lag.max_ns for one in cells))}"
    )
    if lag.p99_ns > LARGE_LAG_SHARE * response:
        text += (
            f". For {worst.contestant} that is {lag.p99_ns / response:.0%} of its p99 response time: "
            "part of this latency may be the generator's own"
        )
    return f"{text}."
