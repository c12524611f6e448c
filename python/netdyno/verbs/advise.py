"""`netdyno advise`: the server to take for a workload, from stored runs that cover it, else from a new run."""

from __future__ import annotations

import fnmatch
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import typer
from msgspec.structs import replace

from netdyno.kit import quantities
from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.escape import harmless
from netdyno.kit.files import write_whole
from netdyno.kit.paths import build_dir, generator_path
from netdyno.kit.temporary import temporary_folder
from netdyno.measure.machine import digests, environment, pinning
from netdyno.measure.run import needed
from netdyno.model import transports
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.observation import ForeignLoad
from netdyno.present.terminal.console import Console
from netdyno.question import experiment, plan, workload
from netdyno.question.contestants import codesize, contestants
from netdyno.question.workload import Workload
from netdyno.store import read
from netdyno.verbs import own_servers
from netdyno.verbs import run as run_command
from netdyno.verbs.own_servers import NO_SERVERS, OwnServers, has_servers

if TYPE_CHECKING:  # its statistics are heavy
    from netdyno.analysis.found.advice import Advice, Along
    from netdyno.verbs.advised import StoredAdvice

FILE_NAME, BESIDE_NAME = "advise.toml", f"{workload.BESIDE}.toml"
"""In a run's folder, its experiment as a file for ./netdyno run."""
ANSWER_NAME = "advice.json"
SHARE_ALONG = 0.3
"""Share of the time that half and double of the workload's values may take."""
MOST_BESIDE = 4
"""Contestants that are measured at those values, the recommended one included."""


class AdviseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request. `given`: the workload as far as flags say it; `file` says the rest. `own`: servers of the user's own
    among the candidates. `again`: no stored run is an answer. `along`: half and double of its values are measured
    too."""

    given: Workload
    file: Path | None
    results: Path
    as_json: bool
    foreign_load: ForeignLoad
    own: OwnServers = NO_SERVERS
    again: bool = False
    along: bool = True


class Rests(NamedTuple):
    """The run that an answer rests on. `stored`: it existed before."""

    run: str
    folder: Path
    stored: StoredAdvice | None = None


class NeighbourRun(NamedTuple):
    """Half and double of the workload's values, and the folder of that run; or `why` they were not measured,
    unless that was the user's choice."""

    along: Sequence[Along] | None = None
    folder: Path | None = None
    why: str = ""


class AdviceAnswer(NamedTuple):
    advice: Advice
    rests: Rests
    beside: NeighbourRun = NeighbourRun()


def run(request: AdviseRequest, argv: Sequence[str]) -> int:
    """Print the advice. Return exit code 0 with an answer, 1 without one, 128 + signal when interrupted."""
    requested: Workload = {**(workload.read(request.file) if request.file else {}), **request.given}
    if not requested and not has_servers(request.own):
        requested = ask_questions()
    request, requested = settle_workload(request, requested)
    workload.check(requested)
    build = build_dir()
    servers = choose_candidates(contestants.discover(build=build), request.own, requested)
    console = Console(stderr=request.as_json, highlight=False, soft_wrap=True)
    notes: list[str] = []
    is_measured = request.again or has_servers(request.own)  # what a command line starts may have changed
    stored_answer = None if is_measured else answer_from_stored(requested, servers, request, argv, build, notes)
    answer = stored_answer or answer_from_run(requested, servers, request, argv)
    if isinstance(answer, int):
        if request.as_json:
            print(json.dumps(describe_no_answer(requested)), flush=True)
        return answer
    lines = format_answer(answer, requested, notes)
    for line in lines:
        console.print(line)
    document = as_json(answer, lines)
    if (folder := answer.rests.folder).is_dir():
        write_whole(folder / ANSWER_NAME, json.dumps(document, indent=1, allow_nan=False) + "\n")
    if request.as_json:
        print(json.dumps(document, allow_nan=False), flush=True)
    return 0 if answer.advice.take else 1


def settle_workload(request: AdviseRequest, requested: Workload) -> tuple[AdviseRequest, Workload]:
    """Return the request and the workload that the user's own servers speak: http unless it says otherwise. Raises
    UserError for a service time, which they do not get."""
    if not has_servers(request.own):
        return request, requested
    if "service-time" in requested:
        raise UserError("--service-time: your own server does its own work; leave --service-time out")
    if requested.get("fan-out") != "room":
        requested = {"speaks": own_servers.SPEAKS_HTTP, **requested}
    spoken = None if "send" in request.own.requests else str(requested.get("speaks", "chat"))
    return replace(request, own=msgspec.structs.replace(request.own, workload=spoken)), requested


