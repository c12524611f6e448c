"""The announcement of a run, before its first trial: its questions, its trials, and how long it takes. Pure."""

from __future__ import annotations

from netdyno.kit import quantities
from netdyno.kit.units import clock_after, format_clock
from netdyno.measure.run.progress import RunPlan
from netdyno.model import levels
from netdyno.model.experiment import Experiment
from netdyno.question import blocks, plan


def format_announcement(run: RunPlan) -> str:
    """Announce the questions of a run, its trials, its duration, and the expected time of its end."""
    experiment, begins, traces_s = run.experiment, run.begins, run.traces_s
    cells = sum(len(scenario.contestants) for scenario in experiment.scenarios for _ in levels.combinations(scenario))
    budget_s = experiment.time_budget_s
    shortest = blocks.fix_number(experiment, blocks.find_fewest) if budget_s is None else experiment
    longest = blocks.fix_number(experiment, blocks.find_most)
    seconds, most_seconds = (
        plan.estimate_seconds(planned, run.servers, run.clients) + traces_s for planned in (shortest, longest)
    )
    if budget_s is not None:
        most_seconds = max(seconds, min(most_seconds, budget_s))
    twins = len(plan.choose_twins(experiment, run.servers, run.clients))
    twice = f"; {quantities.plural(twins, 'trial')} twice, for the A/A control" if twins else ""
    budget = f" with budget {experiment.budget}" if experiment.budget != "normal" else ""
    number, takes = quantities.plural(shortest.blocks, "block"), f"about {format_clock(seconds)}"
    ends = f"at about {clock_after(begins, seconds)}"
    precise = any(scenario.precision is not None for scenario in experiment.scenarios)
    if budget_s is not None and longest.blocks > experiment.blocks and not precise and not experiment.flips:
        number = f"{experiment.blocks} or more blocks"
        expected_s, limit_s = max(seconds, budget_s + traces_s), experiment.time_limit_s
        takes, ends = f"about {format_clock(expected_s)}", f"at about {clock_after(begins, expected_s)}"
        if limit_s is not None and limit_s <= expected_s:  # a gate, which ends when it has decided
            takes, ends = f"up to {format_clock(limit_s)}", f"at the latest at {clock_after(begins, limit_s)}"
        elif limit_s is not None:
            takes += f", up to {format_clock(limit_s)} on a disturbed machine"
            ends += f", at the latest at {clock_after(begins, limit_s + traces_s)}"
    elif experiment.flips:
        number = f"{experiment.blocks} or more blocks"
        takes, ends = f"at least {format_clock(seconds)}", f"not before {clock_after(begins, seconds)}"
        if budget_s is not None:
            takes = f"at most {format_clock(max(seconds, budget_s + traces_s))}"
            ends = f"at the latest at {clock_after(begins, max(seconds, budget_s + traces_s))}"
    elif longest.blocks > shortest.blocks:
        number = f"{shortest.blocks} to {quantities.plural(longest.blocks, 'block')}"
        takes = f"between {format_clock(seconds)} and {format_clock(most_seconds)}"
        ends = f"between {clock_after(begins, seconds)} and {clock_after(begins, most_seconds)}"
    longer = "" if experiment.time_limit_s is not None else "; longer where the machine disturbs trials"
    return (
        f"{experiment.name}{budget}: {experiment.question}\n"
        f"It answers {describe_questions(experiment)}.\n"
        f"It makes {number} of {quantities.plural(cells, 'trial')} over "
        f"{quantities.listed(run.links or levels.links(experiment))} "
        f"({quantities.plural(len(run.servers), 'contestant')}{twice}).\n"
        f"It takes {takes} (minutes:seconds), and ends {ends}{longer}."
    )


MOST_SCENARIOS_NAMED = 8


def describe_questions(experiment: Experiment) -> str:
    """Describe its scenarios with the metric of each, and the number of published claims that are judged."""
    questions = [f"{scenario.name} (by {scenario.metric})" for scenario in experiment.scenarios]
    if len(questions) > MOST_SCENARIOS_NAMED:
        questions = [f"{len(questions)} scenarios, from {questions[0]} to {questions[-1]}"]
    several = any(len(scenario.contestants) > 1 for scenario in experiment.scenarios)
    what = "which server is best, by how much and at what cost" if several else "what the server does and what it costs"
    claims = len(experiment.claims)
    claims_text = f", and whether {quantities.plural(claims, 'published claim')} hold{'s' if claims == 1 else ''} here"
    along = [f"{flip.first} or {flip.second} by {flip.along}" for flip in experiment.flips]
    flips_text = f", and where the better one changes: {quantities.listed(along)}" if along else ""
    return f"{what}: {quantities.listed(questions)}{claims_text if claims else ''}{flips_text}"
