"""The words of the answer: from comparisons to a verdict, one sentence, and what goes with it. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from netdyno import stats, words
from netdyno.findings import CellFigures, LevelInfo, Pair, Standing, Verdict, heaviest
from netdyno.model import GENERATOR, Scenario, Trial
from netdyno.stats import Better, Comparison, Interval

STATUS_WORDS = {"valid": "valid", "struck_out": "struck out", "skipped": "skipped", "failed": "failed"}
METRIC_NAMES = {
    "throughput": "throughput",
    "p50": "median response time",
    "p99": "99th-percentile response time",
    "mean": "mean response time",
}
LARGE_LAG_SHARE = 0.1
MOST_GAPS = 4
"""Holes in a ranking that are told one by one."""


@dataclass(frozen=True)
class Answer:
    verdict: Verdict
    headline: str
    sentence: str


def better(scenario: Scenario) -> Better:
    return "higher" if scenario.metric == "throughput" else "lower"


def value(scenario: Scenario, figure: float) -> str:
    """A figure of the scenario's metric with its unit."""
    return words.rate(figure) if scenario.metric == "throughput" else words.duration(figure)


def pair(scenario: Scenario, one: Pair) -> str:
    """What came of a server and a client in a few characters: the figure, of how many trials where some do not count,
    or why there is none."""
    if not one.trials:
        return words.DASH
    if one.figure is None:
        return ", ".join(STATUS_WORDS[status] for status in one.statuses)
    figure = value(scenario, one.figure)
    return figure if one.valid == one.trials else f"{figure} ({one.valid}/{one.trials})"


def load_words(scenario: Scenario) -> str:
    """How the load was offered; closed loop is always named as such."""
    if scenario.arrivals == "closed":
        return "closed loop" if scenario.depth == 1 else f"closed loop, {scenario.depth} in flight per connection"
    return f"open loop {_offered(scenario)}, {scenario.arrivals} arrivals"


def _offered(scenario: Scenario) -> str:
    if "rate" in scenario.factors or "rate-per-connection" in scenario.factors:
        return "at the offered rates"
    if scenario.rate_per_connection is not None:
        return f"at {words.rate(scenario.rate_per_connection)} offered on each connection"
    return f"at {words.rate(scenario.rate or 0)} offered"


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


def answer(
    scenario: Scenario, standings: Sequence[Standing], family: Sequence[Comparison], levels: int, needed: int
) -> Answer:
    """The verdict on one scenario. `needed`: the pairs each comparison must have to pass after correction."""
    if not standings:
        return Answer("no_data", "No valid trial", "No trial of this workload was valid, so there is no answer.")
    leader = standings[0].contestant
    if len(standings) == 1:
        return Answer("unopposed", leader, f"{leader} is the only contestant with valid trials; nothing to compare.")
    front = front_runners(standings, family, better(scenario))
    if len(front) == 1:
        return Answer("winner", leader, _winner(scenario, standings, family))
    undecided = [name for name in front[1:] if _undecided_between(leader, name, family)]
    tied = [name for name in front if name not in undecided]
    if len(tied) == 1:
        return Answer("not_enough_blocks", "Not enough blocks", _undecided(scenario, front, family, levels, needed))
    return Answer("tie", f"Tie: {words.listed(tied)}", _tie(scenario, tied, undecided, family))


def _undecided_between(first: str, second: str, family: Sequence[Comparison]) -> bool:
    one = against(first, second, family)
    return one is None or not (one.decidable or one.different)


def front_runners(standings: Sequence[Standing], family: Sequence[Comparison], direction: Better) -> list[str]:
    """The winner alone, or those who tie for first: nobody is proven better than any of them."""
    names = [one.contestant for one in standings]
    if sum(one.rank == 1 for one in standings) == 1:
        return names[:1]
    unbeaten = stats.unbeaten(names, family, direction)
    if len(unbeaten) > 1:
        return unbeaten
    # Someone beat every rival of the leader, but not the leader's own narrow lead over one of them: that is a tie too.
    apart = {frozenset((one.a, one.b)) for one in family if one.different}
    return [names[0], *(name for name in names[1:] if frozenset((names[0], name)) not in apart)]


def _superlative(scenario: Scenario) -> str:
    return f"the {'highest' if better(scenario) == 'higher' else 'lowest'} {METRIC_NAMES[scenario.metric]}"


def _side(ratio: float) -> str:
    return "above" if ratio > 1 else "below"


def _interval(one: Comparison) -> str:
    if one.interval is None:
        return f"no interval from {words.plural(one.blocks, 'block')}"
    return f"95% interval {words.change_interval(one.interval)}"


def _gap(one: Comparison) -> str:
    """ "12% above b", or "2.4 times that of b"."""
    if one.ratio >= 2:
        return f"{words.margin(one.ratio)} that of {one.b}"
    return f"{words.margin(one.ratio)} {_side(one.ratio)} {one.b}"


def _winner(scenario: Scenario, standings: Sequence[Standing], family: Sequence[Comparison]) -> str:
    leader, second = standings[0].contestant, standings[1].contestant
    start = f"{leader} has {_superlative(scenario)} ({load_words(scenario)})"
    one = against(leader, second, family)
    if one is None:
        return f"{start}."
    return f"{start}: {_gap(one)}, the next ({_interval(one)}; {words.p_value(one.p_holm)} after Holm)."


