"""`netdyno run` and `netdyno report`: turn a command line into a table, a report and an exit code."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless
from netdyno.kit.files import kind_of, write_whole
from netdyno.kit.paths import ENTRY, NEEDS_CLONE, RESULTS, build_dir
from netdyno.measure.cluster import engine
from netdyno.measure.machine import pinning
from netdyno.measure.run import needed, preparation, runner
from netdyno.measure.run.progress import Display
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Budget, Experiment
from netdyno.model.run import Run
from netdyno.model.trial import Trace
from netdyno.present.terminal.console import Console, open_for_sentences
from netdyno.present.terminal.display import LiveDisplay, PlainDisplay
from netdyno.question import blocks, experiment
from netdyno.question.contestants import contestants
from netdyno.store import profiles, read, schema
from netdyno.store.opening import check_folder
from netdyno.verbs import own_servers, permission, profile
from netdyno.verbs.flags import GivenOptions
from netdyno.verbs.own_servers import NO_SERVERS, MeasureRequest, OwnServers
from netdyno.verbs.permission import Given

if TYPE_CHECKING:  # its statistics are heavy
    from netdyno.analysis.found.run import Analysis
    from netdyno.measure.cluster.stage import Stage

REPORT_NAME = "report.html"
FINDINGS_NAME = "findings.json"
"""The report's content for programs, in the same folder (protocol/findings.md)."""


class RunRequest(MeasureRequest, frozen=True, kw_only=True):
    """The request of a run; the options in `given` replace those of the experiment."""

    experiment: str
    budget: Budget = "normal"
    given: GivenOptions
    contestants: tuple[str, ...] = ()
    trace: Trace = "auto"
    own: OwnServers = NO_SERVERS
    others: tuple[Contestant, ...] = ()
    """Servers that are in no folder of this tree, ready to be started."""
    profile: bool = False
    """Whether perf profiles the servers, once the trials are over."""
    cluster: Path | None = None
    """The folder of the hosts to run on."""


def request_untraced(
    request: MeasureRequest,
    experiment: str,
    own: OwnServers,
    *,
    given: GivenOptions | None = None,
    contestants: tuple[str, ...] = (),
    others: tuple[Contestant, ...] = (),
) -> RunRequest:
    """Return the request of the run by which another verb answers its question, which no trace of system calls does."""
    return RunRequest(
        experiment=experiment,
        given=given or {},
        contestants=contestants,
        results=request.results,
        as_json=request.as_json,
        foreign_load=request.foreign_load,
        trace="never",
        own=own,
        others=others,
    )


GATE_EXIT_CODES = {"passes": 0, "fails": 1, "open": 3, "unmeasured": 2}
"""By the decision of a gate, also one that is resumed."""


class RunResult(msgspec.Struct, frozen=True):
    """The result of a run: its exit code, its line of JSON, the run as stored, its findings where it has any, and the
    seconds that it took when nothing had to be built any more."""

    exit_code: int
    line: dict[str, object]
    stored: Run
    analysis: Analysis | None
    seconds: float = 0.0


def run(request: RunRequest, argv: Sequence[str]) -> int:
    """Run an experiment. Return 0 when some trial is valid, 1 when none is, 128 + signal when interrupted."""
    return _end(carry_out(request, argv), request.as_json)


Adapt = Callable[[Experiment, Sequence[Contestant], Sequence[Contestant]], Experiment]


def carry_out(
    request: RunRequest, argv: Sequence[str], adapt: Adapt = lambda requested, _servers, _clients: requested
) -> RunResult:
    """Run the requested experiment, print its table and write its report. `adapt` changes the experiment before that;
    it gets all servers and all clients, too."""
    build = build_dir()
    all_clients = contestants.discover(build=build, kind="client")
    servers = contestants.discover(build=build)
    servers = (*servers, *own_servers.resolve(request.own, [server.name for server in servers]), *request.others)
    adapted = adapt(_load_experiment(request, all_clients, servers), servers, all_clients)
    clients = [contestants.find_by_name(all_clients, name, "client") for name in experiment.list_clients(adapted)]
    chosen = [
        server for server in servers if any(server.name in scenario.contestants for scenario in adapted.scenarios)
    ]
    _refuse_without_clone(request, chosen)
    _refuse_on_cluster(request, chosen)
    ready = needed.make(adapted, chosen, clients, build)
    began_s = time.monotonic()
    console, display = _open_screen(request.as_json)
    with _open_stage(request.cluster) as stage:
        outcome = runner.execute(
            adapted,
            ready.servers,
            clients=ready.clients,
            results=request.results,
            build=build,
            argv=argv,
            display=display,
            foreign_load=request.foreign_load,
            trace=request.trace,
            hosts=stage,
        )
    done = _conclude_run(outcome, console)
    if request.profile and not outcome.interrupted:
        profile.run_after_trials(adapted, ready, outcome.folder, build, sys.stderr if request.as_json else sys.stdout)
        if done.analysis is not None:
            _write_page(done.analysis, outcome.folder)
    return msgspec.structs.replace(done, seconds=time.monotonic() - began_s)


