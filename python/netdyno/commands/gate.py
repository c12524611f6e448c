"""`netdyno gate`: is a server worse than it was by more than a margin? Both are in the blocks of one run, which goes on
until that is decided."""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from netdyno.base.errors import UserError, did_you_mean
from netdyno.base.files import write_whole
from netdyno.base.paths import ROOT
from netdyno.commands import run as run_command
from netdyno.commands.flags import Asked
from netdyno.commands.run import OwnServers, Wishes
from netdyno.contestants import trees
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Gate
from netdyno.model.observation import ForeignLoad
from netdyno.statistics.block_counts import GATE_LOOKS

if TYPE_CHECKING:  # statistics are heavy, and wait until the trials are over
    from netdyno.analysis.gate.found import Found

BEFORE, AFTER = "before", "after"
MARGINS: Mapping[str, float] = {"throughput": 0.05, "cpu": 0.05, "p99": 0.25}
"""Where none is given. A 99th percentile is made of one message in a hundred, and scatters."""
WAYS = (
    "give --before COMMAND and --after COMMAND, or --base REF with --server COMMAND (and --build COMMAND), or "
    "--base REF with --contestant NAME"
)
NOBODY = OwnServers()
EXIT_CODES = {"passes": 0, "fails": 1, "open": 3}
BROKEN = 2


class GateWishes(NamedTuple):
    """What a gate was asked for. Either two commands, or a commit `base` that HEAD is held against: of a repository,
    with the command that starts its server and the one that builds it, or of netdyno's own, with a contestant.
    `repository` is None where none is named: the folder that one stands in. `workload` is what a command's server
    speaks; margins are as they are written."""

    experiment: str
    before: str | None
    after: str | None
    base: str | None
    contestant: str | None
    repository: Path | None
    build: str | None
    server: str | None
    workload: str | None
    margins: Sequence[str]
    asked: Asked
    results: Path
    as_json: bool
    foreign_load: ForeignLoad
    markdown: Path | None = None
    junit: Path | None = None


def run(wishes: GateWishes, argv: Sequence[str]) -> int:
    """Exit code 0 where every metric is within its margin or better, 1 where one is worse, 3 where it is not decided,
    2 where it broke, 128 + signal when interrupted. Nothing else may end with 1: it would blame the server."""
    try:
        return _run(wishes, argv)
    except BrokenPipeError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor does Python write to it at its end
        raise UserError("the reader of the gate's output has gone") from error
    except UserError:
        raise
    except Exception:  # noqa: BLE001 - whatever it is, the server is not to blame
        traceback.print_exc()
        return BROKEN


def _run(wishes: GateWishes, argv: Sequence[str]) -> int:
    margins_of(wishes.margins)  # before anything is built
    for path in (wishes.markdown, wishes.junit):
        if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
            raise UserError(f"{path} cannot be written")
    if wishes.base is None:
        of_base = (wishes.server, wishes.contestant, wishes.build, wishes.repository)
        if wishes.before is None or wishes.after is None or any(of_base):
            raise UserError(f"a gate has two servers: {WAYS}")
        return decide(_run_wishes(wishes, own=_commands(wishes, wishes.before, wishes.after)), wishes, argv)
    if wishes.before or wishes.after or bool(wishes.server) == bool(wishes.contestant):
        raise UserError(f"--base: {WAYS}")
    if wishes.contestant and wishes.repository:
        raise UserError(
            "--contestant is a server of the repository that netdyno is in: leave out --repository, or give --server"
        )
    if wishes.contestant and (wishes.build or wishes.workload):
        raise UserError("--contestant is built, and speaks, as its folder says: leave out --build and --workload")
    repository = ROOT if wishes.contestant else wishes.repository or Path()
    with trees.checked_out(repository, [wishes.base, "HEAD"]) as folders:
        if wishes.contestant:
            print(f"netdyno: building {wishes.contestant} twice", file=sys.stderr, flush=True)
            both = (trees.contestant(folder, wishes.contestant) for folder in folders)
            named = tuple(trees.renamed(one, name) for one, name in zip(both, (BEFORE, AFTER), strict=True))
            return decide(_run_wishes(wishes, others=named), wishes, argv)
        for folder in folders if wishes.build else ():
            trees.build(folder, wishes.build or "")
        lines = [(wishes.server or "").replace(trees.TREE, str(folder)) for folder in folders]
        return decide(_run_wishes(wishes, own=_commands(wishes, *lines)), wishes, argv)


