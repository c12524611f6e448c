"""The answer to a scenario in words: a headline, one sentence, what goes with it, and what a reader must know before
quoting it. The terminal and the report say the same. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netdyno.analysis.answers import against
from netdyno.analysis.findings import (
    AxisRatio,
    Bound,
    CellFigures,
    Cost,
    Decision,
    Pair,
    ScenarioFindings,
    Verdict,
)
from netdyno.base import quantities
from netdyno.base.units import duration_words
from netdyno.model.contestant import GENERATOR
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS
from netdyno.present.prose import (
    capacity,
    company,
    constant_latency,
    excluded,
    faults,
    flips,
    ground,
    loss,
    ranking,
    turns,
    uneven_threads,
    warmups,
)
from netdyno.present.prose.statuses import STATUS_WORDS
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Comparison

BOUND_SIGNS: dict[Bound, str] = {"": "", "at least": "≥", "at most": "≤"}
"""Before a figure that is a bound."""
BADGES: Mapping[Verdict, str] = {
    "not_enough_blocks": "Not enough blocks",
    "unopposed": "Nothing to compare",
    "no_data": "No valid trial",
    "flip": "Where the winner changes",
}
"""Of a verdict that names none to take."""
LARGE_LAG_SHARE = 0.1
UNKNOWN = "an unknown factor"
"""The bound of a difference where the blocks leave none."""
MOST_GAPS = 4
"""Holes in a ranking that are told one by one."""
MOST_COSTS = 3
"""Axes that a sentence tells of one contestant; the table has all."""
WHAT_HOLDS = (
    "A difference is stated only where its interval excludes zero. All intervals of a question's own metric hold "
    "together with 95% confidence, and so do those of its other axes. In simulations of equal servers, at most 5.5% of "
    "questions state a difference in their own metric and 5.1% on another axis; 5.7% and 6.5% where one server is slow "
    "in one trial of ten."
)
"""At the foot of table and report (docs/adr/statistics.md)."""


@dataclass(frozen=True)
class Answer:
    """`short` says which to take, `rest` what the others cost and who is ranked apart."""

    headline: str
    short: str
    rest: str

    @property
    def sentence(self) -> str:
        return f"{self.short}{self.rest}"


def answer(findings: ScenarioFindings) -> Answer:
    said = _of_search(findings) or _of_flips(findings) or _of_verdict(findings)
    return Answer(said.headline, said.short, said.rest + excluded.left_out(findings.unsafe))


def _of_search(findings: ScenarioFindings) -> Answer | None:
    """A search for a capacity has one contestant, and an answer of its own."""
    if findings.capacity is None or findings.capacity.search is None:
        return None
    return Answer(_of_verdict(findings).headline, capacity.searched(findings.capacity), "")


def _of_flips(findings: ScenarioFindings) -> Answer | None:
    """Where the winner changes is the answer of a scenario whose levels were chosen for that."""
    if not findings.flips:
        return None
    headline = quantities.listed(list(dict.fromkeys(flips.headline(one) for one in findings.flips)))
    rest = loss.apart(findings.standings, findings.loss_bound) + faults.sentence(findings.faulty)
    return Answer(headline, " ".join(f"{flips.sentence(one)}." for one in findings.flips), rest)


def _of_verdict(findings: ScenarioFindings) -> Answer:
    if findings.verdict == "no_data":
        headline, nothing = "No valid trial", "No trial of this workload was valid, so there is no answer."
        if _untold(findings):
            headline = "No figure"
            nothing = (
                f"No valid trial has a figure for {METRICS[findings.scenario.metric].title}, so there is no answer."
            )
        return Answer(headline, nothing, faults.sentence(findings.faulty))
    answers = [(one, _verdict(Speech(findings, one))) for one in (findings.decision, *findings.elsewhere)]
    apart = loss.apart(findings.standings, findings.loss_bound) + faults.sentence(findings.faulty)
    if len(findings.ground.together) < 2:
        found = answers[0][1]
        return Answer(found.headline, found.short, found.rest + apart)
    return _on_grounds(findings, answers, apart)


def _on_grounds(findings: ScenarioFindings, answers: Sequence[tuple[Decision, Answer]], apart: str) -> Answer:
    """The answers for each number of cores that contestants could use, none of which is held against another. Who was
    alone with its number has no answer, but is named."""
    first = answers[0][1]
    compared = [(one, found) for one, found in answers if one.verdict != "unopposed"]
    headlines = [f"{found.headline} on {_cores_of(findings, one)}" for one, found in compared]
    others = "".join(f" {found.sentence}" for _, found in compared if found is not first)
    told = {findings.ground.group_of(one.among[0]) for one, _ in [answers[0], *compared]}
    rest = f"{first.rest}{others}{ground.not_ranked(findings.ground, told)}{apart}"
    return Answer("; ".join(headlines) or "Not compared: different numbers of cores", first.short, rest)


def _cores_of(findings: ScenarioFindings, decision: Decision) -> str:
    group = findings.ground.together[findings.ground.group_of(decision.among[0])]
    return ground.usable_words(group.cores)


# --- figures and loads -------------------------------------------------------------------------------------------


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
    """How the load was offered; closed loop is always named as such. Of a chat, also how its servers deliver, where the
    scenario says that for all of its cells: it weighs more than most differences between models."""
    return _pace(scenario) + _start(scenario) + _anew(scenario) + _deliveries(scenario)


def _deliveries(scenario: Scenario) -> str:
    mode = scenario.server.get("deliveries", scenario.where_possible.get("deliveries"))
    is_chosen = scenario.workload == "chat" and mode is not None and "deliveries" not in scenario.factors
    return f", deliveries {mode}" if is_chosen else ""


def _start(scenario: Scenario) -> str:
    return ", each client sending as soon as it is connected" if scenario.start == "at-once" else ""


def _anew(scenario: Scenario) -> str:
    each = scenario.requests_per_connection
    if each is None:
        return ""
    return f", a new connection for each {'request' if each == 1 else f'{each} requests'}"


def _pace(scenario: Scenario) -> str:
    if scenario.arrivals == "closed":
        rounds = f" in rounds of {duration_words(scenario.round_s)}" if scenario.round_s else ""
        each = "" if scenario.depth == 1 else f", {scenario.depth} in flight per connection"
        return f"closed loop{rounds}{each}"
    looks = (
        f", sent and read every {duration_words(scenario.look_every_s)} (times may be up to twice that too long)"
        if scenario.look_every_s
        else ""
    )
    joined = ", all messages due on a connection in one write" if scenario.write_due == "joined" else ""
    return f"open loop {_offered(scenario)}, {scenario.arrivals} arrivals{looks}{joined}"


def _offered(scenario: Scenario) -> str:
    if "rate" in scenario.factors or "rate-per-connection" in scenario.factors:
        return "at the offered rates"
    if scenario.rate_per_connection is not None:
        return f"at {quantities.rate(scenario.rate_per_connection)} offered on each connection"
    return f"at {quantities.rate(scenario.rate or 0)} offered"


# --- the sentence ------------------------------------------------------------------------------------------------


class Speech:
    """What the sentences of one answer are made of: the first of the scenario unless `decision` is another. `says`
    names a contestant."""

    def __init__(self, findings: ScenarioFindings, decision: Decision | None = None) -> None:
        self.scenario = findings.scenario
        self.family = findings.comparisons
        self.decision = decision or findings.decision
        self.at_least = "at least " if findings.censored else ""
        bound = findings.axes[0].bound if findings.axes else ""
        self.generator_in_it = ", with the generator's own part in it" if bound else ""
        self.higher = findings.better == "higher"
        self.says = {one.contestant: loss.named(one) for one in findings.standings}
        self.qualified = _qualified(findings, self.decision)
        self.one_of = "ranked contestant" if _untold(findings) else "contestant with valid trials"

    def listed(self, names: Sequence[str]) -> str:
        return quantities.listed([self.says[name] for name in names])

    def subject(self) -> str:
        """What is compared, among whom, and under which load."""
        under = f" under {self.scenario.slo}" if self.scenario.slo else ""
        metric = f"{METRICS[self.scenario.metric].title}{under}"
        return f"{metric}{self.qualified} ({load_words(self.scenario)})"

    def superlative(self) -> str:
        return f"the {'highest' if self.higher else 'lowest'} {self.subject()}"


def _qualified(findings: ScenarioFindings, decision: Decision) -> str:
    """Among whom the answer holds, where cores, loss or faults set some apart."""
    mine = findings.ground.group_of(decision.among[0])
    kinds = {one.kind for one in findings.standings if one.ground == mine}
    subject = "all of them" if len(decision.among) > 1 else "it"
    several = len(findings.ground.together) > 1
    used = f"could use {ground.usable_words(findings.ground.together[mine].cores)}" if several else ""
    bound = quantities.share(findings.loss_bound)
    lost = f"lost at most {bound} of their messages" if {0, 1} <= kinds else ""
    of_those = f" of those that {' and '.join(filter(None, [used, lost]))}" if used or lost else ""
    if kinds == {2}:
        return f"{of_those}, though {subject} failed in some trial"
    if 0 not in kinds:
        return f"{of_those}, though {subject} lost more than {bound} of their messages"
    return of_those


def _verdict(speech: Speech) -> Answer:
    found = speech.decision
    leader = speech.says[found.among[0]]
    if found.verdict == "unopposed":
        alone = f"{leader} is the only {speech.one_of}{speech.qualified}; nothing to compare."
        return Answer(leader, alone, "")
    if found.verdict == "winner":
        return Answer(leader, _winner(speech), _elsewhere(speech))
    if found.verdict == "equal":
        return Answer(_whom(found, speech), _equal(speech), _elsewhere(speech))
    if found.verdict == "undecided":
        return Answer(f"Undecided: {_at_most(found)}", _undecided(speech), _elsewhere(speech))
    if not found.front:
        apart = f"No two of {speech.listed(found.among)} share a block: nothing to compare."
        return Answer("Not enough blocks", apart, "")
    return Answer("Not enough blocks", _too_few(speech), "")


def badge(findings: ScenarioFindings) -> str:
    """Return whom to take, in a few words: a name, "Any within 4%", or that it is undecided."""
    found = findings.decision
    if found.verdict in ("winner", "equal"):
        return _whom(found, Speech(findings))
    if found.verdict == "undecided":
        return f"Undecided: {_at_most(found)}"
    return BADGES[found.verdict]


def _whom(found: Decision, speech: Speech) -> str:
    if len(found.taken) == len(found.front) > 1:
        return f"Any within {within_words(found.within)}"
    return " or ".join(speech.says[name] for name in found.taken)


def within_words(factor: float | None) -> str:
    """Return a bound: "4.2%", or "×2.1" from double upwards."""
    if factor is None or not math.isfinite(factor):
        return UNKNOWN
    return f"{quantities.TIMES}{quantities.three_digits(factor)}" if factor >= 2 else quantities.margin(factor)


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
    leader, second = speech.decision.among[:2]
    start = f"Take {speech.says[leader]}: it has {speech.superlative()}"
    one = against(leader, second, speech.family)
    seen = f", {_gap(speech, one)}, the next ({_interval(one)})" if one else ""
    return f"{start}{seen}."


def _equal(speech: Speech) -> str:
    """Whom to take of those that are as good as the best, how closely that is known, and by what they are chosen."""
    found = speech.decision
    far = [name for name in found.tied if name not in found.near]
    rest = (
        f" How {speech.listed(far)} {'compares' if len(far) == 1 else 'compare'} is not known as precisely."
        if far
        else ""
    )
    return f"{_close(speech)}.{rest}{_more_time(found)}{_few_blocks(speech)}"


def _close(speech: Speech) -> str:
    found = speech.decision
    take = " or ".join(speech.says[name] for name in found.taken)
    metric = f"in {speech.subject()}{speech.generator_in_it}"
    within = within_words(found.within)
    if len(found.near) == 1:
        better = f"better {metric}" if found.within == 1 else f"better by more than {within} {metric}"
        return f"Take {take}: no other is {better}"
    alike = f"equal within {within} {metric}"
    if found.near != found.tied:
        alike = f"at most {within} behind the best {metric}"
    if found.taken == found.near:
        return f"{speech.listed(found.near)} are {alike}; take any of them"
    by = ", then ".join(METRICS[metric].short for metric in found.by)
    decide = "decides" if len(found.by) == 1 else "decide"
    return f"Take {take}: {by} {decide} among {speech.listed(found.near)}, which are {alike}"


def _undecided(speech: Speech) -> str:
    found = speech.decision
    cannot = f"{speech.listed(found.tied)} are not proven different in {speech.subject()}{speech.generator_in_it}"
    return f"{cannot}: {_at_most(found)}.{_more_time(found)}{_few_blocks(speech)}"


def _at_most(found: Decision) -> str:
    within = within_words(found.within)
    return "the size of the difference is unknown" if within == UNKNOWN else f"the difference is at most {within}"


def _more_time(found: Decision) -> str:
    """How much longer it would take to decide."""
    if found.blocks_to_settle is None:
        return ""
    blocks = f"{found.blocks_to_settle:,} more block{'s' if found.blocks_to_settle > 1 else ''}"
    if found.seconds_to_settle is None:
        return f" About {blocks} would decide it."
    minutes = math.ceil(found.seconds_to_settle / 60)
    return f" About {minutes:,} more minute{'s' if minutes > 1 else ''} of this question ({blocks}) would decide it."


def _few_blocks(speech: Speech) -> str:
    few = speech.decision.undecided
    return f" There are too few blocks to decide about {speech.listed(few)}." if few else ""


def _elsewhere(speech: Speech) -> str:
    """In what the others are worse and better than the first of those that are taken, or of those that may be."""
    found = speech.decision
    first = speech.says[(found.taken or found.front)[0]]
    costs = [f"{speech.says[one.contestant]} in {_changes(one.worse)}" for one in found.beside if one.worse]
    gains = [f"{speech.says[one.contestant]} in {_changes(one.better)}" for one in found.beside if one.better]
    text = f" Worse than {first}: {'; '.join(costs)}." if costs else ""
    return f"{text} Better than {first}: {'; '.join(gains)}." if gains else text


def _changes(ratios: Sequence[AxisRatio]) -> str:
    told = [f"{METRICS[one.metric].short} ({quantities.percent_change(one.ratio)})" for one in ratios]
    return quantities.listed(told[:MOST_COSTS])


def _too_few(speech: Speech) -> str:
    front = speech.decision.front
    facing = [one for name in front[1:] if (one := against(front[0], name, speech.family))]
    fewest = min((one.blocks for one in facing), default=0)
    leader = speech.says[front[0]]
    start = (
        f"Not enough blocks to say which has {speech.superlative()}: {leader} shares "
        f"{quantities.plural(fewest, 'block')} with a rival, and {FEWEST_BLOCKS} are needed"
    )
    seen = f" Measured, but not proven: {leader} {_gap(speech, facing[0])} ({_interval(facing[0])})." if facing else ""
    return f"{start}.{seen}"


# --- what goes with it -------------------------------------------------------------------------------------------


def evidence(findings: ScenarioFindings) -> tuple[str, ...]:
    """The server's cost, the first beside the last, and the losses."""
    return (*_costs(findings), *loss.evidence(findings.standings, findings.cells, findings.levels))


