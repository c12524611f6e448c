"""`netdyno advise`: the server to take for a workload, from stored runs that cover it, else from a new run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless
from netdyno.kit.files import write_whole
from netdyno.kit.paths import build_dir, generator_path
from netdyno.kit.temporary import temporary_folder
from netdyno.measure.machine import digests, environment, pinning
from netdyno.measure.run import needed
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.present.prose.wrong_reply import describe_error
from netdyno.present.terminal.console import open_for_sentences
from netdyno.question import experiment, plan, workload
from netdyno.question.contestants import contestants
from netdyno.question.workload import Workload
from netdyno.store import read
from netdyno.verbs import advise_questions, candidates
from netdyno.verbs import run as run_command
from netdyno.verbs.own_servers import NO_SERVERS, MeasureRequest, OwnServers, has_servers

if TYPE_CHECKING:  # its statistics are heavy
    from netdyno.analysis.found.advice import AcrossFactor, Advice
    from netdyno.verbs.advised import StoredAdvice

FILE_NAME, NEIGHBOURS_NAME = "advise.toml", f"{workload.NEIGHBOURS}.toml"
"""In a run's folder, its experiment as a file for ./netdyno run."""
ANSWER_NAME = "advice.json"
NEIGHBOURS_SHARE = 0.3
"""Share of the time that half and double of the workload's values may take."""
MOST_COMPARED = 4
"""Contestants that are measured at those values, the recommended one included."""


class AdviseRequest(MeasureRequest, frozen=True, kw_only=True):
    """The request. `given`: the workload as far as flags say it; `file` says the rest. `own`: servers of the user's own
    among the candidates. `again`: no stored run is an answer. `along`: half and double of its values are measured
    too. `argv` is the command line that its runs are stored with."""

    given: Workload
    file: Path | None
    own: OwnServers = NO_SERVERS
    again: bool = False
    along: bool = True
    argv: Sequence[str] = ()


class AdviceAnswer(msgspec.Struct, frozen=True):
    """The advice with the folder of the run that it rests on (`stored`: it existed before); and half and double of the
    workload's values, with the folder of that run; or `why` they were not measured, unless that was the user's
    choice."""

    advice: Advice
    run_id: str
    folder: Path
    stored: StoredAdvice | None = None
    across: Sequence[AcrossFactor] | None = None
    neighbours_folder: Path | None = None
    why: str = ""


def run(request: AdviseRequest, argv: Sequence[str]) -> int:
    """Print the advice. Return exit code 0 with an answer, 1 without one, 128 + signal when interrupted."""
    build = build_dir()
    known = contestants.discover(build=build)
    requested: Workload = {**(workload.read(request.file) if request.file else {}), **request.given}
    if not requested and not has_servers(request.own):
        requested = advise_questions.ask_questions(lambda given: candidates.select_allowed(known, given))
        argv = [*argv, *workload.list_words(requested)]
    own, requested = candidates.settle_workload(request.own, requested)
    request = replace(request, own=own, given=requested, argv=argv)
    workload.check(requested)
    servers = candidates.choose_candidates(known, request.own, requested)
    console = open_for_sentences(sys.stderr if request.as_json else sys.stdout)
    notes: list[str] = []
    is_measured = request.again or has_servers(request.own)  # what a command line starts may have changed
    stored_answer = None if is_measured else answer_from_stored(request, servers, build, notes)
    answer = stored_answer or answer_from_run(request, servers)
    if isinstance(answer, int):
        if request.as_json:
            print(json.dumps(as_json(None, requested, ())), flush=True)
        return answer
    lines = format_answer(answer, requested, notes)
    for line in lines:
        console.print(line)
    document = as_json(answer, requested, lines)
    if answer.folder.is_dir():
        write_whole(answer.folder / ANSWER_NAME, json.dumps(document, indent=1, allow_nan=False) + "\n")
    if request.as_json:
        print(json.dumps(document, allow_nan=False), flush=True)
    return 0 if answer.advice.take else 1


