"""`netdyno run` and `netdyno report`: from the words of the command line to a table, a report and an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from netdyno.base.errors import UserError
from netdyno.base.escape import harmless
from netdyno.base.files import kind_of
from netdyno.base.paths import ROOT, build_dir
from netdyno.cluster import engine
from netdyno.commands import permission, profile
from netdyno.commands.flags import Asked
from netdyno.commands.permission import Given
from netdyno.contestants import contestants, own
from netdyno.experiment import blocks, experiment
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Budget, Experiment
from netdyno.model.observation import ForeignLoad
from netdyno.model.run import Run
from netdyno.model.trial import Trace
from netdyno.present.terminal.console import Console
from netdyno.present.terminal.display import LiveDisplay, PlainDisplay
from netdyno.run import needed, runner
from netdyno.run.progress import Display
from netdyno.store import profiles, read, schema

if TYPE_CHECKING:  # its statistics are heavy
    from netdyno.analysis.findings import Analysis
    from netdyno.cluster.stage import Stage

REPORT_NAME = "report.html"
FINDINGS_NAME = "findings.json"
"""Beside it: the same for programs (protocol/findings.md)."""


class OwnServers(NamedTuple):
    """The user's own servers: the command lines of some, the addresses of others, the names of the first of them all,
    what all of them speak (None: nothing was said of it), and whether those beyond the loopback may be loaded."""

    commands: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    workload: str | None = None
    may_be_loaded: bool = False


class Wishes(NamedTuple):
    """What a run was asked for; `asked` has what takes the place of what the experiment says."""

    experiment: str
    budget: Budget
    asked: Asked
    contestants: tuple[str, ...]
    results: Path
    as_json: bool
    foreign_load: ForeignLoad
    trace: Trace = "auto"
    own: OwnServers = OwnServers()
    others: tuple[Contestant, ...] = ()
    """Servers that are in no folder of this tree, ready to be started."""
    profile: bool = False
    """Whether the servers are looked at by perf, once the trials are over."""
    cluster: Path | None = None
    """The folder of the hosts to run on."""


class Done(NamedTuple):
    """What came of a run: the exit code that goes with it, its line of JSON, and its findings where it has any."""

    exit_code: int
    line: dict[str, object]
    analysis: Analysis | None


def run(wishes: Wishes, argv: Sequence[str]) -> int:
    """Exit code 0 when some trial is valid, 1 when none is, 128 + signal when interrupted."""
    return _end(carry_out(wishes, argv), wishes.as_json)


Adapt = Callable[[Experiment, Sequence[Contestant], Sequence[Contestant]], Experiment]


def carry_out(wishes: Wishes, argv: Sequence[str], adapt: Adapt = lambda asked, _servers, _clients: asked) -> Done:
    """Run what is wished for, print its table and write its report. `adapt` makes of the experiment with the wishes in
    place, all servers and all clients what is run."""
    build = build_dir()
    everyone = contestants.discover(build=build, kind="client")
    servers = contestants.discover(build=build)
    servers = (*servers, *_own(wishes.own, [server.name for server in servers]), *wishes.others)
    asked = adapt(_experiment(wishes, everyone, servers), servers, everyone)
    clients = [contestants.by_name(everyone, name, "client") for name in experiment.clients(asked)]
    chosen = [server for server in servers if any(server.name in one.contestants for one in asked.scenarios)]
    ready = needed.make(asked, chosen, clients, build)
    console, display = _screen(wishes.as_json)
    if wishes.cluster and wishes.profile:
        raise UserError("--profile looks at servers of this machine, and with --cluster they run on another")
    if wishes.cluster and any(one.own is not None or one in wishes.others for one in ready.servers):
        raise UserError("only contestants of this repository run on hosts of a cluster, for each host must have them")
    with _stage(wishes.cluster) as stage:
        outcome = runner.execute(
            asked,
            ready.servers,
            clients=ready.clients,
            results=wishes.results,
            build=build,
            argv=argv,
            display=display,
            foreign_load=wishes.foreign_load,
            trace=wishes.trace,
            stage=stage,
        )
    done = _tell(outcome, console)
    if wishes.profile and not outcome.interrupted:
        profile.beside(asked, ready, outcome.folder, build, sys.stderr if wishes.as_json else sys.stdout)
        if done.analysis is not None:
            _write_page(done.analysis, outcome.folder)
    return done


@contextmanager
def _stage(cluster: Path | None) -> Iterator[Stage | None]:
    """The hosts of a cluster; none where a run takes place on this machine. Raises UserError."""
    if cluster is None:
        yield None
        return
    engine.need()
    from netdyno.cluster.control import Control
    from netdyno.cluster.stage import Stage

    with Control(cluster) as control:
        yield Stage(control)


def _own(asked: OwnServers, taken: Sequence[str]) -> tuple[Contestant, ...]:
    """Raises UserError where something is said of servers that are not there."""
    workload = asked.workload or own.DEFAULT_WORKLOAD
    found = [Own(command=line, workload=workload) for line in asked.commands]
    found += [own.at(address, workload, may_be_loaded=asked.may_be_loaded) for address in asked.addresses]
    if asked.workload is not None and not found:
        raise UserError("--workload says what your own servers speak, and there is no --server and no --address")
    return own.named(found, asked.names, taken)


def go_on(run: str, results: Path, *, anyway: bool, as_json: bool, cluster: Path | None = None, given: Given) -> int:
    """`netdyno resume`: the rest of an interrupted run; the exit codes are those of `run`."""
    from netdyno.run.resume import resume

    again = ["./netdyno", "resume", run, *(["--anyway"] if anyway else []), *(["--json"] if as_json else [])]
    again += ["--results", str(results)] if results != ROOT / "results" else []
    console, display = _screen(as_json)
    with _stage(cluster) as stage:
        outcome = resume(
            read.find(results, run),
            build=build_dir(),
            display=display,
            anyway=anyway,
            permit=partial(permission.ask, given=given, again=again),
            stage=stage,
        )
    return _end(_tell(outcome, console), as_json)


def _screen(as_json: bool) -> tuple[Console, Display]:
    """Where a run is shown; with --json, stdout is for the one line at the end."""
    console = Console(stderr=as_json)
    return console, LiveDisplay(console) if console.is_terminal else PlainDisplay(console.file)


def _end(done: Done, as_json: bool) -> int:
    if as_json:
        print(json.dumps(done.line), flush=True)
    return done.exit_code


def _tell(outcome: runner.Outcome, console: Console) -> Done:
    """Table and report of what is stored."""
    stored = read.load(outcome.folder / schema.FILE_NAME)
    counts = outcomes.counts(stored)
    if outcome.interrupted:
        print(
            f"interrupted: {len(stored.all_trials)} trials are stored in {outcome.folder} "
            f"(to go on: {harmless(permission.resume_line(stored))})",
            file=sys.stderr,
        )
    report, analysis = _present(stored, outcome.folder, console) if stored.all_trials else (None, None)
    return Done(
        exit_code=outcome.interrupted or (0 if counts["valid"] else 1),
        line={
            "run_id": outcome.run_id,
            "report": str(report) if report else None,
            "findings": str(report.with_name(FINDINGS_NAME)) if report else None,
            "trials": counts,
        },
        analysis=analysis,
    )


def _experiment(wishes: Wishes, clients: Sequence[Contestant], servers: Sequence[Contestant]) -> Experiment:
    """The experiment with the command line's wishes in place, its contestants by name."""
    path = experiment.find(wishes.experiment, experiment.experiments_dir())
    names = [client.name for client in clients]
    instruments = [client.name for client in clients if client.manifest.instrument]
    asked = experiment.with_clients(experiment.load(path, wishes.budget), names, str(path), instruments)
    beside = [one.name for one in servers if one.own is not None or one in wishes.others]
    chosen = (*wishes.contestants, *beside)
    asked = experiment.with_contestants(
        asked, lambda patterns: [one.name for one in contestants.select(servers, chosen or patterns)]
    )
    given = wishes.asked
    if "aa-share" in given:
        asked = msgspec.structs.replace(asked, aa_share=given["aa-share"])
    asked = runner.with_overrides(
        asked, given.get("blocks"), given.get("duration"), given.get("seed"), given.get("precision")
    )
    return blocks.with_budget(asked, given.get("most-blocks"), given.get("time-budget"))


