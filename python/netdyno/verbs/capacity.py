"""`netdyno capacity`: find the highest rate at which a server meets an objective; several servers in turn."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

import msgspec
from rich import box
from rich.table import Table

from netdyno.analysis.capacity.compare_capacities import find_carried
from netdyno.analysis.capacity.fill import summarise_search
from netdyno.analysis.capacity.judge_capacity import Verdict, judge_capacity
from netdyno.analysis.found.capacity import Answer, Ending, Searched
from netdyno.analysis.found.notices import Company
from netdyno.analysis.notices.single_contestants import find_neighbours
from netdyno.analysis.trials.split import split
from netdyno.kit import quantities
from netdyno.kit.paths import build_dir
from netdyno.measure.machine import topology
from netdyno.measure.run import capacity_search, needed, preparation
from netdyno.measure.run.hosts import RunSetup
from netdyno.measure.run.preparation import PreparedRun
from netdyno.measure.run.progress import Progress, RunEvent
from netdyno.measure.trial.first_requests import FirstReplies
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.metrics import METRICS
from netdyno.model.objective import Objective
from netdyno.model.objective import parse as parse_objective
from netdyno.model.trial import Trial
from netdyno.present.findings_json import convert_company
from netdyno.present.plain import make_plain
from netdyno.present.prose import ground
from netdyno.present.prose.capacity import advise_longer, describe_answer, explain_failure, format_step, introduce
from netdyno.present.prose.capacity_comparison import describe_comparison, format_carried
from netdyno.present.prose.company import list_caveats
from netdyno.present.prose.progress import describe_event
from netdyno.present.terminal.console import Console, open_for_sentences
from netdyno.question import plan
from netdyno.question.capacity import CAPACITY, RATE
from netdyno.question.contestants import contestants
from netdyno.store import read
from netdyno.store.schema import FILE_NAME
from netdyno.verbs import run as run_command
from netdyno.verbs.capacity_plan import narrow, plan_searches
from netdyno.verbs.own_servers import ServersRequest

ANSWERS: tuple[Ending, ...] = ("capacity", "at_most", "none", "generator")
"""Endings that are an answer, and so give exit code 0. A generator at its limit is one only above a rate that holds."""


class CompletedSearch(msgspec.Struct, frozen=True):
    """The result of a search: its steps for programs and its trials, its answer with that in words, its report, and the
    company that it was measured in. `interrupted`: the exit code of the signal that cut it short, else 0."""

    server: Contestant
    run_id: str
    interrupted: int
    answer: Answer | None
    steps: list[dict[str, object]]
    sentence: str
    report: Path | None
    trials: list[Trial]
    company: Company | None


class StepDisplay:
    """Prints a line for each step of a search, and remembers its trials."""

    def __init__(self, console: Console, objective: Objective, scenario: Scenario) -> None:
        self.trials: list[Trial] = []
        self.steps: list[dict[str, object]] = []
        self._console, self._objective, self._scenario = console, objective, scenario

    def begin(self, event: RunEvent) -> None: ...
    def trial_started(self, cell: plan.Cell, progress: Progress) -> None: ...
    def throughput(self, completed: int, seconds: float) -> None: ...
    def close(self) -> None: ...

    def trial_done(self, trial: Trial, _progress: Progress) -> None:
        verdict = judge_capacity(trial, self._objective, self._scenario)
        self.trials.append(trial)
        self.steps.append(as_json(trial, verdict))
        self._console.print(format_step(len(self.steps), trial, verdict), markup=False)

    def note(self, event: RunEvent) -> None:
        self._console.print(describe_event(event), markup=False)


def run(request: ServersRequest, argv: Sequence[str]) -> int:
    """Search for the capacity of each server, in turn. Return 0 with all answers, 1 where one has none, 128 +
    signal when interrupted. Raises UserError."""
    build = build_dir()
    experiment, servers = plan_searches(request, contestants.discover(build=build))
    servers = needed.make(experiment, servers, [], build).servers
    console = open_for_sentences(sys.stderr if request.as_json else sys.stdout)
    for text in introduce(experiment, len(servers), datetime.now().astimezone()):
        console.print(text, markup=False)
    searches = _search_all(request, experiment, servers, console, argv, build)
    if len(servers) > 1 and not searches[-1].interrupted:
        _print_comparison(searches, console)
    if request.as_json:
        documents = [_encode_search(request, search) for search in searches]
        print(json.dumps(documents[0] if len(servers) == 1 else {"searches": documents}), flush=True)
    return searches[-1].interrupted or (
        0 if all(search.answer and is_answered(search.answer) for search in searches) else 1
    )


def is_answered(answer: Answer) -> bool:
    """Whether a search says what a server carries. Pure."""
    return answer.ending in ANSWERS and (answer.ending == "none" or answer.holds is not None)


def _search_all(
    request: ServersRequest,
    experiment: Experiment,
    servers: Sequence[Contestant],
    console: Console,
    argv: Sequence[str],
    build: Path,
) -> list[CompletedSearch]:
    """Search for the capacity of each server, up to an interruption."""
    searches: list[CompletedSearch] = []
    first: FirstReplies | None = None
    capacity_search.check_servers(experiment, servers)
    for server in servers:
        setup = RunSetup(experiment=experiment, servers=[server], build=build, foreign_load=request.foreign_load)
        name = f"{CAPACITY}-{server.name}"
        prepared = preparation.prepare(setup, request.results, name, everyone=servers, first=first)
        first = prepared.first
        (server,) = first.describe_servers([server])
        replies = first.by_server.get(server.name)
        rate_hz = None if replies is None else replies.rate_hz
        if len(servers) > 1:
            console.print(f"{server.name}:", markup=False)
        search = _search(
            request, narrow(first.experiment, server, request.given, rate_hz), server, prepared, console, argv
        )
        searches.append(search)
        if search.answer is None:
            break
    return searches


def _search(
    request: ServersRequest,
    experiment: Experiment,
    server: Contestant,
    prepared: PreparedRun,
    console: Console,
    argv: Sequence[str],
) -> CompletedSearch:
    """Search for the capacity of a server, and print its steps and its answer."""
    objective = parse_objective(request.given["objective"], "--objective")
    display = StepDisplay(console, objective, experiment.scenarios[0])
    outcome = capacity_search.execute(experiment, server, prepared, build=build_dir(), argv=argv, display=display)
    searched = None if outcome.interrupted else _read_answer(outcome.folder)
    answer = searched.answer if searched else None
    sentence = describe_answer(server.name, objective, answer, searched.why) if searched and answer else ""
    report = run_command.write_report([str(outcome.folder)], request.results) if display.steps else None
    company = find_neighbours([trial for trial in display.trials if not outcomes.disturbances(trial)])
    if answer is None:
        stored = quantities.plural(len(display.steps), "trial")
        print(f"interrupted: {stored} stored in {outcome.folder}", file=sys.stderr)
    else:
        console.print(f"{sentence}.", markup=False, style="bold")
        for text in (*advise_longer(answer, experiment.capacity), *_list_caveats(company)):
            console.print(text, markup=False)
    if report is not None:
        console.print(f"report: {report}", markup=False)
    return CompletedSearch(
        server, outcome.run_id, outcome.interrupted, answer, display.steps, sentence, report, display.trials, company
    )


def _read_answer(folder: Path) -> Searched | None:
    """Return the answer of a stored search."""
    (part,) = split(outcomes.judge_run(read.load(folder / FILE_NAME)))
    return summarise_search(part)


def _list_caveats(company: Company | None) -> list[str]:
    return [*ground.describe_quota(topology.read().quota), *list_caveats(company)]


# --- the output -------------------------------------------------------------------------------------------------------


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


def _print_comparison(searches: Sequence[CompletedSearch], console: Console) -> None:
    """Print what each server carries and what that costs, and what a knob gains."""
    carried = {
        search.server.name: find_carried(search.answer)
        for search in searches
        if search.answer is not None and is_answered(search.answer)
    }
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for heading in ("server", "carries", "p99 there", "CPU a message", "memory"):
        table.add_column(heading, justify="left" if heading == "server" else "right")
    for search in searches:
        table.add_row(search.server.name, format_carried(carried.get(search.server.name)), *_list_costs(search))
    console.print(table)
    for text in describe_comparison([search.server for search in searches], carried):
        console.print(text, markup=False)


def _list_costs(search: CompletedSearch) -> tuple[str, ...]:
    """Return the median of the response time, the CPU of a message and the peak of the memory at the highest rate that
    held."""
    answer = search.answer
    rate_hz = answer.holds.rate_hz if answer and answer.holds else None
    there = [(trial, trial.load) for trial in search.trials if trial.load and trial.levels[RATE] == rate_hz]
    times = [load.latency.response_ns.p99 for _, load in there if load.latency.response_ns.count]
    cpu = METRICS["cpu"].pooled(there) if there else None
    memory = [amount for trial, load in there if (amount := METRICS["memory"].value(trial, load)) is not None]
    return (
        quantities.duration(median(times)) if times else quantities.DASH,
        METRICS["cpu"].speak(cpu) if cpu is not None else quantities.DASH,
        METRICS["memory"].speak(max(memory)) if memory else quantities.DASH,
    )


def _encode_search(request: ServersRequest, search: CompletedSearch) -> dict[str, object]:
    answer = search.answer
    return {
        "run_id": search.run_id,
        "report": str(search.report) if search.report else None,
        "server": search.server.name,
        "objective": request.given["objective"],
        "ending": answer.ending if answer else "interrupted",
        "holds": msgspec.structs.asdict(answer.holds) if answer and answer.holds else None,
        "fails": msgspec.structs.asdict(answer.fails) if answer and answer.fails else None,
        "stopped_at_hz": answer.stopped_at if answer else None,
        "sentence": search.sentence,
        "company": make_plain(convert_company(search.company)),
        "steps": search.steps,
    }