def _costs(findings: ScenarioFindings) -> tuple[str, ...]:
    """At the heaviest level."""
    mine = findings.ground.group_of(findings.decision.among[0]) if findings.decision.among else 0
    standings = [one for one in findings.standings if one.ground == mine]
    if len(standings) < 2 or not findings.levels:
        return ()
    level = findings.heaviest
    first, last = (findings.cell(one.contestant, level.key) for one in (standings[0], standings[-1]))
    if not (first and last and first.cost and last.cost):
        return ()
    a, b = first.cost, last.cost
    place = f"ranked last ({standings[-1].rank})" if standings[-1].rank != standings[0].rank else "not ranked lower"
    says = {one.contestant: loss.named(one) for one in (standings[0], standings[-1])}
    switches = [_switches(one) for one in (a, b)]
    cpu = (
        f"At {level.label}, {says[first.contestant]} spends {quantities.three_digits(a.cpu_us.value)} µs of server CPU "
        f"per message ({quantities.three_digits(a.cpu_system_us.value)} µs of it in the kernel); "
        f"{says[last.contestant]}, "
        f"{place}, {quantities.three_digits(b.cpu_us.value)} µs "
        f"({quantities.three_digits(b.cpu_system_us.value)} µs)."
    )
    rest = (
        f"Context switches per message: {switches[0]} against {switches[1]}; "
        f"peak memory {quantities.memory(a.rss_peak_bytes.value)} against {quantities.memory(b.rss_peak_bytes.value)}; "
        f"threads {a.threads} against {b.threads}."
    )
    return (cpu, rest)


