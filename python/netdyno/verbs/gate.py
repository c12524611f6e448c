"""`netdyno gate`: decide whether a server is worse than before by more than a margin. Both are in the blocks of one
run, which goes on until that is decided."""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from netdyno.kit import git
from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.escape import harmless
from netdyno.kit.files import write_whole
from netdyno.kit.paths import IS_INSTALLED, NEEDS_CLONE, ROOT
from netdyno.kit.statistics.block_counts import GATE_LOOKS
from netdyno.measure.trial.first_requests import ChangedReplyError
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Gate
from netdyno.present.terminal.console import open_for_sentences
from netdyno.question.contestants import trees
from netdyno.verbs import own_servers
from netdyno.verbs import run as run_command
from netdyno.verbs.flags import GivenOptions
from netdyno.verbs.own_servers import MeasureRequest, OwnServers
from netdyno.verbs.run import RunRequest

if TYPE_CHECKING:  # statistics are heavy, and wait until the trials are over
    from netdyno.analysis.found.gate import GateFindings

BEFORE, AFTER = "before", "after"
MARGINS: Mapping[str, float] = {"throughput": 0.05, "cpu": 0.05, "p99": 0.25}
"""The default margins. A 99th percentile rests on one message in a hundred, and scatters."""
WAYS = (
    "give --before COMMAND and --after COMMAND, or --base REF with --server COMMAND (and --build COMMAND), or "
    "--base REF with --contestant NAME"
)
EXIT_CODES = run_command.GATE_EXIT_CODES
BROKEN = EXIT_CODES["unmeasured"]
LONGEST_TIMEOUT = 1 / 15
"""The most of the time budget that a reply is waited for: a mute server takes a few of these in a block, and two blocks
must fit."""


class GateRequest(MeasureRequest, frozen=True, kw_only=True):
    """The request of a gate: either two commands, or a commit `base` that HEAD is compared with. The commit is of a
    repository, with the commands that start and build its server, or of netdyno's own, with a contestant. `repository`
    None means the current folder. `workload` is that of a command's server; margins are as they are written."""

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
    given: GivenOptions
    markdown: Path | None = None
    junit: Path | None = None
    history: Path | None = None


def run(request: GateRequest, argv: Sequence[str]) -> int:
    """Decide the gate. Return 0 where every metric is within its margin or better, 1 where one is worse, 3 where it is
    not decided, 2 where it broke or measured nothing, 128 + signal when interrupted. Nothing else may end with 1: it
    would blame the server."""
    try:
        return _run(request, argv)
    except ChangedReplyError as error:
        print(f"netdyno: {harmless(str(error))}", file=sys.stderr)
        return EXIT_CODES["fails"]
    except (UserError, BrokenPipeError):
        raise
    except Exception:  # noqa: BLE001 - whatever it is, the server is not to blame
        traceback.print_exc()
        return BROKEN


def _run(request: GateRequest, argv: Sequence[str]) -> int:
    parse_margins(request.margins)  # before anything is built
    for path in (request.markdown, request.junit, request.history):
        if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
            raise UserError(f"{path} cannot be written")
    if request.base is None:
        base_options = (request.server, request.contestant, request.build, request.repository)
        if request.before is None or request.after is None or any(base_options):
            raise UserError(f"a gate has two servers: {WAYS}")
        return decide(
            _build_run_request(request, _build_own_servers(request, request.before, request.after)), request, argv
        )
    if request.before or request.after or bool(request.server) == bool(request.contestant):
        raise UserError(f"--base: {WAYS}")
    if request.contestant and IS_INSTALLED:
        raise UserError(f"--contestant {request.contestant}: {NEEDS_CLONE}")
    if request.contestant and request.repository:
        raise UserError(
            "--contestant is a server of the repository that netdyno is in: leave out --repository, or give --server"
        )
    if request.contestant and (request.build or request.workload):
        raise UserError("--contestant: leave out --build and --workload; its folder has both")
    repository = ROOT if request.contestant else request.repository or Path()
    with trees.check_out(repository, [request.base, "HEAD"]) as folders:
        if request.contestant:
            print(f"netdyno: building {request.contestant} twice", file=sys.stderr, flush=True)
            contestants_of_trees = (trees.build_server(folder, request.contestant) for folder in folders)
            renamed = tuple(
                trees.rename_server(contestant, name)
                for contestant, name in zip(contestants_of_trees, (BEFORE, AFTER), strict=True)
            )
            return decide(_build_run_request(request, own_servers.describe(request.given), renamed), request, argv)
        if trees.TREE not in (request.server or ""):
            raise UserError(
                f"--server {request.server!r} would start one program twice: write {trees.TREE} where it needs the "
                "folder of its commit"
            )
        for folder in folders if request.build else ():
            trees.build(folder, request.build or "")
        lines = [(request.server or "").replace(trees.TREE, str(folder)) for folder in folders]
        return decide(_build_run_request(request, _build_own_servers(request, *lines)), request, argv)


def _build_own_servers(request: GateRequest, before: str, after: str) -> OwnServers:
    sent = own_servers.describe(request.given, request.workload)
    return msgspec.structs.replace(sent, commands=(before, after), names=(BEFORE, AFTER))


