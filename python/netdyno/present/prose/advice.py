"""Advice for a workload, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from netdyno.analysis.found.advice import AcrossFactor, Advice, Kept, ObjectiveOutcome, TermKept
from netdyno.kit import quantities
from netdyno.kit.quantities import list_first, listed, plural
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.model import objective
from netdyno.model.levels import level_words
from netdyno.model.metrics import METRICS
from netdyno.present.prose import company, flips, ground, verdict

MADE = "made for this question"
BUSY = 0.03
"""The share of the cores that other programs used, as in the audit foreign_load."""
OUTCOMES: Mapping[ObjectiveOutcome, str] = {"meets": "is met", "breaks": "is not met", "open": "is undecided"}


def describe_advice(advice: Advice) -> tuple[str, ...]:
    """Say which to take and what the others cost; how certain that is; the objective; which were dropped on the way."""
    return (
        _describe_choice(advice),
        *_describe_certainty(advice),
        *_describe_objective(advice),
        *_list_dropped(advice),
        *_explain_bounds(advice),
        *_explain_other_load(advice),
    )


def _describe_choice(advice: Advice) -> str:
    """Answer as the report does; but where none is shown to be close to the best, recommend the first, whatever the
    other axes say."""
    answer = verdict.answer(advice.findings)
    decision = advice.findings.decision
    narrowed = len(decision.eligible) < len(advice.kept) and advice.outcome != "breaks"
    condition = (
        f"{'are shown to meet' if advice.outcome == 'meets' else 'may meet'} {_format_objective(advice)}"
        if narrowed
        else ""
    )
    if decision.verdict == "unopposed" and narrowed:
        shown = "that is shown to" if advice.outcome == "meets" else "that may"
        return (
            f"Take {decision.eligible[0]}: it is the only server {shown} meet {_format_objective(advice)}.{answer.rest}"
        )
    scope = f"Of those that {condition}: " if narrowed else ""
    if not advice.by_metric:
        return scope + answer.sentence
    speech = verdict.Speech(advice.findings)
    rivals = [name for name in decision.front if name not in decision.recommended]
    close = "shown to be close to the best" if advice.settled else "the best measured"
    recommended = f"Take {' or '.join(decision.recommended)}, {close} in {speech.name_subject()}"
    named = list_first([speech.says[name] for name in rivals])
    return f"{scope}{recommended}; {named} {'is' if len(rivals) == 1 else 'are'} not proven worse.{answer.rest}"


def _format_objective(advice: Advice) -> str:
    return objective.parse(advice.objective, "objective").text


def _describe_certainty(advice: Advice) -> tuple[str, ...]:
    if not advice.take:
        return ()
    metric = METRICS[advice.findings.scenario.metric]
    first = advice.take[0]
    if len(advice.findings.scenario.contestants) == 1:
        return (f"{first} is the only candidate: name another, or a knob (--vary).",)
    rest = " A longer --time-budget would show more." if advice.may_tell_more else ""
    after = plural(advice.blocks, "block")
    condition = ""
    if advice.outcome != "breaks" and any(contestant.outcome == "breaks" for contestant in advice.kept):
        condition = f" that may meet {_format_objective(advice)}"
        if not any(contestant.outcome != "breaks" and contestant.contestant != first for contestant in advice.kept):
            return (f"No other server{condition} is left after {after}.{rest}",)
    if advice.hidden:
        unknown = f"How far {first} is from the best in {metric.title} is unknown, and more time would not show it"
        return (f"{unknown}: the generator is at its limit with {list_first(advice.hidden)}.",)
    if advice.behind is None:
        few = f" Each needs {FEWEST_BLOCKS} blocks: name fewer contestants." if advice.blocks < FEWEST_BLOCKS else ""
        return (f"How far {first} is from the best in {metric.title} is unknown after {after}.{few}{rest}",)
    if advice.behind == 1 and len(advice.findings.decision.front) > 1:
        return (f"No server{condition} is better than {first} in {metric.title} (95%, {after}).{rest}",)
    if advice.behind == 1:
        worse = f"Every other server{condition} is shown to be worse in {metric.title}"
        return (f"{worse}, after {after}.{rest}",)
    most = quantities.margin(advice.behind)
    times = "" if advice.behind < 2 else ", which is a very wide bound"
    bound = f"{first} is at most {most} behind the best server{condition} in {metric.title}"
    return (f"{bound} (95%, {after}){times}.{rest}",)


# --- the objective -------------------------------------------------------------------------------------------------


def _describe_objective(advice: Advice) -> tuple[str, ...]:
    """Say whether the objective is met, by which servers, and the figures of the recommended one."""
    if not advice.objective:
        return ()
    objective_text = _format_objective(advice)
    by_outcome: dict[ObjectiveOutcome, list[str]] = {"meets": [], "open": [], "breaks": []}
    for contestant in advice.kept:
        by_outcome[contestant.outcome].append(contestant.contestant)
    text = {
        "meets": f"{objective_text} is met by {list_first(by_outcome['meets'])}.",
        "open": f"No server is shown to meet {objective_text}.",
        "breaks": f"No server meets {objective_text}; the ranking above is of servers that do not.",
    }[advice.outcome]
    if by_outcome["open"]:
        text += f" Undecided: {list_first(by_outcome['open'])}."
    if by_outcome["breaks"] and advice.outcome != "breaks":
        text += f" Not met by {list_first(by_outcome['breaks'])}."
    named = [contestant for contestant in advice.kept if contestant.contestant in advice.take[:1]]
    if advice.outcome == "breaks":
        named = sorted(advice.kept, key=lambda contestant: contestant.terms[0].value)[:1]
    return (text, *(describe_figures(contestant) for contestant in named))


def describe_figures(server: Kept) -> str:
    """Describe a contestant's own figures."""
    return (
        f"{server.contestant}: {listed([_describe_term(term) for term in server.terms])}, "
        f"over {plural(server.blocks, 'block')}."
    )