def _switches(cost: Cost) -> str:
    if cost.voluntary_switches is None or cost.involuntary_switches is None:
        return "an unknown number"
    return quantities.three_digits(cost.voluntary_switches.value + cost.involuntary_switches.value)


# --- before you quote it -----------------------------------------------------------------------------------------


def caveats(findings: ScenarioFindings) -> tuple[str, ...]:
    """What a reader must know before quoting the answer."""
    return (
        *company.sentences(findings.company),
        *excluded.caveats(findings.unsafe),
        *excluded.unranked_caveats(findings.unranked),
        *ground.sentences(findings.ground),
        *ground.load_shares(findings.ground, findings.cells),
        *_bounds(findings),
        *capacity.caveats(findings.capacity),
        *constant_latency.sentences(findings),
        *_loop(findings),
        *_client_contestants(findings),
        *_prescribed_rate(findings.scenario),
        *_missing(findings),
        *_gaps(findings),
        *_unsteady(findings),
        *uneven_threads.sentences(findings),
        *warmups.sentences(findings),
        *turns.sentences(findings),
        *loss.caveats(findings.cells, findings.loss_bound),
        *_added_options(findings),
        *_threads_each(findings),
        *_sampled_threads(findings),
    )


def _bounds(findings: ScenarioFindings) -> list[str]:
    """Why figures are bounds."""
    labels = {level.key: level.label for level in findings.levels}
    told = []
    for key in dict.fromkeys(one.level for one in findings.censored):
        who = [f"{one.contestant} ({one.share:.0%} of a core)" for one in findings.censored if one.level == key]
        told.append(
            f"At {labels[key]} the generator was at its limit with {quantities.listed(who)}, so these figures measure "
            "the generator too: rates are 'at least' and response times 'at most', for every contestant, and the true "
            "differences may be larger."
        )
    for bar in findings.error_bars:
        parts = [f"it sent messages {quantities.duration(bar.send_ns)} late"] if findings.scenario.scheduled else []
        if bar.receive_ns is None:
            parts.append("how late it read replies is unknown")
        elif bar.receive_ns:
            parts.append(f"it read replies {quantities.duration(bar.receive_ns)} after they had arrived")
        told.append(
            f"At {labels[bar.level]} the generator's own delay is {bar.share:.0%} of the shortest {bar.percentile} "
            f"({quantities.duration(bar.of)}): {', and '.join(parts)}. So these response times are 'at most', and the "
            "ratios between servers may be larger."
        )
    return told