def _commands(wishes: GateWishes, before: str, after: str) -> OwnServers:
    return OwnServers((before, after), (), (BEFORE, AFTER), wishes.workload)


def _run_wishes(wishes: GateWishes, own: OwnServers = NOBODY, others: tuple[Contestant, ...] = ()) -> Wishes:
    of_run = {name: value for name, value in wishes.asked.items() if name != "time-budget"}
    return Wishes(
        wishes.experiment,
        "normal",
        of_run,
        (),
        wishes.results,
        wishes.as_json,
        wishes.foreign_load,
        "never",
        own,
        others,
    )


def decide(asked: Wishes, wishes: GateWishes, argv: Sequence[str]) -> int:
    margins = margins_of(wishes.margins)

    def adapt(found: Experiment, servers: Sequence[Contestant], _clients: Sequence[Contestant]) -> Experiment:
        for server in servers:
            if server.name in (BEFORE, AFTER) and not server.available:
                raise UserError(f"the server {server.name} cannot be started: {server.why_not}")
        return as_gate(found, margins, wishes.asked["time-budget"])

    done = run_command.carry_out(asked, argv, adapt)
    found = done.analysis.gate if done.analysis else None
    if wishes.as_json:
        print(json.dumps(done.line | {"gate": as_json(found) if found else None}), flush=True)
    if found is not None:
        scenarios = done.analysis.scenarios if done.analysis else ()
        from netdyno.present.prose import company

        notes = list(dict.fromkeys(text for one in scenarios for text in company.sentences(one.company)))
        _write(found, str(done.line["run_id"]), wishes, notes)
    else:
        print("netdyno: there was no time for any trial, so nothing is decided", file=sys.stderr)
    if done.exit_code > 128:
        return done.exit_code
    return EXIT_CODES[found.decision if found else "open"]


def _write(found: Found, run_id: str, wishes: GateWishes, notes: Sequence[str]) -> None:
    from netdyno.present import gate

    print(gate.text(found, notes), file=sys.stderr if wishes.as_json else sys.stdout, flush=True)
    for path, written in ((wishes.markdown, gate.markdown), (wishes.junit, gate.junit)):
        if path is not None:
            try:
                write_whole(path, written(found, run_id, notes))
            except OSError as error:
                raise UserError(f"{path} cannot be written: {error.strerror}") from error


def margins_of(written: Sequence[str]) -> Mapping[str, float]:
    """Shares by metric, of texts such as "p99=25" in per cent. Raises UserError for any other."""
    from netdyno.analysis.gate.found import METRIC_NAMES

    found: dict[str, float] = {}
    for text in written:
        name, _, amount = text.partition("=")
        if name not in METRIC_NAMES:
            raise UserError(f"--margin {text!r}: {name!r} is no metric of a gate{did_you_mean(name, METRIC_NAMES)}")
        try:
            share = float(amount.removesuffix("%")) / 100
        except ValueError:
            share = math.nan
        if not 0 < share < 1:
            raise UserError(f"--margin {text!r}: write what it may be worse by, in per cent: {name}=5")
        found[name] = share
    return found or MARGINS


def as_gate(asked: Experiment, margins: Mapping[str, float], time_budget_s: float) -> Experiment:
    """The experiment as one that goes on until it has decided, without claims, figures and control. Raises UserError
    where it has no metric with a margin."""
    from netdyno.analysis.gate.judge import metrics_of

    gate = Gate(before=BEFORE, after=AFTER, margins=dict(margins))
    scenarios = tuple(
        msgspec.structs.replace(one, blocks=GATE_LOOKS[0], most_blocks=GATE_LOOKS[-1], precision=None)
        for one in asked.scenarios
        if metrics_of(gate, one)
    )
    if not scenarios:
        raise UserError(
            f"experiment {asked.name!r} measures nothing that has a margin ({', '.join(margins)}) in a gate"
        )
    return msgspec.structs.replace(
        asked,
        scenarios=scenarios,
        claims=(),
        figures=(),
        aa_share=0.0,
        time_budget_s=time_budget_s,
        time_limit_s=time_budget_s,
        gate=gate,
    )


def as_json(found: Found) -> dict[str, object]:
    from netdyno.present.findings_json import gate

    return gate(found)