def _tie(scenario: Scenario, tied: Sequence[str], undecided: Sequence[str], family: Sequence[Comparison]) -> str:
    start = f"{words.listed(tied)} cannot be told apart in {METRIC_NAMES[scenario.metric]} ({load_words(scenario)})"
    one = against(tied[0], tied[1], family)
    seen = f": {tied[0]} lies {_gap(one)} ({_interval(one)})" if one else ""
    rest = f" For {words.listed(undecided)} there are too few pairs to say." if undecided else ""
    return f"{start}{seen}.{rest}"


def _undecided(scenario: Scenario, front: Sequence[str], family: Sequence[Comparison], levels: int, needed: int) -> str:
    facing = [one for name in front[1:] if (one := against(front[0], name, family))]
    fewest = min((one.pairs for one in facing), default=0)
    blocks = -(-needed // max(levels, 1))
    start = (
        f"Not enough blocks to say who has {_superlative(scenario)} ({load_words(scenario)}): {front[0]} shares "
        f"{words.plural(fewest, 'pair')} with a rival, {needed} needed ({words.plural(blocks, 'block')} without losses)"
    )
    seen = f" Seen, not proven: {front[0]} {_gap(facing[0])} ({_interval(facing[0])})." if facing else ""
    return f"{start}.{seen}"


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
    switches = [one.voluntary_switches.value + one.involuntary_switches.value for one in (a, b)]
    cpu = (
        f"At {level.label}, {first.contestant} spends {words.three_digits(a.cpu_us.value)} µs of server CPU "
        f"per message ({words.three_digits(a.cpu_system_us.value)} µs of it in the kernel); {last.contestant}, "
        f"the last in rank, {words.three_digits(b.cpu_us.value)} µs ({words.three_digits(b.cpu_system_us.value)} µs)."
    )
    rest = (
        f"Context switches per message: {words.three_digits(switches[0])} against {words.three_digits(switches[1])}; "
        f"peak memory {words.memory(a.rss_peak_bytes.value)} against {words.memory(b.rss_peak_bytes.value)}; "
        f"threads {a.threads} against {b.threads}."
    )
    return (cpu, rest)


def caveats(
    scenario: Scenario,
    standings: Sequence[Standing],
    cells: Sequence[CellFigures],
    levels: Sequence[LevelInfo],
    planned: Sequence[str],
) -> tuple[str, ...]:
    """What a reader must know before quoting the answer."""
    absent = [name for name in planned if name not in {one.contestant for one in standings}]
    lost = [f"{one.contestant} ({one.missing})" for one in standings if one.missing]
    notes = [_loop_caveat(scenario, cells)]
    if scenario.client != GENERATOR or set(scenario.factors.get("client", ())) - {GENERATOR}:
        notes.append(
            "The load came from client contestants: a client's own time per request is part of every figure. Servers "
            "are compared with the same client only."
        )
    if scenario.arrivals != "closed" and scenario.metric == "throughput":
        notes.append("The rate was prescribed: equal throughput says that each kept up, not that all are equally fast.")
    if absent:
        notes.append(f"Without any valid trial, so not ranked: {words.listed(absent)}.")
    if lost:
        notes.append(f"Compared on fewer cells than planned (trials set aside): {words.listed(lost)}.")
    gaps = _gaps(standings, cells, levels)
    if len(gaps) > MOST_GAPS:
        gaps = [f"{len(gaps)} contestants at a load have no valid trial there: a rank speaks for the other loads only."]
    notes += gaps
    return tuple(note for note in notes if note)


def added_threads(trials: Iterable[Trial]) -> tuple[str, ...]:
    """Which contestants got a thread for each connection from the harness, and how many threads they were seen to run.
    A trial in which a client had waited would have met its time limit and not be valid."""
    seen: dict[str, set[int]] = {}
    for trial in trials:
        if "threads" in trial.added and trial.server is not None:
            seen.setdefault(trial.contestant, set()).add(trial.server.threads)
    return tuple(
        f"{name} serves no more clients at a time than it has threads: one more waits until another leaves, as its "
        "conformance test shows. So it was started with a thread for each connection, and ran "
        f"{words.listed([str(count) for count in sorted(counts)])} threads in all."
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


def _loop_caveat(scenario: Scenario, cells: Sequence[CellFigures]) -> str:
    if scenario.arrivals == "closed":
        return (
            "Closed loop: each connection waits for its reply before it sends again, so a slow server is asked less. "
            "Its latencies are service times under full load, not what users at a fixed rate would see."
        )
    if not cells:
        return ""
    worst = max(cells, key=lambda one: one.send_lag.p99_ns)
    lag, response = worst.send_lag, worst.response_ns.p99.value
    text = (
        f"Send lag, the error bar of these latencies: p99 at most {words.duration(lag.p99_ns)}, "
        f"largest {words.duration(max(one.send_lag.max_ns for one in cells))}"
    )
    if lag.p99_ns > LARGE_LAG_SHARE * response:
        text += (
            f". For {worst.contestant} that is {lag.p99_ns / response:.0%} of its p99 response time: "
            "part of this latency may be the generator's own"
        )
    return f"{text}."