def _loop(findings: ScenarioFindings) -> list[str]:
    told = []
    if findings.scenario.arrivals == "closed":
        told.append(
            "Closed loop: each connection waits for its reply before it sends again, so a slow server gets fewer "
            "requests. "
            + (
                "In a round, all connections that have their replies send at the same moment, and the generator reads "
                "replies on its own cores: its work is part of each latency."
                if findings.scenario.scheduled
                else "Its latencies are service times under full load, not what users at a fixed rate would see."
            )
        )
    if findings.scenario.scheduled and (late := _say_send_lag(findings.cells)):
        told.append(_send_lag(late))
    return told


def _say_send_lag(cells: Sequence[CellFigures]) -> list[CellFigures]:
    """Return those whose load said how late it sent: a load program of others does not."""
    return [cell for cell in cells if cell.send_lag.max_ns > 0]


def _send_lag(cells: Sequence[CellFigures]) -> str:
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


def lags(scenario: Scenario, cells: Sequence[CellFigures]) -> str:
    """The generator's own part of the response times: what it sends late, where it has a schedule, and what it reads
    late."""
    told = []
    if scenario.scheduled and (late := _say_send_lag(cells)):
        told.append(f"send lag p99 at most {quantities.duration(max(cell.send_lag.p99_ns for cell in late))}")
    received = [cell.receive_lag for cell in cells if cell.receive_lag is not None]
    if received:
        told.append(f"receive lag p50 at most {quantities.duration(max(lag.p50_ns for lag in received))}")
    return ", ".join(told)


