"""The command line. Everything heavy is imported where it is used, so that `netdyno run` starts within a moment."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn, get_args

import typer

from netdyno.base.errors import UserError, did_you_mean
from netdyno.base.escape import harmless
from netdyno.base.paths import ROOT, build_dir, generator_path
from netdyno.commands.flags import Asked, takes
from netdyno.contestants.contestants import Kind
from netdyno.experiment.capacity import SEARCH
from netdyno.model.experiment import MOST_AA_SHARE, Budget, Experiment
from netdyno.model.observation import ForeignLoad
from netdyno.model.options import LINK, SCENARIO
from netdyno.model.trial import Trace
from netdyno.model.values import Option, declared, whole
from netdyno.statistics.histogram import HistogramError

app = typer.Typer(
    name="netdyno",
    help="A dynamometer for network servers: which concurrency model should my server use, and how much better is it?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
new_app = typer.Typer(help="Begin something new from something that works.", no_args_is_help=True)
app.add_typer(new_app, name="new")

# The rest of the line belongs to the program that is started, its --help included.
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
LastLine = Annotated[bool, typer.Option("--json", help="End with one line of JSON on stdout.")]
Results = Annotated[Path, typer.Option("--results", envvar="NETDYNO_RESULTS", help="Where runs are stored.")]
Contestants = Annotated[list[str] | None, typer.Option(help=SCENARIO["contestants"].help)]
Foreign = Annotated[
    ForeignLoad,
    typer.Option(envvar="NETDYNO_FOREIGN_LOAD", help="What becomes of a trial beside which the machine was busy."),
]
RESULTS = ROOT / "results"
INSTEAD = {name: replace(option, default=None) for name, option in {**SCENARIO, **declared(Experiment)}.items()}
"""Options that take the place of what the experiment says, where they are given."""


def _instead(*names: str) -> tuple[Option, ...]:
    return tuple(INSTEAD[name] for name in names)


@app.command()
@takes(*_instead("blocks", "duration", "precision", "most-blocks", "time-budget", "seed", "aa-share"))
def run(
    experiment: Annotated[str, typer.Argument(help="A name (see: list experiments) or the path of a .toml.")] = "quick",
    budget: Annotated[Budget, typer.Option(help="How much of it: some of its grid, what it says, or as published.")] = (
        "normal"
    ),
    *,
    asked: Asked,
    contestant: Contestants = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="Your own server, in place of contestants, or beside those that are named: "
            "'my-server --port {port}'; may be repeated.",
        ),
    ] = None,
    address: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Your own server where it stands already, which is neither started nor ended: "
            "tcp://127.0.0.1:9000; may be repeated.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--as", help="What your server is called here; may be repeated, in their order, those with --server first."
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="What your servers speak (protocol/WIRE.md; http unless said).")
    ] = None,
    may_load: Annotated[
        bool, typer.Option("--yes-i-may-load-it", help="The address is not on the loopback, and I may load it.")
    ] = False,
    results: Results = RESULTS,
    foreign_load: Foreign = "strike-out",
    trace: Annotated[
        Trace,
        typer.Option(help="Trace system calls afterwards: within a tenth of the run's time, at any length, or not."),
    ] = "auto",
    as_json: LastLine = False,
) -> int:
    """Run an experiment, print its table and write its report."""
    from netdyno.commands import run as run_command

    names = tuple(contestant or ())
    own = run_command.OwnServers(tuple(server or ()), tuple(address or ()), tuple(name or ()), workload, may_load)
    wishes = run_command.Wishes(experiment, budget, asked, names, results, as_json, foreign_load, trace, own)
    return run_command.run(wishes, sys.argv)


@app.command()
@takes(replace(INSTEAD["blocks"], takes=whole(6)), *_instead("duration", "seed"))
def aa(
    comparisons: Annotated[int, typer.Option(min=1, help="How many pairs of a contestant with itself.")] = 45,
    contestant: Contestants = None,
    workload: Annotated[str | None, typer.Option(help="Only the scenarios of this one.")] = None,
    *,
    asked: Asked,
    results: Results = RESULTS,
    foreign_load: Foreign = "strike-out",
    as_json: LastLine = False,
) -> int:
    """Run the same contestants under two names: how often are they told apart? (Exit code 1: too often.)"""
    from netdyno.commands import aa as command
    from netdyno.commands.run import Wishes

    names = tuple(contestant or ())
    asked = {"aa-share": MOST_AA_SHARE, **asked}
    wishes = Wishes("aa", "normal", asked, names, results, as_json, foreign_load)
    return command.run(wishes, sys.argv, comparisons, workload)


@app.command()
def resume(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The id of an interrupted run, or its folder.")],
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Even where machine or programs are not as they were; this is recorded.")
    ] = False,
    results: Results = RESULTS,
    as_json: LastLine = False,
) -> int:
    """Go on with an interrupted run where it stopped."""
    from netdyno.commands import run as run_command

    return run_command.go_on(run_id, results, anyway=anyway, as_json=as_json)


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="servers, clients, code, workloads, experiments, claims or runs.")],
    as_json: Json = False,
    results: Results = RESULTS,
) -> int:
    """Show what there is, and what is missing and why."""
    from netdyno.commands import listing

    if what == "runs":
        rows = listing.runs(results)
    elif what in listing.LISTS:
        rows = listing.LISTS[what]()
    else:
        raise UserError(f"cannot list {what!r}{did_you_mean(what, [*listing.LISTS, 'runs'])}")
    print(json.dumps(rows) if as_json else listing.as_text(what, rows))
    return 0


@app.command(context_settings=_PASS_ON)
def serve(ctx: typer.Context) -> int:
    """NAME [server options]: start a contestant by hand, to point wrk, nc or a browser at it."""
    return _start("server", "serve NAME [server options]", ctx.args)


@app.command(context_settings=_PASS_ON)
def client(ctx: typer.Context) -> int:
    """NAME URL [options]: start a client contestant by hand."""
    return _start("client", "client NAME URL [options]", ctx.args)


def _start(kind: Kind, usage: str, words: Sequence[str]) -> int:
    """Become the contestant that the first word names, with the other words as its options."""
    from netdyno.contestants import building, contestants
    from netdyno.model import transports

    if not words or words[0] in ("--help", "-h"):
        print(f"usage: netdyno {usage}   (netdyno list {kind}s; netdyno {usage.split()[0]} NAME --help)")
        return 0 if words else 2
    named = contestants.by_name(contestants.discover(kind=kind), words[0], kind)
    building.make(building.target(named, kind), build_dir())
    chosen = contestants.prepare(named, kind=kind)
    if not chosen.available:
        raise UserError(f"{chosen.name} cannot be started: {chosen.why_not}")
    if chosen.manifest.unsafe:
        print(f"netdyno: {chosen.name} is UNSAFE: {chosen.manifest.unsafe}", file=sys.stderr, flush=True)
    command = [*chosen.command, *words[1:]]
    wants_none = {"--help", "-h", "--multicast-anywhere"}.intersection(words)
    if transports.of(chosen).private and not wants_none:
        command = _in_a_private_network(chosen.name, command)
    return _become(command)


def _in_a_private_network(name: str, command: Sequence[str]) -> list[str]:
    """The same program in a network namespace of its own, after a word on how to reach it there."""
    from netdyno.machine.links.namespace import NotAllowedError, becoming

    try:
        private = becoming(command)
    except NotAllowedError as error:
        raise UserError(f"{name} needs a private network namespace, which cannot be had here: {error}") from error
    load_it = f"./netdyno load --namespace {os.getpid()} 'ENDPOINT'"
    print(f"netdyno: {name} is in a private network namespace; load it by: {load_it}", file=sys.stderr, flush=True)
    return private


@app.command(context_settings=_PASS_ON)
def load(
    ctx: typer.Context,
    namespace: Annotated[
        int | None, typer.Option(metavar="PID", help="Where a server that `serve` put into a private network is.")
    ] = None,
) -> int:
    """[--namespace PID] URL [options]: the load generator alone (netdyno load --help)."""
    from netdyno.contestants import building

    building.make((building.GENERATOR,), build_dir())
    generator = generator_path(build_dir())
    if not generator.is_file():
        raise UserError(f"the load generator is not built: {generator} is missing (run ./netdyno, which builds it)")
    enter: tuple[str, ...] = ()
    if namespace is not None:
        from netdyno.machine.links.namespace import entering

        enter = entering(namespace)
    return _become([*enter, str(generator), *ctx.args])


@app.command()
@takes(*(replace(LINK[f"link-{name}"], name=name) for name in ("delay", "loss", "rate")))
def link(
    asked: Asked,
) -> int:
    """Join two private networks, and say how to run programs at either end, until Ctrl-C."""
    from netdyno.commands import link as link_command

    return link_command.run(asked)


@app.command()
def calibrate(
    other: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=FILE[,rate=R][,stall=DUR]", help="What wrk or wrk2 printed over the same stall."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Score the load generator against a server that does exactly what it is told (about a minute)."""
    from netdyno.commands import calibrate as command

    return command.run(other or (), as_json)