def choose_candidates(
    known: Sequence[Contestant], described: OwnServers, requested: Workload
) -> tuple[Contestant, ...]:
    """Return netdyno's own servers that are allowed, and the user's own. netdyno's can only repeat the URL of a
    request, so where something else is requested they are candidates only by name. Raises UserError where there is
    none."""
    own = own_servers.resolve(described, [server.name for server in known])
    if not own:
        return select_allowed(known, requested)
    of_others = [
        pattern
        for pattern in requested.get("contestants", ())
        if not any(fnmatch.fnmatchcase(server.name, pattern) for server in own)
    ]
    echoes = described.requests.keys() <= {"verify"} and described.requests.get("verify", "echo") == "echo"
    if not of_others and ("contestants" in requested or not echoes):
        return own
    return (*select_allowed(known, {**requested, "contestants": of_others or ("*",)}), *own)


def select_allowed(servers: Sequence[Contestant], requested: Workload) -> tuple[Contestant, ...]:
    """Return the servers that speak the workload, can be started and are in an allowed language. Raises UserError where
    there is none."""
    scenario = "chat" if requested.get("fan-out") == "room" else str(requested.get("speaks", "rpc"))
    patterns = requested.get("contestants", ("*",))
    named = contestants.select(servers, patterns)
    carriers = requested.get("transports", workload.TRANSPORTS_ASKED)
    for name in carriers:
        if name not in transports.TRANSPORTS:
            raise UserError(f"--transports: unknown transport {name!r}{did_you_mean(name, transports.TRANSPORTS)}")
    able = [
        server
        for server in named
        if server.available and scenario in server.manifest.workloads and transports.of(server).name in carriers
    ]
    if languages := requested.get("languages"):
        written = {
            program.name: program.language for program in codesize.describe(able, ()) if program.kind == "server"
        }
        known = sorted({language.lower() for language in written.values() if language})
        for language in languages:
            if language.lower() not in known:
                raise UserError(f"--languages: no server is written in {language!r}{did_you_mean(language, known)}")
        chosen_languages = {language.lower() for language in languages}
        able = [server for server in able if written.get(server.name, "").lower() in chosen_languages]
    if not able:
        names = [server.name for server in named]
        carrier_names = " or ".join(carriers)
        if len(names) == 1:
            raise UserError(f"{names[0]} does not support {scenario} over {carrier_names} here")
        subject = f"neither {names[0]} nor {names[1]}" if len(names) == 2 else f"none of {quantities.listed(names)}"
        raise UserError(f"{subject} supports {scenario} over {carrier_names} here")
    return tuple(able)


# --- a stored run --------------------------------------------------------------------------------------------------


def answer_from_stored(
    requested: Workload,
    servers: Sequence[Contestant],
    request: AdviseRequest,
    argv: Sequence[str],
    build: Path,
    notes: list[str],
) -> AdviceAnswer | None:
    """Answer from a stored run; None where none covers it. `notes` gets why those that would were not used."""
    if not read.run_ids(request.results):
        return None
    from netdyno.verbs import advised

    names = tuple(server.name for server in servers)
    parsed = experiment.parse(workload.write_toml(requested, names, main_s(requested, request)), "advise", "advise")
    ready = needed.make(parsed, servers, (), build).servers
    cores = pinning.choose()
    machine = environment.collect(parsed, cores, build) | {
        "programs": digests.digest_programs(generator_path(build), ready)
    }
    question = advised.AdviceRequest(
        parsed, workload.advise_of(requested), names, machine, pinning.count_server_cores(cores)
    )
    stored = advised.find(question, request.results, notes)
    if stored is None:
        return None
    answer = AdviceAnswer(stored.advice, Rests(stored.run.run_id, stored.path.parent, stored))
    if not request.along or stored.near or stored.between:
        return answer
    if along_there := advised.find_half_and_double(question, stored.advice.take[0], request.results):
        return answer._replace(beside=NeighbourRun(*along_there))
    return answer._replace(
        beside=_measure_beside(requested, stored.advice, servers, read_budget_s(requested), request, argv)
    )


# --- a new run -----------------------------------------------------------------------------------------------------


def read_budget_s(requested: Workload) -> float:
    return float(requested.get("time-budget", workload.TIME_BUDGET_S))


def main_s(requested: Workload, request: AdviseRequest) -> float:
    """The part of the budget for the workload itself."""
    return read_budget_s(requested) * (1 - SHARE_ALONG if request.along else 1.0)