def answer_from_stored(
    request: AdviseRequest, servers: Sequence[Contestant], build: Path, notes: list[str]
) -> AdviceAnswer | None:
    """Answer from a stored run; None where none covers it. `notes` gets why those that would were not used."""
    if not read.run_ids(request.results):
        return None
    from netdyno.verbs import advised

    names = tuple(server.name for server in servers)
    parsed = experiment.parse(workload.write_toml(request.given, names, main_s(request)), "advise", "advise")
    ready = needed.make(parsed, servers, (), build).servers
    cores = pinning.choose()
    machine = environment.collect(parsed, cores, build) | {
        "programs": digests.digest_programs(generator_path(build), ready)
    }
    question = advised.AdviceRequest(
        parsed, workload.advise_of(request.given), names, machine, pinning.count_server_cores(cores)
    )
    stored = advised.find(question, request.results, notes)
    if stored is None:
        return None
    answer = AdviceAnswer(stored.advice, stored.run.run_id, stored.path.parent, stored)
    if not request.along or stored.near or stored.between:
        return answer
    if there := advised.find_half_and_double(question, stored.advice.take[0], request.results):
        return replace(answer, across=there[0], neighbours_folder=there[1])
    return _measure_neighbours(request, answer, servers, read_budget_s(request))


def read_budget_s(request: AdviseRequest) -> float:
    return float(request.given.get("time-budget", workload.TIME_BUDGET_S))


def main_s(request: AdviseRequest) -> float:
    """The part of the budget for the workload itself."""
    return read_budget_s(request) * (1 - NEIGHBOURS_SHARE if request.along else 1.0)


def answer_from_run(request: AdviseRequest, servers: Sequence[Contestant]) -> AdviceAnswer | int:
    """Answer from a new run; return its exit code where there is no answer."""
    from netdyno.analysis.analysis import derive_advice

    text = workload.write_toml(request.given, [server.name for server in servers], main_s(request))
    done, folder = _run_experiment(
        request, FILE_NAME, text, servers, lambda parsed: replace(parsed, advise=workload.advise_of(request.given))
    )
    if done.analysis is None or done.exit_code > 128:
        return done.exit_code
    advice = derive_advice(done.stored, done.analysis)
    if advice is None or not advice.take:
        return 1
    answer = AdviceAnswer(advice, done.stored.run_id, folder)
    if not request.along:
        return answer
    return _measure_neighbours(request, answer, servers, read_budget_s(request) - done.seconds)


def _run_experiment(
    request: AdviseRequest,
    name: str,
    text: str,
    servers: Sequence[Contestant],
    adapt: Callable[[Experiment], Experiment] = lambda parsed: parsed,
) -> tuple[run_command.RunResult, Path]:
    """Run the experiment of this text by the ordinary runner; the text stays in the run's folder. Return its result and
    its folder."""
    names = [server.name for server in servers]
    with temporary_folder("advise") as temporary:
        path = temporary / name
        path.write_text(text, encoding="utf-8")
        known_names = tuple(server.name for server in servers if server.own is None)
        done = run_command.carry_out(
            run_command.request_untraced(request, str(path), request.own, contestants=known_names),
            request.argv,
            lambda parsed, _servers, _clients: experiment.choose_contestants(
                adapt(parsed), lambda present: [server for server in present if server in names]
            ),
        )
    folder = request.results / done.stored.run_id
    (folder / name).write_text(text, encoding="utf-8")
    return done, folder