@app.command()
@takes(*SEARCH)
def capacity(
    server: Annotated[str, typer.Argument(help="A server (see: list servers).")],
    *,
    asked: Asked,
    results: Results = RESULTS,
    foreign_load: Foreign = "strike-out",
    as_json: LastLine = False,
) -> int:
    """Find the highest rate at which a server meets an objective."""
    from netdyno.commands import capacity as command

    wishes = command.Wishes(server, asked, results, as_json, foreign_load)
    return command.run(wishes, sys.argv)


@app.command()
def chat(
    url: Annotated[str, typer.Argument(help="Where a server speaks the workload chat, such as tcp://127.0.0.1:7000.")],
    name: Annotated[
        str | None, typer.Option(help="What the others read before your lines (default: your login).")
    ] = None,
) -> int:
    """Talk to everybody who is connected to a chat server."""
    from netdyno.commands.chat import chat as conversation

    return conversation.run(url, name)


def _become(command: Sequence[str]) -> NoReturn:
    """Become the program, with the settings that a trial gives it: its output, signals and exit code are its own."""
    from netdyno.machine import program_settings

    given = program_settings.choose()
    given.apply()
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), given.environment)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}") from error


@app.command()
def report(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run's id (see: list runs) or its folder.")],
    results: Results = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="Print its findings for programs instead.")] = False,
) -> int:
    """Write the report of a stored run again, or print its findings."""
    from netdyno.commands import run as run_command

    print(
        run_command.findings(run_id, results) if as_json else harmless(str(run_command.write_report(run_id, results)))
    )
    return 0


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="RUN", help="A run's id (see: list runs) or its folder.")],
    second: Annotated[str, typer.Argument(metavar="RUN", help="The run that it is compared with.")],
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Say what differs between two runs: their environments, then the figures of the cells that both have."""
    from netdyno.commands import compare as compare_command

    return compare_command.run(first, second, results, as_json)


@app.command()
def claims(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs' ids (see: list runs) or their folders.")],
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Show the verdicts of stored runs on their claims; of two platforms, also what depends on the platform."""
    from netdyno.commands import claims as claims_command

    return claims_command.run(runs, results, as_json)