def answer_from_run(
    requested: Workload,
    servers: Sequence[Contestant],
    request: AdviseRequest,
    argv: Sequence[str],
) -> AdviceAnswer | int:
    """Answer from a new run; return its exit code where there is no answer."""
    from netdyno.analysis.analysis import derive_advice

    text = workload.write_toml(requested, [server.name for server in servers], main_s(requested, request))

    def adapt(parsed: Experiment) -> Experiment:
        return workload.set_advise(parsed, requested)

    done, folder = _run_experiment(text, FILE_NAME, request, argv, adapt, servers)
    if done.exit_code > 128 or done.analysis is None:
        return done.exit_code
    stored_run = read.load(read.find(request.results, str(done.line["run_id"])))
    advice = derive_advice(stored_run)
    if advice is None or not advice.take:
        return 1
    answer = AdviceAnswer(advice, Rests(stored_run.run_id, folder))
    if not request.along:
        return answer
    left_s = read_budget_s(requested) - plan.sum_seconds(stored_run.all_trials)
    return answer._replace(beside=_measure_beside(requested, advice, servers, left_s, request, argv))


def _run_experiment(
    text: str,
    name: str,
    request: AdviseRequest,
    argv: Sequence[str],
    adapt: Callable[[Experiment], Experiment],
    servers: Sequence[Contestant],
) -> tuple[run_command.RunResult, Path]:
    """Run the experiment of this text by the ordinary runner; the text stays in the run's folder."""
    with temporary_folder("advise") as temporary:
        path = temporary / name
        path.write_text(text, encoding="utf-8")
        run_request = run_command.RunRequest(
            experiment=str(path),
            asked={},
            results=request.results,
            as_json=request.as_json,
            foreign_load=request.foreign_load,
            trace="never",
            contestants=tuple(server.name for server in servers if server.own is None),
            own=request.own,
        )
        done = run_command.carry_out(
            run_request,
            argv,
            lambda parsed, _servers, _clients: _keep(adapt(parsed), [server.name for server in servers]),
        )
    folder = request.results / str(done.line["run_id"])
    (folder / name).write_text(text, encoding="utf-8")
    return done, folder


def _keep(parsed: Experiment, names: Sequence[str]) -> Experiment:
    """Return the experiment with these contestants alone."""
    scenarios = (
        msgspec.structs.replace(scenario, contestants=tuple(name for name in scenario.contestants if name in names))
        for scenario in parsed.scenarios
    )
    return msgspec.structs.replace(parsed, scenarios=tuple(scenarios))


def _measure_beside(
    requested: Workload,
    advice: Advice,
    servers: Sequence[Contestant],
    left_s: float,
    request: AdviseRequest,
    argv: Sequence[str],
) -> NeighbourRun:
    """Measure the recommended server beside the next, at half and double of as many values as there is time for."""
    from netdyno.analysis.advice.along import compare_across_factor
    from netdyno.analysis.trials.split import split
    from netdyno.model import outcomes

    names = dict.fromkeys((*advice.take, *(standing.contestant for standing in advice.findings.standings)))
    ranked = [server for name in names for server in servers if server.name == name]
    no_time = NeighbourRun(why="there was no time left")
    if left_s <= 0:
        return no_time
    if len(ranked) < 2 or not workload.list_factors(requested):
        return NeighbourRun()
    try:
        chosen = _choose_what_fits(requested, ranked, left_s)
        if chosen is None:
            return no_time
        factors, (first, *rivals) = chosen
        text = workload.write_neighbours_toml(requested, factors, (first, *rivals), left_s)
        compared = [server for server in ranked if server.name in (first, *rivals)]
        done, folder = _run_experiment(text, BESIDE_NAME, request, argv, lambda parsed: parsed, compared)
    except UserError as error:  # double of a value may be more than this machine, or an option, allows
        print(f"netdyno: half and double of the values were not measured: {harmless(str(error))}", file=sys.stderr)
        return NeighbourRun()
    if done.exit_code > 128 or done.analysis is None:
        return NeighbourRun()
    stored_run = read.load(read.find(request.results, str(done.line["run_id"])))
    to_keep = workload.advise_of(requested)
    return NeighbourRun(
        [compare_across_factor(part, to_keep, first, rivals) for part in split(outcomes.judged(stored_run))], folder
    )


