"""What to take for a workload, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from netdyno.analysis.advice.along import Along
from netdyno.analysis.advice.found import Advice, Kept, Outcome, TermKept
from netdyno.analysis.flips.found import FlipFound
from netdyno.base import quantities
from netdyno.base.quantities import listed, plural
from netdyno.model import objective
from netdyno.model.levels import level_words
from netdyno.model.metrics import METRICS
from netdyno.present.prose import company, flips, ground, verdict
from netdyno.statistics.block_counts import FEWEST_BLOCKS

MOST_NAMED = 4
MADE = "made for this question"
BUSY = 0.03
"""Of the cores, what others used: as the audit foreign_load has it."""
OUTCOMES: Mapping[Outcome, str] = {"meets": "is met", "breaks": "is not met", "open": "is undecided"}


def sentences(advice: Advice) -> tuple[str, ...]:
    """Whom to take and what the others cost; how sure that is; the objective; who was left out on the way."""
    return (
        _answer(advice),
        *_certainty(advice),
        *_objective(advice),
        *_left_out(advice),
        *_bounds(advice),
        *_busy(advice),
    )


def _answer(advice: Advice) -> str:
    """As the report has it; but where nobody is shown to be close to the best, the first is to be taken, whatever the
    other axes say."""
    found = verdict.answer(advice.findings)
    decision = advice.findings.decision
    narrowed = len(decision.among) < len(advice.kept) and advice.among != "breaks"
    whose = f"{'are shown to meet' if advice.among == 'meets' else 'may meet'} {_wanted(advice)}" if narrowed else ""
    if decision.verdict == "unopposed" and narrowed:
        shown = "that is shown to" if advice.among == "meets" else "that may"
        return f"Take {decision.among[0]}: it is the only server {shown} meet {_wanted(advice)}.{found.rest}"
    of = f"Of those that {whose}: " if narrowed else ""
    if not advice.by_metric:
        return of + found.sentence
    speech = verdict.Speech(advice.findings)
    others = [name for name in decision.front if name not in decision.taken]
    close = "shown to be close to the best" if advice.settled else "the best measured"
    seen = f"Take {' or '.join(decision.taken)}, {close} in {speech.subject()}"
    named = _some([speech.says[name] for name in others])
    return f"{of}{seen}; {named} {'is' if len(others) == 1 else 'are'} not proven worse in that.{found.rest}"


def _wanted(advice: Advice) -> str:
    return objective.parse(advice.slo, "slo").text


def _certainty(advice: Advice) -> tuple[str, ...]:
    if not advice.take:
        return ()
    metric = METRICS[advice.findings.scenario.metric]
    first = advice.take[0]
    rest = " A longer --time-budget would narrow this." if advice.may_tell_more else ""
    after = plural(advice.blocks, "block")
    whose = ""
    if advice.among != "breaks" and any(one.outcome == "breaks" for one in advice.kept):
        whose = f" that may meet {_wanted(advice)}"
        if not any(one.outcome != "breaks" and one.contestant != first for one in advice.kept):
            return (f"No other server{whose} is left after {after}.{rest}",)
    if advice.hidden:
        untold = f"How far {first} is from the best in {metric.title} is unknown, and more time would not show it"
        return (f"{untold}: the generator is at its limit with {_some(advice.hidden)}.",)
    if advice.behind is None:
        few = (
            f" It takes {FEWEST_BLOCKS} blocks of all: name fewer contestants." if advice.blocks < FEWEST_BLOCKS else ""
        )
        return (f"How far {first} is from the best in {metric.title} is unknown after {after}.{few}{rest}",)
    if advice.behind == 1 and len(advice.findings.decision.front) > 1:
        return (f"No other{whose} is better than {first} in {metric.title} (95%, {after}).{rest}",)
    if advice.behind == 1:
        worse = f"Every other server{whose} is shown to be worse in {metric.title}"
        return (f"{worse}, after {after}.{rest}",)
    most = quantities.margin(advice.behind)
    times = "" if advice.behind < 2 else ", which is a very wide bound"
    than = f"No server{whose} is better than {first} in {metric.title}"
    return (f"{than} by more than {most} (95%, {after}){times}.{rest}",)


# --- the objective -------------------------------------------------------------------------------------------------


def _objective(advice: Advice) -> tuple[str, ...]:
    """Whether it is met, by whom, and how the one to take stands to it."""
    if not advice.slo:
        return ()
    wanted = _wanted(advice)
    by: dict[Outcome, list[str]] = {"meets": [], "open": [], "breaks": []}
    for one in advice.kept:
        by[one.outcome].append(one.contestant)
    said = {
        "meets": f"{wanted} is met by {_some(by['meets'])}.",
        "open": f"No server is shown to meet {wanted}.",
        "breaks": f"No server meets {wanted}; the ranking above is of servers that do not.",
    }[advice.among]
    if by["open"]:
        said += f" Undecided: {_some(by['open'])}."
    if by["breaks"] and advice.among != "breaks":
        said += f" Not met by {_some(by['breaks'])}."
    named = [one for one in advice.kept if one.contestant in advice.take[:1]]
    if advice.among == "breaks":
        named = sorted(advice.kept, key=lambda one: one.terms[0].value)[:1]
    return (said, *(kept(one) for one in named))


def kept(one: Kept) -> str:
    """A contestant's own figures."""
    return f"{one.contestant}: {listed([_term(term) for term in one.terms])}, over {plural(one.blocks, 'block')}."