def _present(stored: Run, folder: Path, console: Console) -> tuple[Path, Analysis]:
    """The table and the report of what is stored; imported here because drawing needs the heavy libraries."""
    from netdyno.analysis.analysis import analyse
    from netdyno.present.terminal.table import render

    analysis = analyse(stored)
    console.print(render(analysis))
    path = _write_page(analysis, folder)
    (folder / FINDINGS_NAME).write_text(_encoded(analysis), encoding="utf-8")
    console.print(f"report: {path}", highlight=False, markup=False, soft_wrap=True)
    return path, analysis


def _write_page(analysis: Analysis, folder: Path) -> Path:
    """The report of a run in its folder, with the profiles that are there."""
    from netdyno.present.report import write_page

    path = folder.resolve() / REPORT_NAME
    write_page(analysis, path, (), _profiled(folder))
    return path


def _profiled(folder: Path) -> profiles.Stored:
    """The profiles of a run; what of them cannot be used is said."""
    found = profiles.read(folder)
    for text in found.damaged:
        print(f"netdyno: {harmless(text)}", file=sys.stderr)
    return found


def findings(run: str, results: Path) -> str:
    """The findings of a stored run as one JSON object. Raises UserError where there is no such run."""
    from netdyno.analysis.analysis import analyse

    return _encoded(analyse(read.load(read.find(results, run))))