def _refuse_without_clone(request: RunRequest, servers: Sequence[Contestant]) -> None:
    """Raise UserError where an installed wheel is to run servers of a clone and no other."""
    if servers and all(server.why_not == NEEDS_CLONE for server in servers):
        raise UserError(
            f"{request.experiment}: {NEEDS_CLONE}; your own servers: {ENTRY} run web --server 'my-server {{port}}'"
        )


def _refuse_on_cluster(request: RunRequest, servers: Sequence[Contestant]) -> None:
    """Raise UserError where a run on a cluster has options or servers that are of this machine alone. Before anything
    is built."""
    if request.cluster is None:
        return
    if request.profile:
        raise UserError("--profile needs the servers on this machine; leave --cluster out")
    if any(server.own is not None or server in request.others for server in servers):
        raise UserError("only contestants of this repository run on hosts of a cluster, for each host must have them")


@contextmanager
def _open_stage(cluster: Path | None) -> Iterator[Stage | None]:
    """Open the hosts of a cluster; none for a run on this machine. Raises UserError."""
    if cluster is None:
        yield None
        return
    engine.require_dask()
    from netdyno.measure.cluster.controller import Controller
    from netdyno.measure.cluster.stage import Stage

    with Controller(cluster) as control:
        yield Stage(control)


def continue_run(
    run: str, results: Path, *, anyway: bool, as_json: bool, cluster: Path | None = None, given: Given
) -> int:
    """Resume an interrupted run for `netdyno resume`; the exit codes are those of `run`, or of
    `gate` where it was one."""
    from netdyno.measure.run.resume import resume

    command_line = [ENTRY, "resume", run, *(["--anyway"] if anyway else []), *(["--json"] if as_json else [])]
    command_line += ["--results", str(results)] if results != RESULTS else []
    console, display = _open_screen(as_json)
    path = read.find(results, run)
    if lacks_results(path):
        outcome = runner.RunOutcome(read.load(path).run_id, path.parent, 0)
        return _end(_conclude_gate(_conclude_run(outcome, console)), as_json)
    with _open_stage(cluster) as stage:
        outcome = resume(
            path,
            build=build_dir(),
            display=display,
            anyway=anyway,
            permit=partial(permission.ask, given=given, again=command_line),
            hosts=stage,
        )
    return _end(_conclude_gate(_conclude_run(outcome, console)), as_json)


def lacks_results(path: Path) -> bool:
    """Whether a run was ended between its last trial and its report. Raises UserError where its folder holds a link
    that a report would be written through."""
    _, _, finished_at = read.read_head(path)
    if finished_at is None or all((path.parent / name).is_file() for name in (REPORT_NAME, FINDINGS_NAME)):
        return False
    check_folder(path.parent)
    return True


def _open_screen(as_json: bool) -> tuple[Console, Display]:
    """Return the console and the display of a run; with --json, stdout is for the one line at the end."""
    console = Console(stderr=as_json)
    return console, LiveDisplay(console) if console.is_terminal else PlainDisplay(console.file)


def _end(done: RunResult, as_json: bool) -> int:
    if as_json:
        print(json.dumps(done.line), flush=True)
    return done.exit_code


def _conclude_gate(done: RunResult) -> RunResult:
    """Return the result of a resumed gate with the exit code of its decision, which is printed."""
    findings = done.analysis.gate if done.analysis else None
    if findings is None or done.analysis is None or done.exit_code > 128:
        return done
    from netdyno.present import gate
    from netdyno.present.prose.gate import list_notes

    open_for_sentences(sys.stderr).print(gate.format_text(findings, list_notes(findings, done.analysis.scenarios)))
    return msgspec.structs.replace(done, exit_code=GATE_EXIT_CODES[findings.decision])


def _conclude_run(outcome: runner.RunOutcome, console: Console) -> RunResult:
    """Present a stored run: its table, its report and its result."""
    stored = read.load(outcome.folder / schema.FILE_NAME)
    counts = outcomes.counts(stored)
    if outcome.interrupted:
        print(
            f"interrupted: {_count_stored(len(stored.all_trials))} stored in {outcome.folder} "
            f"(to go on: {harmless(permission.resume_line(stored))})",
            file=sys.stderr,
        )
    report, analysis = _write_results(stored, outcome.folder, console) if stored.all_trials else (None, None)
    return RunResult(
        exit_code=outcome.interrupted or (0 if counts["valid"] else 1),
        line={
            "run_id": outcome.run_id,
            "report": str(report) if report else None,
            "findings": str(report.with_name(FINDINGS_NAME)) if report else None,
            "trials": counts,
        },
        stored=stored,
        analysis=analysis,
    )


def _count_stored(trials: int) -> str:
    return f"{quantities.plural(trials, 'trial')} {'is' if trials == 1 else 'are'}"