def _describe_term(term: TermKept) -> str:
    speak = term.term.speak
    interval = term.interval
    interval_text = (
        "no interval" if interval is None else f"95% interval {speak(interval.low)} to {speak(interval.high)}"
    )
    return f"{term.term.name} {speak(term.value)} ({interval_text})"


def _list_dropped(advice: Advice) -> tuple[str, ...]:
    by_blocks: dict[int, list[str]] = {}
    for dropped in advice.left_out:
        by_blocks.setdefault(dropped.blocks, []).append(dropped.contestant)
    if not by_blocks:
        return ()
    groups = [f"{list_first(names)} after {plural(blocks, 'block')}" for blocks, names in sorted(by_blocks.items())]
    return (f"Servers dropped because they cannot be the best: {'; '.join(groups)}.",)


def _explain_bounds(advice: Advice) -> tuple[str, ...]:
    if not advice.findings.censored:
        return ()
    contestants = list_first(sorted({cell.contestant for cell in advice.findings.censored}))
    return (
        f"The generator was at its limit with {contestants}: figures are bounds, and true differences may be larger.",
    )


def _explain_other_load(advice: Advice) -> tuple[str, ...]:
    quota = ground.describe_quota(advice.findings.ground.quota_cores)
    if advice.findings.company:
        return (*quota, *company.list_caveats(advice.findings.company))
    if advice.foreign < BUSY:
        return quota
    used = quantities.share(advice.foreign)
    return (
        *quota,
        f"Other programs used {used} of the machine's cores during trials, so all times are longer.",
    )


# --- where it changes ----------------------------------------------------------------------------------------------


def describe_changes(axes: Sequence[AcrossFactor]) -> tuple[str, ...]:
    """Say near which values the answer changes; one sentence for each factor that was varied."""
    return tuple(_describe_across(across) for across in axes)


def explain_unmeasured(why: str = "") -> str:
    return f"Whether the answer changes near these values was not measured{why and f', because {why}'}."


def _describe_across(across: AcrossFactor) -> str:
    first, last = (level_words(across.factor, level) for level in (across.levels[0], across.levels[-1]))
    span = f"between {first} and {last}"
    flipping = [flip for flip in across.flips if flip.flips.verdict == "flip"]
    open_to = [flips.find_opponent(flip, across.first) for flip in across.flips if flip.flips.verdict == "open"]
    if flipping:
        text = (
            f"Across {across.factor}, the answer changes. "
            f"{' '.join(f'{flips.describe_flip(flip)}.' for flip in flipping)}"
        )
    elif not across.flips:
        text = f"Across {across.factor}, nothing could be compared {span}."
    elif len(open_to) < len(across.flips):
        no_flip = [flips.find_opponent(flip, across.first) for flip in across.flips if flip.flips.verdict == "none"]
        text = f"Across {across.factor}, the answer does not change {span}, compared with {listed(no_flip)}."
    else:
        text = f"Across {across.factor}, {span}, no change of the answer is proven."
    if open_to and len(open_to) < len(across.flips):
        text += f" Compared with {listed(open_to)}, the answer is undecided."
    return text + _list_outcomes(across)


def _list_outcomes(across: AcrossFactor) -> str:
    outcomes = [
        f"at {level_words(across.factor, level)} it {OUTCOMES[outcome]}"
        for level, outcome in zip(across.levels, across.outcomes, strict=True)
        if outcome is not None
    ]
    return f" The objective: {'; '.join(outcomes)}." if outcomes else ""


def describe_stored_changes(
    take: Sequence[str], neighbours: Sequence[tuple[str, float, Sequence[str]]], values: Mapping[str, float]
) -> tuple[str, ...]:
    """Say whether the answer changes at the next values of a stored run: `neighbours` has for each the option, the
    value, and which to take there."""
    return tuple(
        _compare_with_stored(take, option, place, recommended, values[option])
        for option, place, recommended in neighbours
    )


def list_values(option: str, numbers: Iterable[float]) -> list[str]:
    return [_format_level(option, number) for number in numbers]


def _compare_with_stored(
    take: Sequence[str], option: str, place: float, recommended: Sequence[str], value: float
) -> str:
    ends = f"between {_format_level(option, min(place, value))} and {_format_level(option, max(place, value))}"
    if set(take) & set(recommended):
        return f"The answer does not change {ends}: {listed(recommended)} there as well."
    return f"The answer changes {ends}: {listed(recommended)} there."


def _format_level(option: str, value: float) -> str:
    text = quantities.duration(1e9 * value) if option == "server.service-time" else f"{value:,.10g}"
    return level_words(option.replace("_", "-"), text)


def describe_stored_run(started_at: str, between: tuple[str, float, float] | None) -> str:
    """Describe the stored run that was used, and how it covers the workload."""
    if between is None:
        return f"a stored run of {started_at}"
    option, *ends = between
    places = " and ".join(list_values(option, ends))
    return (
        f"a stored run of {started_at}, which did not measure this workload, but {places}, with the same answer at both"
    )