def _measure_neighbours(
    request: AdviseRequest, answer: AdviceAnswer, servers: Sequence[Contestant], left_s: float
) -> AdviceAnswer:
    """Measure the recommended server beside the next, at half and double of as many values as there is time for."""
    from netdyno.analysis.advice.judge_advice import compare_across_factor
    from netdyno.analysis.trials.split import split

    advice = answer.advice
    names = dict.fromkeys((*advice.take, *(standing.contestant for standing in advice.findings.standings)))
    ranked = [server for name in names for server in servers if server.name == name]
    if left_s > 0 and (len(ranked) < 2 or not workload.list_factors(request.given)):
        return answer
    try:
        chosen = _choose_what_fits(request.given, ranked, left_s) if left_s > 0 else None
        if chosen is None:
            return replace(answer, why="there was no time left")
        factors, (first, *rivals) = chosen
        text = workload.write_neighbours_toml(request.given, factors, (first, *rivals), left_s)
        compared = [server for server in ranked if server.name in (first, *rivals)]
        done, folder = _run_experiment(request, NEIGHBOURS_NAME, text, compared)
    except UserError as error:  # double of a value may be more than this machine, or an option, allows
        why = harmless(describe_error(error))
        print(f"netdyno: half and double of the values were not measured: {why}", file=sys.stderr)
        return answer
    if done.analysis is None or done.exit_code > 128:
        return answer
    to_keep, parts = workload.advise_of(request.given), split(outcomes.judge_run(done.stored))
    across = [compare_across_factor(part, to_keep, first, rivals) for part in parts]
    return replace(answer, across=across, neighbours_folder=folder)


def _choose_what_fits(
    requested: Workload, ranked: Sequence[Contestant], left_s: float
) -> tuple[list[str], list[str]] | None:
    """Return factors and contestants, the best first: a factor at least, then as many of both as there is time for."""
    by_name = {server.name: server for server in ranked}
    for count in range(min(MOST_COMPARED, len(ranked)), 1, -1):
        names, factors = list(by_name)[:count], list[str]()
        for factor in workload.list_factors(requested):
            text = workload.write_neighbours_toml(requested, [*factors, factor], names, left_s)
            if plan.estimate_seconds(experiment.parse(text, "neighbours", "neighbours"), by_name) <= left_s:
                factors.append(factor)
        if factors:
            return factors, names
    return None


def format_answer(answer: AdviceAnswer, requested: Workload, notes: Sequence[str]) -> list[str]:
    from netdyno.present.prose import advice as prose

    lines = ["", *prose.describe_advice(answer.advice)]
    stored = answer.stored
    near = prose.describe_changes(answer.across or ())
    if stored is not None and stored.near:
        near = prose.describe_stored_changes(
            answer.advice.take,
            [(neighbour.option, neighbour.value, neighbour.take) for neighbour in stored.near],
            stored.value,
        )
    lines += near or (prose.explain_unmeasured(answer.why),)
    origin = prose.describe_stored_run(stored.run.started_at, stored.between) if stored else prose.MADE
    neighbours = f"; the neighbouring values on {answer.neighbours_folder}" if answer.neighbours_folder else ""
    lines.append(f"This is based on {answer.folder}, {origin}{neighbours}.")
    lines += _describe_cores(requested)
    return [*lines, *notes]


def _describe_cores(requested: Workload) -> list[str]:
    local_cores = pinning.count_server_cores(pinning.choose())
    expected = requested.get("cores", local_cores)
    if expected == local_cores:
        return []
    cores = quantities.plural(local_cores, "core")
    return [f"Here the server has {cores}, and yours will have {expected}: the effect of that was not measured."]


def as_json(answer: AdviceAnswer | None, requested: Workload, lines: Sequence[str]) -> dict[str, Any]:
    """Return the answer for programs (docs/advise.md), or that there is none."""
    from netdyno.present.export import advice as export

    metric, objective = workload.choose_metric(requested), workload.find_objective(requested)
    return {
        **(
            export.make_document(answer.advice, answer.across)
            if answer
            else export.make_empty_document(metric, objective)
        ),
        "run": answer.run_id if answer else None,
        "folder": str(answer.folder) if answer else None,
        "beside_folder": str(answer.neighbours_folder) if answer and answer.neighbours_folder else None,
        "stored": answer is not None and answer.stored is not None,
        "text": [line for line in lines if line],
    }