def _client_contestants(findings: ScenarioFindings) -> list[str]:
    scenario = findings.scenario
    if scenario.client == GENERATOR and not set(scenario.factors.get("client", ())) - {GENERATOR}:
        return []
    if findings.instruments:
        own = (
            f"The figures of {quantities.listed(findings.instruments)} are those of an external load program, which "
            "verifies no reply and does not report how late it sends and reads."
        )
        return [own]
    text = (
        "The load came from client contestants: a client's own time per request is part of every figure. Servers "
        "are compared with the same client only."
    )
    return [text]


def _prescribed_rate(scenario: Scenario) -> list[str]:
    if not scenario.scheduled or scenario.metric != "throughput":
        return []
    return ["The rate was fixed: equal throughput means that every server kept up, not that all are equally fast."]


def _missing(findings: ScenarioFindings) -> list[str]:
    """Who is not ranked, or on fewer trials than planned."""
    told = []
    untold = _untold(findings)
    if untold:
        title = METRICS[findings.scenario.metric].title
        told.append(f"Not ranked, as their valid trials have no figure for {title}: {quantities.listed(untold)}.")
    if absent := [name for name in findings.absent if name not in untold]:
        told.append(f"Not ranked, as they have no valid trial: {quantities.listed(absent)}.")
    if fewer := [f"{one.contestant} ({one.missing})" for one in findings.standings if one.missing]:
        told.append(f"Compared on fewer cells than planned (trials excluded): {quantities.listed(fewer)}.")
    return told