def _build_run_request(request: GateRequest, own: OwnServers, others: tuple[Contestant, ...] = ()) -> RunRequest:
    given = {name: value for name, value in request.given.items() if name != "time-budget"}
    return run_command.request_untraced(request, request.experiment, own, given=given, others=others)


def decide(run_request: RunRequest, request: GateRequest, argv: Sequence[str]) -> int:
    margins = parse_margins(request.margins)

    def adapt(experiment: Experiment, servers: Sequence[Contestant], _clients: Sequence[Contestant]) -> Experiment:
        for server in servers:
            if server.name in (BEFORE, AFTER) and not server.available:
                raise UserError(f"the server {server.name} cannot be started: {server.why_not}")
        return convert_to_gate(experiment, margins, request.given["time-budget"])

    done = run_command.carry_out(run_request, argv, adapt)
    findings = done.analysis.gate if done.analysis else None
    if request.as_json:
        from netdyno.present.plain import make_plain

        print(json.dumps(done.line | {"gate": make_plain(findings)}), flush=True)
    if findings is not None:
        from netdyno.present.prose.gate import list_notes

        notes = list_notes(findings, done.analysis.scenarios if done.analysis else ())
        _write(findings, str(done.line["run_id"]), request, notes)
    elif done.exit_code <= 128:
        print("netdyno: nothing was measured: no trial ended", file=sys.stderr)
    if done.exit_code > 128:
        return done.exit_code
    return EXIT_CODES[findings.decision if findings else "unmeasured"]


def _write(findings: GateFindings, run_id: str, request: GateRequest, notes: Sequence[str]) -> None:
    from netdyno.present import gate

    open_for_sentences(sys.stderr if request.as_json else sys.stdout).print(gate.format_text(findings, notes))
    for path, render in ((request.markdown, gate.format_markdown), (request.junit, gate.format_junit)):
        if path is not None:
            try:
                write_whole(path, render(findings, run_id, notes))
            except OSError as error:
                raise UserError(f"{path} cannot be written: {error.strerror}") from error
    if request.history is not None:
        _append(request.history, gate.format_history(findings, run_id, _read_commit(request)))


def _append(path: Path, line: str) -> None:
    """Add a line at the end of a file, whole even where another gate adds one. Raises UserError where it cannot."""
    try:
        with path.open("ab", buffering=0) as history:
            history.write(line.encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def _read_commit(request: GateRequest) -> str | None:
    """Return the commit of the later server: HEAD of its repository; None in a folder of none."""
    repository = ROOT if request.contestant else request.repository or Path()
    try:
        return git.run_git(repository, "rev-parse", "--verify", "--quiet", "HEAD").stdout.strip() or None
    except OSError:
        return None


def parse_margins(written: Sequence[str]) -> Mapping[str, float]:
    """Read shares by metric from texts such as "p99=25" in per cent. Raises UserError for any other."""
    from netdyno.analysis.found.gate import METRIC_NAMES

    margins: dict[str, float] = {}
    for text in written:
        name, _, amount = text.partition("=")
        if name not in METRIC_NAMES:
            raise UserError(f"--margin {text!r}: {name!r} is no metric of a gate{did_you_mean(name, METRIC_NAMES)}")
        try:
            share = float(amount.removesuffix("%")) / 100
        except ValueError:
            share = math.nan
        if not 0 < share < 1:
            raise UserError(f"--margin {text!r}: write the allowed loss in per cent: {name}=5")
        margins[name] = share
    return margins or MARGINS


def convert_to_gate(experiment: Experiment, margins: Mapping[str, float], time_budget_s: float) -> Experiment:
    """Return the experiment as one that goes on until it has decided, without claims, figures and control. Raises
    UserError where it has no metric with a margin."""
    from netdyno.analysis.gate.judge_gate import select_metrics

    gate = Gate(before=BEFORE, after=AFTER, margins=dict(margins))
    scenarios = tuple(
        msgspec.structs.replace(
            scenario,
            blocks=1,
            most_blocks=GATE_LOOKS[-1],
            precision=None,
            timeout_s=min(scenario.timeout_s, LONGEST_TIMEOUT * time_budget_s),
        )
        for scenario in experiment.scenarios
        if select_metrics(gate, scenario)
    )
    if not scenarios:
        raise UserError(
            f"experiment {experiment.name!r} measures nothing that has a margin ({', '.join(margins)}) in a gate"
        )
    judged = {name for scenario in scenarios for name in select_metrics(gate, scenario)}
    unjudged = [name for name in margins if name not in judged]
    if unjudged and margins is not MARGINS:
        raise UserError(
            f"--margin {unjudged[0]}: a gate of {experiment.name!r} does not judge it: it judges a latency of a closed "
            "loop, or 'mean', only where the scenario ranks by it"
        )
    return msgspec.structs.replace(
        experiment,
        scenarios=scenarios,
        claims=(),
        figures=(),
        aa_share=0.0,
        time_budget_s=time_budget_s,
        time_limit_s=time_budget_s,
        gate=gate,
    )