def _term(one: TermKept) -> str:
    speak = one.term.speak
    interval = one.interval
    told = "no interval" if interval is None else f"95% interval {speak(interval.low)} to {speak(interval.high)}"
    return f"{one.term.name} {speak(one.value)} ({told})"


def _some(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMED + 1:
        return listed(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"


def _left_out(advice: Advice) -> tuple[str, ...]:
    by_blocks: dict[int, list[str]] = {}
    for one in advice.left_out:
        by_blocks.setdefault(one.blocks, []).append(one.contestant)
    if not by_blocks:
        return ()
    told = [f"{_some(names)} after {plural(blocks, 'block')}" for blocks, names in sorted(by_blocks.items())]
    return (f"Dropped during the run, as none of them can be the best: {'; '.join(told)}.",)


def _bounds(advice: Advice) -> tuple[str, ...]:
    if not advice.findings.censored:
        return ()
    who = _some(sorted({one.contestant for one in advice.findings.censored}))
    return (f"The generator was at its limit with {who}: figures are bounds, and true differences may be larger.",)


def _busy(advice: Advice) -> tuple[str, ...]:
    quota = ground.quota_sentences(advice.findings.ground.quota_cores)
    if advice.findings.company:
        return (*quota, *company.sentences(advice.findings.company))
    if advice.foreign < BUSY:
        return quota
    used = quantities.share(advice.foreign)
    return (
        *quota,
        f"Other programs used {used} of the machine's cores during a trial: all times are longer for that.",
    )


# --- where it changes ----------------------------------------------------------------------------------------------


def near(found: Sequence[Along]) -> tuple[str, ...]:
    """Near which values the answer changes; one sentence for each factor that was looked along."""
    return tuple(_along(one) for one in found)


def not_looked(why: str = "") -> str:
    return f"Whether the answer changes near these values was not measured{why and f', because {why}'}."


def _along(one: Along) -> str:
    first, last = (level_words(one.factor, level) for level in (one.levels[0], one.levels[-1]))
    span = f"between {first} and {last}"
    flipping = [each for each in one.beside if each.flips.verdict == "flip"]
    untold = [_other(one, each) for each in one.beside if each.flips.verdict == "open"]
    if flipping:
        said = f"Across {one.factor}, the answer changes. {' '.join(f'{flips.sentence(each)}.' for each in flipping)}"
    elif not one.beside:
        said = f"Across {one.factor}, nothing could be compared {span}."
    elif len(untold) < len(one.beside):
        no_flip = [_other(one, each) for each in one.beside if each.flips.verdict == "none"]
        said = f"Across {one.factor}, the answer does not change {span}, compared with {listed(no_flip)}."
    else:
        said = f"Across {one.factor}, {span}, no change of the answer is proven."
    if untold and len(untold) < len(one.beside):
        said += f" Compared with {listed(untold)}, these blocks cannot decide."
    return said + _outcomes(one)


def _other(one: Along, each: FlipFound) -> str:
    return each.second if each.first == one.first else each.first


def _outcomes(one: Along) -> str:
    told = [
        f"at {level_words(one.factor, level)} it {OUTCOMES[outcome]}"
        for level, outcome in zip(one.levels, one.outcomes, strict=True)
        if outcome is not None
    ]
    return f" The objective: {'; '.join(told)}." if told else ""


def near_stored(
    take: Sequence[str], found: Sequence[tuple[str, float, Sequence[str]]], values: Mapping[str, float]
) -> tuple[str, ...]:
    """What a stored run says of its next values: of each the option, the value, and whom to take there."""
    return tuple(_near_stored(take, option, at, others, values[option]) for option, at, others in found)


def values(option: str, some: Iterable[float]) -> list[str]:
    return [_value(option, one) for one in some]


def _near_stored(take: Sequence[str], option: str, at: float, others: Sequence[str], value: float) -> str:
    ends = f"between {_value(option, min(at, value))} and {_value(option, max(at, value))}"
    if set(take) & set(others):
        return f"The answer does not change {ends}: {listed(others)} there as well."
    return f"The answer changes {ends}: {listed(others)} there."


def _value(option: str, value: float) -> str:
    said = quantities.duration(1e9 * value) if option == "server.service-time" else f"{value:,.10g}"
    return level_words(option.replace("_", "-"), said)


def stored(started_at: str, between: tuple[str, float, float] | None) -> str:
    """What was there already, and how it covers the workload."""
    if between is None:
        return f"a stored run of {started_at}"
    option, *ends = between
    at = " and ".join(values(option, ends))
    return f"a stored run of {started_at}, which did not measure this workload, but {at}, with the same answer at both"