def _untold(findings: ScenarioFindings) -> list[str]:
    """Whose trials are valid and have no figure of the metric, such as CPU where a server's process is not known."""
    measured = {one.contestant for one in findings.cells}
    return [name for name in findings.absent if name in measured]


def _gaps(findings: ScenarioFindings) -> list[str]:
    """Whole levels that a ranked contestant did not finish though others did. A capacity lies below the loads that
    nobody could carry any more: no valid trial there is what is to be seen."""
    if findings.capacity is not None:
        return []
    finished = {(one.contestant, one.level) for one in findings.cells}
    gaps = [
        f"{one.contestant} has no valid trial at {level.label}: its rank covers the other loads only."
        for level in findings.levels
        if any(key == level.key for _, key in finished)
        for one in findings.standings
        if (one.contestant, level.key) not in finished
    ]
    if len(gaps) > MOST_GAPS:
        return [
            f"In {len(gaps)} cases a contestant has no valid trial at a load: its rank covers the other loads only."
        ]
    return gaps


def _unsteady(findings: ScenarioFindings) -> list[str]:
    """Whose level moved within windows more often than chance does."""
    return [
        f"{one.contestant} was not steady: its throughput or response time moved within the window in {one.moved} of "
        f"{quantities.plural(one.trials, 'trial')}."
        for one in findings.unsteady
    ]


def _added_options(findings: ScenarioFindings) -> list[str]:
    """What the harness set beside the options of the cell, and for whom."""
    texts = [f"{one.option} {one.value} ({quantities.listed(one.contestants)})" for one in findings.added_options]
    return [f"Set only for the servers that support it: {'; '.join(texts)}."] if texts else []


def _threads_each(findings: ScenarioFindings) -> list[str]:
    """Which contestants got a thread for each connection."""
    return [
        f"{one.contestant} serves at most as many clients at a time as it has threads, and a further client "
        f"waits until "
        "another leaves. So it was started with a thread for each connection: "
        f"{quantities.listed([str(count) for count in one.seen])} threads in all."
        for one in findings.threads_each
    ]


def _sampled_threads(findings: ScenarioFindings) -> list[str]:
    """Whose context switches and waits are estimates from some of its threads."""
    return [
        f"Context switches and waits of {one.contestant} are estimates where it has thousands of threads: "
        f"{one.read} of up to {one.threads:,}, chosen at random, were read."
        for one in findings.sampled_threads
    ]
