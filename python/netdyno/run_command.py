"""`netdyno run` and `netdyno report`: from the words of the command line to a table, a report and an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from rich.console import Console

from netdyno import contestants, experiment, runner, store
from netdyno.display import Display, LiveDisplay, PlainDisplay
from netdyno.errors import UserError
from netdyno.model import Budget, Contestant, Experiment, ForeignLoad, Run
from netdyno.paths import build_dir
from netdyno.units import parse_duration

if TYPE_CHECKING:  # its statistics are heavy
    from netdyno.findings import Analysis

REPORT_NAME = "report.html"


class Wishes(NamedTuple):
    """The options of `netdyno run`."""

    experiment: str
    budget: Budget
    blocks: int | None
    duration: str | None
    contestants: tuple[str, ...]
    seed: int | None
    results: Path
    as_json: bool
    foreign_load: ForeignLoad
    aa_share: float | None = None


class Done(NamedTuple):
    """What came of a run: the exit code that goes with it, its line of JSON, and its findings where it has any."""

    exit_code: int
    line: dict[str, object]
    analysis: Analysis | None


def run(wishes: Wishes, argv: Sequence[str]) -> int:
    """Exit code 0 when some trial is valid, 1 when none is, 128 + signal when interrupted."""
    done = carry_out(wishes, argv)
    if wishes.as_json:
        print(json.dumps(done.line), flush=True)
    return done.exit_code


Adapt = Callable[[Experiment, Sequence[Contestant], Sequence[Contestant]], Experiment]


def carry_out(wishes: Wishes, argv: Sequence[str], adapt: Adapt = lambda asked, _servers, _clients: asked) -> Done:
    """Run what is wished for, print its table and write its report. `adapt` makes of the experiment with the wishes in
    place, all servers and all clients what is run."""
    build = build_dir()
    everyone = contestants.discover(build=build, kind="client")
    servers = contestants.discover(build=build)
    asked = adapt(_experiment(wishes, [client.name for client in everyone], servers), servers, everyone)
    clients = [contestants.by_name(everyone, name, "client") for name in experiment.clients(asked)]
    chosen = [server for server in servers if any(server.name in one.contestants for one in asked.scenarios)]
    # with --json, stdout is for the one line at the end
    console = Console(stderr=wishes.as_json)
    display: Display = LiveDisplay(console) if console.is_terminal else PlainDisplay(console.file)
    outcome = runner.execute(
        asked,
        [contestants.prepare(server, build=build) for server in chosen],
        clients=[contestants.prepare(client, build=build, kind="client") for client in clients],
        results=wishes.results,
        build=build,
        argv=argv,
        display=display,
        foreign_load=wishes.foreign_load,
    )
    stored = store.load(outcome.folder / store.FILE_NAME)
    counts = runner.counts(stored.all_trials)
    if outcome.interrupted:
        print(f"interrupted: {len(stored.all_trials)} trials are stored in {outcome.folder}", file=sys.stderr)
    report, analysis = _present(stored, outcome.folder, console) if stored.all_trials else (None, None)
    return Done(
        exit_code=outcome.interrupted or (0 if counts["valid"] else 1),
        line={"run_id": outcome.run_id, "report": str(report) if report else None, "trials": counts},
        analysis=analysis,
    )


def _experiment(wishes: Wishes, clients: Sequence[str], servers: Sequence[Contestant]) -> Experiment:
    """The experiment with the command line's wishes in place, its contestants by name."""
    path = experiment.find(wishes.experiment, experiment.experiments_dir())
    asked = experiment.with_clients(experiment.load(path, wishes.budget), clients, str(path))
    asked = experiment.with_contestants(
        asked, lambda patterns: [one.name for one in contestants.select(servers, wishes.contestants or patterns)]
    )
    try:
        duration_s = parse_duration(wishes.duration) if wishes.duration is not None else None
    except ValueError as error:
        raise UserError(f"--duration: {error}") from error
    if duration_s is not None and duration_s <= 0:
        raise UserError("--duration: must be above 0")
    if wishes.aa_share is not None:
        asked = msgspec.structs.replace(asked, aa_share=wishes.aa_share)
    return runner.with_overrides(asked, wishes.blocks, duration_s, wishes.seed)


def _present(stored: Run, folder: Path, console: Console) -> tuple[Path, Analysis]:
    """The table and the report of what is stored; imported here because drawing needs the heavy libraries."""
    from netdyno.analysis import analyse
    from netdyno.report import write
    from netdyno.table import render

    analysis = analyse(stored)
    console.print(render(analysis))
    path = (folder / REPORT_NAME).resolve()
    write(stored, path)
    console.print(f"report: {path}", highlight=False, markup=False, soft_wrap=True)
    return path, analysis


def write_report(run: str, results: Path) -> Path:
    """Write the report of a stored run again, beside it, and return its path."""
    path = store.find(results, run)
    target = path.parent.resolve() / REPORT_NAME
    stored = store.load(path)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{target.parent} cannot be written")
    from netdyno.report import write

    write(stored, target)
    return target