def export(run: str, results: Path, form: Literal["json", "csv", "md"]) -> str:
    """Findings, cells and trials of a stored run (protocol/export.md). Raises UserError where there is no such run."""
    from netdyno.analysis.analysis import analyse
    from netdyno.present.export import tables
    from netdyno.present.export.collect import collect

    stored = read.load(read.find(results, run))
    found = collect(analyse(stored))
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"
    return tables.as_csv(found) if form == "csv" else tables.as_markdown(found)


def _encoded(analysis: Analysis) -> str:
    from netdyno.present.findings_json import document

    return json.dumps(document(analysis), indent=1, allow_nan=False) + "\n"


def write_report(runs: Sequence[str], results: Path) -> Path:
    """Write the report of a stored run again, beside it, and return its path. Further runs are laid over it, on a page
    of its own."""
    paths = [read.find(results, run) for run in runs]
    first, *others = [read.load(path) for path in paths]
    names = [one.run_id for one in others]
    if len({first.run_id, *names}) < len(runs):
        raise UserError("the same run twice: name different runs")
    target = paths[0].parent.resolve() / (f"report-with-{'-'.join(names)}.html" if names else REPORT_NAME)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{target.parent} cannot be written")
    if target.is_symlink() or not (target.is_file() or target.is_dir() or not target.exists()):
        raise UserError(f"{target} cannot be written: it is {kind_of(target.lstat().st_mode)} and no file")
    from netdyno.analysis.analysis import analyse
    from netdyno.analysis.run_comparison import side_by_side
    from netdyno.present.report import Overlaid, overlay, write_page

    if len(runs) > overlay.MOST_RUNS:
        raise UserError(f"{len(runs)} runs: at most {overlay.MOST_RUNS} can be distinguished in one figure")
    overlaid = [Overlaid(analyse(one), side_by_side(first, one)) for one in others]
    analysis = analyse(first)
    for text in overlay.unshared([analysis, *(one.analysis for one in overlaid)], [one.changes for one in overlaid]):
        print(f"netdyno: {harmless(text)}", file=sys.stderr)
    try:
        write_page(analysis, target, overlaid, _profiled(target.parent))
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}") from error
    return target