def _choose_what_fits(
    requested: Workload, ranked: Sequence[Contestant], left_s: float
) -> tuple[list[str], list[str]] | None:
    """Return factors and contestants, the best first: a factor at least, then as many of both as there is time for."""
    by_name = {server.name: server for server in ranked}
    for count in range(min(MOST_BESIDE, len(ranked)), 1, -1):
        names, factors = list(by_name)[:count], list[str]()
        for factor in workload.list_factors(requested):
            text = workload.write_neighbours_toml(requested, [*factors, factor], names, left_s)
            if plan.estimate_seconds(experiment.parse(text, "beside", "beside"), by_name) <= left_s:
                factors.append(factor)
        if factors:
            return factors, names
    return None


# --- the sentences -------------------------------------------------------------------------------------------------


def format_answer(answer: AdviceAnswer, requested: Workload, notes: Sequence[str]) -> list[str]:
    from netdyno.present.prose import advice as prose

    lines = ["", *prose.describe_advice(answer.advice)]
    stored = answer.rests.stored
    near = prose.describe_changes(answer.beside.along or ())
    if stored is not None and stored.near:
        near = prose.describe_stored_changes(
            answer.advice.take,
            [(neighbour.option, neighbour.value, neighbour.take) for neighbour in stored.near],
            stored.value,
        )
    lines += near or (prose.explain_unmeasured(answer.beside.why),)
    origin = prose.describe_stored_run(stored.run.started_at, stored.between) if stored else prose.MADE
    beside = f"; the neighbouring values on {answer.beside.folder}" if answer.beside.folder else ""
    lines.append(f"This is based on {answer.rests.folder}, {origin}{beside}.")
    lines += _describe_cores(requested)
    return [*lines, *notes]


def _describe_cores(requested: Workload) -> list[str]:
    local_cores = pinning.count_server_cores(pinning.choose())
    expected = requested.get("cores", local_cores)
    if expected == local_cores:
        return []
    cores = quantities.plural(local_cores, "core")
    return [f"Here the server has {cores}, and yours will have {expected}: the effect of that was not measured."]


def as_json(answer: AdviceAnswer, lines: Sequence[str]) -> dict[str, Any]:
    """Return the answer for programs (docs/advise.md)."""
    from netdyno.present.export.advice import make_document

    return {
        **make_document(answer.advice, answer.beside.along),
        "run": answer.rests.run,
        "folder": str(answer.rests.folder),
        "beside_folder": str(answer.beside.folder) if answer.beside.folder else None,
        "stored": answer.rests.stored is not None,
        "text": [line for line in lines if line],
    }


def describe_no_answer(requested: Workload) -> dict[str, Any]:
    """Return the same where there is no answer."""
    from netdyno.present.export import advice as export

    document = export.make_empty_document(workload.choose_metric(requested), workload.read_slo(requested))
    return {**document, "run": None, "folder": None, "beside_folder": None, "stored": False, "text": []}


# --- a few questions -----------------------------------------------------------------------------------------------

ASKED = (
    ("connections", "How many connections?", "100"),
    ("rate", "How many messages a second in all (0: as many as possible)?", "0"),
    ("size", "How many bytes does a message have?", "64"),
    ("fan-out", "Who receives a message: its sender (none), or all clients (room)?", "none"),
    ("service-time", "How long does the server work for a request (0s: not at all)?", "0s"),
    ("service-kind", "Does it wait that long, or compute (wait, cpu)?", "wait"),
    ("slow-readers", "What share of the clients reads slowly?", "0"),
    ("objective", "What matters: throughput, cpu, memory, or an objective such as p99<5ms?", ""),
    ("languages", "In which languages (c++,go; empty: any)?", ""),
    ("time-budget", "How long may it take?", "5m"),
)


def ask_questions() -> dict[str, Any]:
    """Ask for the workload in a terminal. Raises UserError elsewhere."""
    if not sys.stdin.isatty():
        raise UserError("say what the workload is, such as: advise --connections 200 --rate 5k --objective 'p99<5ms'")
    answers: dict[str, Any] = {}
    for name, text, default in ASKED:
        if _is_moot(name, answers):
            continue
        text_given = typer.prompt(text, default=default, show_default=bool(default)).strip()
        if text_given and not (text_given == default and name in ("rate", "slow-readers", "service-time", "fan-out")):
            value: object = int(text_given) if name in ("connections", "size") and text_given.isdigit() else text_given
            answers[name] = workload.read_option(name, value, text)
    return answers


def _is_moot(name: str, answers: Mapping[str, Any]) -> bool:
    room = answers.get("fan-out") == "room"
    return {
        "service-time": room,
        "service-kind": "service-time" not in answers,
        "slow-readers": not room,
    }.get(name, False)