@app.command()
def doctor(as_json: Json = False) -> int:
    """Say what this machine does to figures, and what would make them better."""
    import msgspec

    from netdyno.instruments.doctor import examine
    from netdyno.instruments.doctor.system import System
    from netdyno.instruments.doctor.text import as_text

    findings = examine(System())
    columns = shutil.get_terminal_size(fallback=(120, 24)).columns
    print(msgspec.json.encode(findings).decode() if as_json else as_text(findings, columns))
    return 0


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def check(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Contestants; all when none is named.")] = None,
) -> int:
    """Run the conformance suites over servers and clients (from the first option on, the rest goes to pytest)."""
    from netdyno.commands import checks
    from netdyno.contestants import building, contestants

    words = [*(names or ()), *ctx.args]
    first_option = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    everyone = {kind: contestants.discover(kind=kind) for kind in get_args(Kind)}
    for name in words[:first_option]:
        contestants.by_name(itertools.chain(*everyone.values()), name)
    building.make(checks.programs(words[:first_option], everyone), build_dir())
    return checks.run_conformance(words[:first_option], words[first_option:])


@app.command("test", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_tests(
    ctx: typer.Context,
    quick: Annotated[
        bool, typer.Option("--quick", help="In two minutes: units, lint, and one contestant of each family.")
    ] = False,
    attack: Annotated[
        bool, typer.Option("--attack", help="In ten minutes: every attack with all of its seeds, and nothing else.")
    ] = False,
) -> int:
    """Run every test and check of the project (further arguments go to pytest)."""
    from netdyno.commands import checks
    from netdyno.contestants import building

    building.make((building.EVERYTHING,), build_dir())
    return checks.run_tests(build_dir(), ctx.args, quick=quick, attack=attack)


@new_app.command("server")
def new_server(
    name: Annotated[str, typer.Argument(help="The new server's name: its folder in servers/.")],
    model: Annotated[str, typer.Option("--from", help="The server to begin from (see: list servers).")],
) -> int:
    """Copy a server under a new name; nothing else has to be edited."""
    from netdyno.contestants import scaffold

    target = scaffold.new_server(name, model).relative_to(ROOT)
    print(f"{target} is a copy of servers/{model}: edit its main, summary and README, then ./netdyno check {name}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole program: returns the exit code. A mistake of the user's is one line on stderr and exit code 2."""
    try:
        code = app(args=arguments, prog_name="netdyno", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except UserError as error:
        return _complain(str(error), 2)
    except HistogramError as error:
        return _complain(f"a stored run is damaged: {error}", 2)
    except typer.TyperException as error:
        return _complain(error.format_message() + _where_it_is_told(error), 2)
    except KeyboardInterrupt:
        return 130


def _where_it_is_told(error: typer.TyperException) -> str:
    """The help of the command that was used wrongly; only an error of usage knows its command."""
    context = getattr(error, "ctx", None)
    return f" (see: ./{context.command_path} --help)" if context else ""


def _complain(text: str, code: int) -> int:
    print(f"netdyno: {harmless(' '.join(text.split()))}", file=sys.stderr)
    return code