def _load_experiment(request: RunRequest, clients: Sequence[Contestant], servers: Sequence[Contestant]) -> Experiment:
    """Load the experiment, apply the command line's options, and resolve its contestants to names."""
    path = experiment.find(request.experiment, experiment.find_experiments_folder())
    names = [client.name for client in clients]
    instruments = [client.name for client in clients if client.manifest.instrument]
    requested = experiment.choose_clients(experiment.load(path, request.budget), names, str(path), instruments)
    extra_names = [server.name for server in servers if server.own is not None or server in request.others]
    chosen = (*request.contestants, *extra_names)
    spoken = {scenario.workload for scenario in requested.scenarios}
    requested = experiment.choose_contestants(
        requested,
        lambda patterns: [server.name for server in contestants.select_able(servers, chosen or patterns, spoken)],
    )
    requested = experiment.replace_load(requested, request.given.get("connections"), request.given.get("rate"))
    requested = own_servers.set_requests(requested, request.own.requests, servers)
    if request.cluster is None:
        requested = preparation.leave_out_repeats(requested, pinning.choose())
    given = request.given
    if "aa-share" in given:
        requested = msgspec.structs.replace(requested, aa_share=given["aa-share"])
    requested = blocks.apply_overrides(
        requested, given.get("blocks"), given.get("duration"), given.get("seed"), given.get("precision")
    )
    return blocks.replace_budget(requested, given.get("most-blocks"), given.get("time-budget"))


def _write_results(stored: Run, folder: Path, console: Console) -> tuple[Path, Analysis]:
    """Print the table and write the report of a run. The imports are here because drawing needs the heavy libraries."""
    from netdyno.analysis.analysis import analyse
    from netdyno.present.terminal.table import render

    analysis = analyse(stored)
    console.print(render(analysis))
    path = _write_page(analysis, folder)
    write_whole(folder / FINDINGS_NAME, _encode_findings(analysis))
    console.print(f"report: {path}", highlight=False, markup=False, soft_wrap=True)
    return path, analysis


def _write_page(analysis: Analysis, folder: Path) -> Path:
    """Write the report of a run into its folder, with the profiles there."""
    from netdyno.present.report import write_page

    path = folder.resolve() / REPORT_NAME
    write_page(analysis, path, (), _read_profiles(folder))
    return path


def _read_profiles(folder: Path) -> profiles.StoredProfiles:
    """Read the profiles of a run, and print those that cannot be used."""
    stored = profiles.read(folder)
    for text in stored.damaged:
        print(f"netdyno: {harmless(text)}", file=sys.stderr)
    return stored


def export_findings(run: str, results: Path) -> str:
    """Return the findings of a stored run as one JSON object. Raises UserError where there is no such run."""
    from netdyno.analysis.analysis import analyse

    return _encode_findings(analyse(read.load(read.find(results, run))))


def export(runs: Sequence[str], results: Path, form: str) -> str:
    """Return findings, cells and trials of a stored run (protocol/export.md), or, of no run, the JSON Schema of these.
    Raises UserError where there is no such run."""
    from netdyno.analysis.analysis import analyse
    from netdyno.present.export import dashboards, tables
    from netdyno.present.export.collect import collect

    if form == "schema":
        return tables.format_schema()
    stored = read.load(read.find(results, runs[0]))
    collected = collect(analyse(stored))
    formats = {"json": tables.format_json, "csv": tables.format_csv, "md": tables.format_markdown}
    return {**formats, **dashboards.FORMATS}[form](collected)


def _encode_findings(analysis: Analysis) -> str:
    from netdyno.present.findings_json import make_document

    return json.dumps(make_document(analysis), indent=1, allow_nan=False) + "\n"


def write_report(runs: Sequence[str], results: Path) -> Path:
    """Write the report of a stored run again into its folder, and return its path. Further runs are laid over it, on a
    separate page."""
    paths = [read.find(results, run) for run in runs]
    first, *further = [read.load(path) for path in paths]
    names = [run.run_id for run in further]
    if len({first.run_id, *names}) < len(runs):
        raise UserError("the same run twice: name different runs")
    target = paths[0].parent.resolve() / (f"report-with-{'-'.join(names)}.html" if names else REPORT_NAME)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{target.parent} cannot be written")
    if target.is_symlink() or not (target.is_file() or target.is_dir() or not target.exists()):
        raise UserError(f"{target} cannot be written: it is {kind_of(target.lstat().st_mode)} and no file")
    from netdyno.analysis.analysis import analyse
    from netdyno.analysis.compare.run_comparison import compare_runs
    from netdyno.present.report import Overlaid, overlay, write_page

    if len(runs) > overlay.MOST_RUNS:
        raise UserError(f"{len(runs)} runs: at most {overlay.MOST_RUNS} can be distinguished in one figure")
    overlaid = [Overlaid(analyse(run), compare_runs(first, run)) for run in further]
    analysis = analyse(first)
    for text in overlay.explain_unshared(
        [analysis, *(layer.analysis for layer in overlaid)], [layer.changes for layer in overlaid]
    ):
        print(f"netdyno: {harmless(text)}", file=sys.stderr)
    try:
        write_page(analysis, target, overlaid, _read_profiles(target.parent))
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}") from error
    return target
