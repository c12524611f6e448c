"""`netdyno capacity`: find the highest rate at which a server meets an objective."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from netdyno.analysis.capacity.judge_capacity import Verdict
from netdyno.analysis.found.capacity import Ending
from netdyno.base import quantities
from netdyno.base.errors import UserError
from netdyno.base.paths import build_dir
from netdyno.base.units import clock_after, duration_words, format_duration
from netdyno.commands import run as run_command
from netdyno.commands.flags import Asked
from netdyno.contestants import contestants
from netdyno.experiment import plan, scenarios
from netdyno.experiment.capacity import CAPACITY, RATE, SEARCH
from netdyno.machine import topology
from netdyno.model import objective as slo
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import CapacityPlan, Experiment, Scenario
from netdyno.model.objective import Objective
from netdyno.model.observation import ForeignLoad
from netdyno.model.trial import Trial
from netdyno.present.findings_json import convert_company
from netdyno.present.plain import make_plain
from netdyno.present.prose import company, ground
from netdyno.present.prose.capacity import OUTCOME_WORDS, describe_answer, explain_failure, format_rate
from netdyno.present.terminal.console import Console
from netdyno.run import capacity_search, needed

DEFAULT_START_HZ = 1000.0
USUAL_STEPS = (16, 46)
"""The steps without noise and with the most that was tried (docs/adr/capacity.md)."""
ANSWERS: tuple[Ending, ...] = ("capacity", "at_most", "none", "generator")
"""Endings that are an answer, and so give exit code 0."""


@dataclass(frozen=True, kw_only=True)
class CapacityRequest:
    """The request of `netdyno capacity`; `asked` has a value for each option of SEARCH that has one."""

    server: str
    asked: Asked
    results: Path
    as_json: bool
    foreign_load: ForeignLoad


def run(request: CapacityRequest, argv: Sequence[str]) -> int:
    """Search. Return 0 with an answer, 1 where too many trials did not count, 128 + signal when interrupted. Raises
    UserError."""
    build = build_dir()
    server = contestants.find_by_name(contestants.discover(build=build), request.server)
    if server.manifest.apart:
        exclusion = "unsafe" if server.manifest.unsafe else "not ranked"
        raise UserError(f"{server.name} is {exclusion}, so its capacity is not measured")
    search_experiment = build_experiment(request.asked, server)
    objective = slo.parse(request.asked["slo"], "--slo")
    (server,) = needed.make(search_experiment, [server], [], build).servers
    console = Console(stderr=request.as_json, highlight=False, soft_wrap=True)
    console.print(search_experiment.question, markup=False)
    console.print(load_words(search_experiment.scenarios[0]), markup=False)
    console.print(estimate_time(search_experiment.scenarios[0], datetime.now().astimezone()), markup=False)
    steps: list[dict[str, object]] = []

    def show(trial: Trial, verdict: Verdict) -> None:
        steps.append(as_json(trial, verdict))
        console.print(format_step(len(steps), trial, verdict), markup=False)

    outcome = capacity_search.execute(
        search_experiment,
        server,
        results=request.results,
        build=build,
        argv=argv,
        foreign_load=request.foreign_load,
        show=show,
        note=lambda text: console.print(text, markup=False),
    )
    conclusion = describe_answer(server.name, objective, outcome.answer, outcome.why) if outcome.answer else ""
    report = run_command.write_report([str(outcome.folder)], request.results) if steps else None
    if outcome.answer is None:
        print(f"interrupted: {quantities.plural(len(steps), 'trial')} stored in {outcome.folder}", file=sys.stderr)
    else:
        console.print(f"{conclusion}.", markup=False, style="bold")
        for text in (*ground.describe_quota(topology.read().quota), *company.list_caveats(outcome.company)):
            console.print(text, markup=False)
    if report is not None:
        console.print(f"report: {report}", markup=False)
    if request.as_json:
        print(json.dumps(_encode_search(request, outcome, conclusion, report, steps)), flush=True)
    if outcome.answer is None:
        return outcome.interrupted
    return 0 if outcome.answer.ending in ANSWERS else 1


def build_experiment(values: Asked, server: Contestant) -> Experiment:
    """Return the search as an experiment of one scenario. Raises UserError naming the option."""
    objective = slo.parse(values["slo"], "--slo")
    workload = _choose_workload(values.get("workload"), server)
    limits = _plan_search(values, objective)
    given = [option for option in SEARCH if option.name in values]
    fields = {option.field: values[option.name] for option in given if option.place in ("own", "load", "shared")}
    search_fields: dict[str, object] = {
        "name": workload,
        "workload": workload,
        "contestants": (server.name,),
        "metric": CAPACITY,
        "factors": {RATE: (capacity_search.to_level(limits.start_hz),)},
        "server": {option.name: values[option.name] for option in given if option.place == "server"},
    }
    return Experiment(
        name=f"capacity-{server.name}",
        question=f"Up to which rate does {server.name} meet {objective.text}?",
        scenarios=(scenarios.build("capacity", fields | search_fields),),
        seed=values["seed"],
        capacity=limits,
    )


def _choose_workload(requested: str | None, server: Contestant) -> str:
    """Return the requested workload, or else the first that the server speaks."""
    known = server.manifest.workloads
    if requested is None:
        return known[0]
    if requested not in known:
        raise UserError(
            f"--workload: {server.name} does not speak {requested!r} (it speaks {quantities.listed(known)})"
        )
    return requested


def _plan_search(values: Asked, objective: Objective) -> CapacityPlan:
    """Return the bounds of the search: below the least rate a window has too few messages for the objective's
    percentile."""
    least = float(math.ceil(objective.least_messages() / values["duration"] - 1e-9))
    start, most = values.get("start", max(DEFAULT_START_HZ, least)), values["most"]
    if start < least:
        raise UserError(
            f"--start: at {format_rate(start)}/s a window of {duration_words(values['duration'])} has fewer than "
            f"{objective.least_messages()} messages, too few for {objective.text}; "
            f"begin at {format_rate(least)}/s or take a "
            "longer --duration"
        )
    if most < start:
        raise UserError(
            f"--most: {format_rate(most)} is below the rate that the search starts at, {format_rate(start)}"
        )
    return CapacityPlan(
        slo=values["slo"],
        start_hz=start,
        least_hz=min(least, start),
        most_hz=most,
        resolution=values["resolution"],
        needed=values["needed"],
    )


# --- the output -------------------------------------------------------------------------------------------------------


def load_words(scenario: Scenario) -> str:
    """Describe the load that all steps share."""
    options = "".join(f", server {name} {value}" for name, value in scenario.server.items())
    return (
        f"{scenario.workload} over {quantities.plural(scenario.connections, 'connection')}, {scenario.size}-byte "
        f"messages, "
        f"{scenario.arrivals} arrivals{options}; each step is a fresh server, "
        f"{format_duration(scenario.warmup_s)} of warm-up and {format_duration(scenario.duration_s)} measured"
    )


def estimate_time(scenario: Scenario, start: datetime) -> str:
    """Estimate the duration and the end of the search."""
    step_s = scenario.warmup_s + scenario.duration_s + plan.TRIAL_OVERHEAD_S + plan.CANARY_S
    first, last = (clock_after(start, steps * step_s) for steps in USUAL_STEPS)
    few, many = USUAL_STEPS
    ends = f"between {first} and {last}" if first != last else f"at about {first}"
    return (
        f"a search usually takes {few} to {many} steps of {step_s:.1f} s, and so ends {ends}; longer where the machine "
        "disturbs trials"
    )


def format_step(number: int, trial: Trial, verdict: Verdict) -> str:
    """Format one step for the terminal."""
    columns = [f"{number:>3}  {format_rate(float(trial.levels[RATE])):>9}/s  {OUTCOME_WORDS[verdict.outcome]:<10}"]
    if trial.load is not None and trial.load.latency.response_ns.count:
        response = trial.load.latency.response_ns
        figures = {"p50": response.p50, "p99": response.p99, "p99.9": response.p999}
        columns.append("  ".join(f"{name} {quantities.duration(value):>8}" for name, value in figures.items()))
    columns.append(explain_failure(verdict.why))
    return "  ".join(columns).rstrip()


def as_json(trial: Trial, verdict: Verdict) -> dict[str, object]:
    """Return one step for --json."""
    response = trial.load.latency.response_ns if trial.load else None
    figures = {} if response is None else {name: getattr(response, name) for name in ("mean", "p50", "p99", "p999")}
    return {
        "rate_hz": trial.levels[RATE],
        "outcome": verdict.outcome,
        "why": explain_failure(verdict.why),
        "completed_hz": trial.load.requests.per_second if trial.load else None,
        "response_ns": figures,
    }


def _encode_search(
    request: CapacityRequest,
    outcome: capacity_search.SearchResult,
    conclusion: str,
    report: Path | None,
    steps: list[dict[str, object]],
) -> dict[str, object]:
    answer = outcome.answer
    return {
        "run_id": outcome.run_id,
        "report": str(report) if report else None,
        "server": request.server,
        "slo": request.asked["slo"],
        "ending": answer.ending if answer else "interrupted",
        "holds": asdict(answer.holds) if answer and answer.holds else None,
        "fails": asdict(answer.fails) if answer and answer.fails else None,
        "stopped_at_hz": answer.stopped_at if answer else None,
        "sentence": conclusion,
        "company": make_plain(convert_company(outcome.company)),
        "steps": steps,
    }
