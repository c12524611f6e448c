"""The command line. Everything heavy is imported where it is used, so that `netdyno run` starts within a moment."""

from __future__ import annotations

import errno
import functools
import itertools
import json
import os
import re
import select
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn, get_args

import typer
from msgspec.structs import replace
from typer._click.exceptions import NoArgsIsHelpError
from typer._click.globals import get_current_context
from typer.core import TyperGroup
from typer.main import get_group

from netdyno.kit.errors import UserError, cut_middle, did_you_mean
from netdyno.kit.escape import harmless
from netdyno.kit.paths import ENTRY, IS_INSTALLED, NEEDS_CLONE, RESULTS, ROOT, build_dir, generator_path
from netdyno.kit.statistics.histogram import HistogramError
from netdyno.kit.version import VERSION
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import MOST_AA_SHARE, Budget, Experiment
from netdyno.model.observation import ForeignLoad
from netdyno.model.options import LINK, PROFILED, SCENARIO
from netdyno.model.trial import Trace
from netdyno.model.values import Option, declared, whole
from netdyno.question.capacity import SEARCH
from netdyno.question.contestants.contestants import ContestantKind
from netdyno.question.workload import FRAMEWORKS_SPEAK
from netdyno.question.workload import OPTIONS as WORKLOAD
from netdyno.verbs import own_servers
from netdyno.verbs.completion import ASKS, SCRIPTS, Shell
from netdyno.verbs.flags import GivenOptions, takes

HELP = "A dynamometer for network servers: which concurrency model should my server use, and how much better is it?"
app = typer.Typer(
    name="netdyno",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
new_app = typer.Typer(help="Copy a server to begin a new one.", no_args_is_help=True)
app.add_typer(new_app, name="new")
cluster_app = typer.Typer(help="Many machines: certificates, scheduler, hosts.", no_args_is_help=True)
app.add_typer(cluster_app, name="cluster")

# The rest of the line belongs to the program that is started, its --help included.
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
LastLine = Annotated[bool, typer.Option("--json", help="End with one line of JSON on stdout.")]
ResultsFolder = Annotated[Path, typer.Option("--results", envvar="NETDYNO_RESULTS", help="Where runs are stored.")]
Contestants = Annotated[list[str] | None, typer.Option(help=SCENARIO["contestants"].help)]
Foreign = Annotated[
    ForeignLoad,
    typer.Option(
        envvar="NETDYNO_FOREIGN_LOAD", help="What to do with a trial during which other programs used the machine."
    ),
]
A_RUN = "A run's id (see: list runs), its folder, or an experiment for its newest run."
ClusterFolder = Annotated[Path, typer.Option("--cluster", help="The folder with this host's certificate.")]
RunCluster = Annotated[
    Path | None, typer.Option("--cluster", metavar="DIR", help="Run on the hosts of a cluster (docs/many-machines.md).")
]
ExportFormat = Literal["json", "csv", "md", "bencher", "github-bigger", "github-smaller", "schema"]
CLUSTER = Path("cluster")
INSTEAD = {name: replace(option, default=None) for name, option in {**SCENARIO, **declared(Experiment)}.items()}
"""Options that replace those of the experiment where they are given."""


OF_CLONE = frozenset({"aa", "calibrate", "check", "cluster", "install-load", "link", "new", "test"})
"""The verbs that build, or start, what only a clone has."""


def _print_version(is_given: bool) -> None:
    if is_given:
        print(f"netdyno {VERSION}")
        raise typer.Exit


@app.callback(help=HELP)
def begin(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Refuse what needs sources where there are none."""
    if IS_INSTALLED and ctx.invoked_subcommand in OF_CLONE:
        raise UserError(f"{ctx.invoked_subcommand}: {NEEDS_CLONE}")


def _select_options(*names: str) -> tuple[Option, ...]:
    return tuple(INSTEAD[name] for name in names)


@app.command()
@takes(
    *_select_options("connections", "rate"),
    *_select_options("blocks", "duration", "precision", "most-blocks", "time-budget", "seed", "aa-share"),
    *own_servers.NAMING,
    *own_servers.SENDING,
)
def run(
    experiment: Annotated[str, typer.Argument(help="A name (see: list experiments) or the path of a .toml.")] = "quick",
    budget: Annotated[
        Budget, typer.Option(help="How much of the experiment runs: a part of its grid, as written, or as published.")
    ] = ("normal"),
    *,
    given: GivenOptions,
    contestant: Contestants = None,
    workload: Annotated[
        str | None, typer.Option(help="The workload of your servers (protocol/WIRE.md; default: http).")
    ] = None,
    results: ResultsFolder = RESULTS,
    foreign_load: Foreign = "strike-out",
    trace: Annotated[
        Trace,
        typer.Option(help="Trace system calls afterwards: if within a tenth of the run's time, always, or never."),
    ] = "auto",
    with_profile: Annotated[
        bool, typer.Option("--profile", help="Show afterwards where the servers spend their time (see: profile).")
    ] = False,
    cluster: RunCluster = None,
    as_json: LastLine = False,
) -> int:
    """Run an experiment, print its table and write its report."""
    from netdyno.verbs import run as run_command

    request = run_command.RunRequest(
        experiment=experiment,
        budget=budget,
        given=given,
        contestants=tuple(contestant or ()),
        own=own_servers.describe(given, workload),
        results=results,
        foreign_load=foreign_load,
        trace=trace,
        profile=with_profile,
        cluster=cluster,
        as_json=as_json,
    )
    return run_command.run(request, _list_typed())


@app.command()
@takes(
    *_select_options("connections", "rate", "duration", "seed"),
    *own_servers.SENDING,
    replace(INSTEAD["time-budget"], default=600.0, help="Begin no block that would end later than this, such as 20m."),
)
def gate(
    experiment: Annotated[str, typer.Argument(help="A name (see: list experiments) or the path of a .toml.")] = "web",
    *,
    before: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="The old server: './old --port {port}'.")
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="COMMAND", help="The new server: './new --port {port}'.")] = None,
    base: Annotated[
        str | None, typer.Option(metavar="REF", help="Compare HEAD with this commit, without --before and --after.")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND", help="With --base: what starts the server; {tree} is the folder of the commit."
        ),
    ] = None,
    build: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="With --base: what builds it, in the folder of the commit.")
    ] = None,
    repository: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --base: where the server's git is (default: here).")
    ] = None,
    contestant: Annotated[
        str | None, typer.Option(help="With --base, without --server: one of netdyno's servers (see: list servers).")
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="The workload of both (protocol/WIRE.md; default: http).")
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=PERCENT",
            help="Allowed loss of a metric; may be repeated (default: throughput=5, cpu=5, p99=25).",
        ),
    ] = None,
    given: GivenOptions,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table for a pull request.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a JUnit report for a CI server.")] = None,
    history: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append the decision and its figures as a line of JSON.")
    ] = None,
    results: ResultsFolder = RESULTS,
    foreign_load: Foreign = "count",
    as_json: LastLine = False,
) -> int:
    """Decide whether a server is worse than before by more than a margin (exit code 1: it is; 3: not decided)."""
    from netdyno.verbs import gate as command

    request = command.GateRequest(
        experiment=experiment,
        before=before,
        after=after,
        base=base,
        contestant=contestant,
        repository=repository,
        build=build,
        server=server,
        workload=workload,
        margins=margin or (),
        given=given,
        results=results,
        as_json=as_json,
        foreign_load=foreign_load,
        markdown=markdown,
        junit=junit,
        history=history,
    )
    return command.run(request, _list_typed())


@app.command()
@takes(
    *(option for name, option in WORKLOAD.items() if name != "service-kind"),
    *own_servers.NAMING,
    *own_servers.SENDING,
)
def advise(
    *,
    given: GivenOptions,
    waits: Annotated[bool, typer.Option("--waits", help="The service time is a wait, as for a database.")] = False,
    computes: Annotated[bool, typer.Option("--computes", help="The service time burns CPU.")] = False,
    frameworks: Annotated[
        bool, typer.Option("--frameworks", help="Web frameworks are candidates, too: the same as --speaks web.")
    ] = False,
    workload: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with these options as keys; flags take precedence.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure even if a stored run has the answer.")] = False,
    along: Annotated[
        bool, typer.Option("--along/--no-along", help="Also measure half and double of the values, if time is left.")
    ] = True,
    results: ResultsFolder = RESULTS,
    foreign_load: Foreign = "count",
    as_json: LastLine = False,
) -> int:
    """Recommend a server for a workload: what it costs, and how certain that is."""
    from netdyno.verbs import advise as command

    if waits and computes:
        raise UserError("--waits and --computes: leave one of them out")
    kind = {"service-kind": "wait"} if waits else {"service-kind": "cpu"} if computes else {}
    if frameworks and given.get("speaks", FRAMEWORKS_SPEAK) != FRAMEWORKS_SPEAK:
        raise UserError("--frameworks: frameworks speak web; leave --speaks out")
    spoken = {"speaks": FRAMEWORKS_SPEAK} if frameworks else {}
    request = command.AdviseRequest(
        given={name: value for name, value in given.items() if name in WORKLOAD} | kind | spoken,
        own=own_servers.describe(given),
        file=workload,
        results=results,
        as_json=as_json,
        foreign_load=foreign_load,
        again=again,
        along=along,
    )
    return command.run(request, _list_typed())


@app.command()
@takes(replace(INSTEAD["blocks"], takes=whole(6)), *_select_options("duration", "seed"))
def aa(
    comparisons: Annotated[int, typer.Option(min=1, help="How many comparisons of a contestant with itself.")] = 45,
    contestant: Contestants = None,
    workload: Annotated[str | None, typer.Option(help="Only scenarios of this workload.")] = None,
    *,
    given: GivenOptions,
    results: ResultsFolder = RESULTS,
    foreign_load: Foreign = "strike-out",
    as_json: LastLine = False,
) -> int:
    """Compare contestants with themselves: how often is a false difference found (exit code 1: too often)?"""
    from netdyno.verbs import aa as command
    from netdyno.verbs.run import RunRequest

    request = RunRequest(
        experiment="aa",
        given={"aa-share": MOST_AA_SHARE, **given},
        contestants=tuple(contestant or ()),
        results=results,
        as_json=as_json,
        foreign_load=foreign_load,
    )
    return command.run(request, _list_typed(), comparisons, workload)


@app.command()
@takes(*own_servers.NAMING, *PROFILED, *(option for option in own_servers.SENDING if option.name != "tls"))
def profile(
    servers: Annotated[
        list[str] | None, typer.Argument(metavar="[SERVER [SERVER]]", help="One, or two to be compared.")
    ] = None,
    *,
    given: GivenOptions,
    results: ResultsFolder = RESULTS,
    as_json: LastLine = False,
) -> int:
    """Show where a server spends its time, or where two differ: what they compute, and what they wait for."""
    from netdyno.verbs import profile as command

    request = own_servers.ServersRequest(
        servers=tuple(servers or ()),
        own=own_servers.describe({name: value for name, value in given.items() if name != "tls"}),
        given=given,
        results=results,
        as_json=as_json,
        foreign_load="count",
    )
    return command.run(request)


@app.command()
@takes(*own_servers.NAMING, *own_servers.SENDING)
def resume(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The id of an interrupted run, or its folder.")],
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Resume even if machine or programs have changed, and record that.")
    ] = False,
    *,
    given: GivenOptions,
    cluster: RunCluster = None,
    results: ResultsFolder = RESULTS,
    as_json: LastLine = False,
) -> int:
    """Resume an interrupted run where it stopped. Name servers of your own again, or answer when asked."""
    from netdyno.verbs import run as run_command
    from netdyno.verbs.permission import read_given

    return run_command.continue_run(
        run_id, results, anyway=anyway, as_json=as_json, cluster=cluster, given=read_given(given)
    )


@app.command("list")
def list_(
    what: Annotated[
        str,
        typer.Argument(help="servers, clients, code, workloads, experiments, claims, keys, metrics, audits or runs."),
    ],
    as_json: Json = False,
    results: ResultsFolder = RESULTS,
) -> int:
    """List servers, runs etc., and why one is missing."""
    from netdyno.verbs import listing

    if what == "runs":
        rows = listing.list_runs(results)
    elif what in listing.LISTS:
        rows = listing.LISTS[what]()
    else:
        raise UserError(f"cannot list {what!r}{did_you_mean(what, [*listing.LISTS, 'runs'])}")
    print(json.dumps(rows) if as_json else listing.as_text(what, rows))
    return 0


@app.command(context_settings=_PASS_ON)
def serve(ctx: typer.Context) -> int:
    """NAME [server options]: start a contestant by hand, to point wrk, nc or a browser at it. ENTER ends it."""
    return _start("server", "serve NAME [server options]", ctx.args)


@app.command(context_settings=_PASS_ON)
def client(ctx: typer.Context) -> int:
    """NAME URL [options]: start a client contestant by hand."""
    return _start("client", "client NAME URL [options]", ctx.args)


def _start(kind: ContestantKind, usage: str, words: Sequence[str]) -> int:
    """Replace this process by the contestant that the first word names; the other words are its options."""
    from netdyno.model import transports
    from netdyno.question.contestants import building, contestants
    from netdyno.verbs import enter

    if not words or words[0] in ("--help", "-h"):
        print(f"usage: netdyno {usage}   (netdyno list {kind}s; netdyno {usage.split()[0]} NAME --help)")
        return 0 if words else 2
    named = contestants.find_by_name(contestants.discover(kind=kind), words[0], kind)
    encrypts = any(word.partition("=")[0] == "--tls" for word in words)
    tls = building.list_tls_targets((named,)) if encrypts else ()
    building.make((*building.list_targets(named, kind), *tls), build_dir())
    chosen = contestants.prepare(named, kind=kind)
    if not chosen.available:
        raise UserError(f"{chosen.name} cannot be started: {chosen.why_not}")
    if chosen.manifest.unsafe:
        print(f"netdyno: {chosen.name} is UNSAFE: {chosen.manifest.unsafe}", file=sys.stderr, flush=True)
    command = [*chosen.command, *complete_options(chosen, words[1:])]
    wants_none = {"--help", "-h", "--multicast-anywhere"}.intersection(words)
    if transports.find_transport(chosen).private and not wants_none:
        command = _wrap_in_private_network(chosen.name, command)
    if kind == "server" and not wants_none:
        enter.watch()
    return _replace_process(command)


def complete_options(chosen: Contestant, options: Sequence[str]) -> list[str]:
    """Return the options of a server that is started by hand. A stand-in wants each in two words, the address among
    them, for which a server that keeps the whole contract has a default. Pure."""
    if not chosen.has_stand_in:
        return [*options]
    words = [part for word in options for part in (word.split("=", 1) if word.startswith("--") else (word,))]
    return words if "--listen" in words else ["--listen", "tcp://127.0.0.1:0", *words]


def _wrap_in_private_network(name: str, command: Sequence[str]) -> list[str]:
    """Return the command in a private network namespace, and print how to reach it there."""
    from netdyno.measure.machine.links.namespace import NotAllowedError, wrap_in_namespace

    try:
        private = wrap_in_namespace(command)
    except NotAllowedError as error:
        raise UserError(f"{name} needs a private network namespace, which cannot be made here: {error}") from error
    load_it = f"{ENTRY} load --namespace {os.getpid()} 'ENDPOINT'"
    print(f"netdyno: {name} is in a private network namespace; load it by: {load_it}", file=sys.stderr, flush=True)
    return private


@app.command(context_settings=_PASS_ON)
def load(
    ctx: typer.Context,
    namespace: Annotated[
        int | None, typer.Option(metavar="PID", help="The process of a server that `serve` put into a private network.")
    ] = None,
) -> int:
    """[--namespace PID] URL [options]: the load generator alone (netdyno load --help)."""
    from netdyno.question.contestants import building

    building.make((building.GENERATOR,), build_dir())
    generator = generator_path(build_dir())
    if not generator.is_file():
        raise UserError(f"the load generator is not built: {generator} is missing (run ./netdyno, which builds it)")
    enter: tuple[str, ...] = ()
    if namespace is not None:
        from netdyno.measure.machine.links.namespace import build_entry_words

        enter = build_entry_words(namespace)
    return _replace_process([*enter, str(generator), *ctx.args])


@app.command("install-load")
def install_load(
    prefix: Annotated[Path, typer.Argument(help="The folder whose bin gets the program, such as ~/.local.")],
) -> int:
    """Install the load generator alone: it runs without Python, and on other machines."""
    from netdyno.verbs import install_load as command

    return command.run(prefix)


@app.command()
@takes(*(replace(LINK[f"link-{name}"], name=name) for name in ("delay", "loss", "rate")))
def link(
    given: GivenOptions,
) -> int:
    """Join two private networks, and show how to run programs at either end, until Ctrl-C."""
    from netdyno.verbs import link as link_command

    return link_command.run(given)


@app.command()
def calibrate(
    other: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=FILE[,rate=R][,stall=DUR]", help="What wrk or wrk2 printed over the same stall."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Score the load generator against a server that does exactly as programmed (up to three minutes)."""
    from netdyno.verbs import calibrate as command

    return command.run(other or (), as_json)


@app.command()
@takes(*own_servers.NAMING, *SEARCH, *own_servers.SENDING)
def capacity(
    servers: Annotated[
        list[str] | None, typer.Argument(metavar="[SERVER]...", help="Servers (see: list servers), or your own.")
    ] = None,
    *,
    given: GivenOptions,
    results: ResultsFolder = RESULTS,
    foreign_load: Foreign = "strike-out",
    as_json: LastLine = False,
) -> int:
    """Find the highest rate at which a server meets an objective; search for several one by one, and compare them."""
    from netdyno.verbs import capacity as command

    request = own_servers.ServersRequest(
        servers=tuple(servers or ()),
        own=own_servers.describe(given),
        given=given,
        results=results,
        as_json=as_json,
        foreign_load=foreign_load,
    )
    return command.run(request, _list_typed())


@app.command()
def chat(
    url: Annotated[str, typer.Argument(help="Where a server speaks the workload chat, such as tcp://127.0.0.1:7000.")],
    name: Annotated[str | None, typer.Option(help="Your name in the chat (default: your login).")] = None,
) -> int:
    """Talk to all clients of a chat server."""
    from netdyno.verbs.chat import chat as conversation

    return conversation.run(url, name)


def _replace_process(command: Sequence[str]) -> NoReturn:
    """Replace this process by the program, with its settings in a trial: output, signals and exit code are its own."""
    from netdyno.measure.machine import program_settings

    chosen = program_settings.choose()
    chosen.apply()
    sys.stdout.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and so would the program
    try:
        os.execvpe(command[0], list(command), chosen.environment)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}") from error


@app.command()
def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN...", help=f"{A_RUN} Further runs are laid over the first."),
    ] = None,
    results: ResultsFolder = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="Print its findings as JSON instead.")] = False,
    export: Annotated[
        ExportFormat | None,
        typer.Option(
            help="Print its findings, cells and trials instead, as JSON, CSV or Markdown; or its figures for Bencher, "
            "or for github-action-benchmark; schema, without a run: that of the JSON."
        ),
    ] = None,
) -> int:
    """Write the report of a stored run again, with further runs laid over it, or print its findings."""
    from netdyno.verbs import run as run_command

    if as_json and export is not None:
        raise UserError("--json and --export: take one of them")
    if (export == "schema") == bool(runs):
        raise UserError("--export schema takes no run" if runs else "name a run (see: list runs), or --export schema")
    runs = runs or []
    if len(runs) > 1 and (as_json or export is not None):
        raise UserError("--json and --export take one run (compare RUN RUN --json takes two)")
    if export is not None:
        sys.stdout.write(run_command.export(runs, results, export))
        return 0
    print(
        run_command.export_findings(runs[0], results)
        if as_json
        else harmless(str(run_command.write_report(runs, results)))
    )
    return 0


@app.command()
def publish(
    runs: Annotated[list[str], typer.Argument(metavar="RUN... DIR", help=f"{A_RUN} The site's folder comes last.")],
    results: ResultsFolder = RESULTS,
) -> int:
    """Make a static site of stored runs in a folder, or add them to an existing one, a page each."""
    from netdyno.verbs import publish as command

    if len(runs) < 2:
        raise UserError("name a run, and then the folder for the site: publish RUN... DIR")
    return command.run(runs[:-1], Path(runs[-1]), results)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="RUN", help=A_RUN)],
    second: Annotated[str, typer.Argument(metavar="RUN", help="The run that it is compared with.")],
    results: ResultsFolder = RESULTS,
    as_json: Json = False,
) -> int:
    """Show what differs between two runs: environments, then the figures of the cells that both have."""
    from netdyno.verbs import compare as compare_command

    return compare_command.run(first, second, results, as_json)


@app.command()
def flips(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help=A_RUN)],
    first: Annotated[str | None, typer.Argument(metavar="CONTESTANT", help="One of its contestants.")] = None,
    second: Annotated[str | None, typer.Argument(metavar="CONTESTANT", help="Another.")] = None,
    along: Annotated[
        str | None, typer.Option(metavar="FACTOR", help="What varies: connections, service-time, ...")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="The metric, if not the one that ranks.")] = None,
    results: ResultsFolder = RESULTS,
    as_json: Json = False,
) -> int:
    """Show at which level of a factor the winner of two contestants changes; with none named, for those that the run
    was made for."""
    from netdyno.verbs import flips as flips_command

    return flips_command.run(run_id, first, second, along, metric, results, as_json=as_json)


@app.command()
def claims(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs' ids (see: list runs) or their folders.")],
    results: ResultsFolder = RESULTS,
    as_json: Json = False,
) -> int:
    """Show the verdicts of stored runs on their claims; of two platforms, also what depends on the platform."""
    from netdyno.verbs import claims as claims_command

    return claims_command.run(runs, results, as_json)


@app.command()
def doctor(as_json: Json = False) -> int:
    """Show what on this machine affects figures, and what would improve them."""
    import msgspec

    from netdyno.verbs.instruments.doctor import examine
    from netdyno.verbs.instruments.doctor.finding import as_text
    from netdyno.verbs.instruments.doctor.system import System

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
    from netdyno.question.contestants import building, contestants
    from netdyno.verbs import checks

    words = [*(names or ()), *ctx.args]
    first_option = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    everyone = {kind: contestants.discover(kind=kind) for kind in get_args(ContestantKind)}
    for name in words[:first_option]:
        contestants.find_by_name(itertools.chain(*everyone.values()), name)
    building.make(checks.list_programs(words[:first_option], everyone), build_dir())
    return checks.run_conformance(words[:first_option], words[first_option:])


@app.command("test", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_tests(
    ctx: typer.Context,
    quick: Annotated[
        bool, typer.Option("--quick", help="In two minutes: units, lint, and quick tests of each contestant.")
    ] = False,
    attack: Annotated[
        bool, typer.Option("--attack", help="In ten minutes: every attack with all of its seeds, and nothing else.")
    ] = False,
    against_all: Annotated[
        bool, typer.Option("--all", help="Every conformance test against every contestant: before a release.")
    ] = False,
) -> int:
    """Run every test and check of the project (further arguments go to pytest). One contestant of each language meets
    every conformance test, the others only those of their event loops."""
    from netdyno.question.contestants import building
    from netdyno.verbs import checks

    building.make((building.EVERYTHING,), build_dir())
    arguments = (*checks.AGAINST_ALL, *ctx.args) if against_all else ctx.args
    return checks.run_tests(build_dir(), arguments, quick=quick, attack=attack)


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="Yours.")]) -> int:
    """Print what makes a shell complete commands and options: eval "$(./netdyno completion bash)"."""
    print(SCRIPTS[shell])
    return 0


@new_app.command("server")
def new_server(
    name: Annotated[str, typer.Argument(help="The new server's name: its folder in servers/.")],
    model: Annotated[str, typer.Option("--from", help="The server to begin from (see: list servers).")],
) -> int:
    """Copy a server under a new name; no list of servers has to be edited."""
    from netdyno.question.contestants import scaffold

    target = scaffold.copy_server(name, model)
    print(f"{target.relative_to(ROOT)} is a copy of servers/{model}: edit its {scaffold.name_edits(target)}, ", end="")
    print("name it in docs/models.md,")
    print(f"then ./netdyno check {name}")
    return 0


@cluster_app.command("init")
def cluster_init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")],
    scheduler: Annotated[
        str | None, typer.Option(help="Where the scheduler will be (default: this machine, port 8786).")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long the certificates are good for.")] = 365,
) -> int:
    """Make a private certificate authority, and a certificate for each role."""
    from netdyno.verbs import cluster

    return cluster.create_certificates(folder, scheduler, days)


@cluster_app.command("scheduler")
def cluster_scheduler(folder: ClusterFolder = CLUSTER) -> int:
    """Run the scheduler, until Ctrl-C."""
    from netdyno.verbs import cluster

    return cluster.schedule(folder)


@cluster_app.command("join")
def cluster_join(
    scheduler: Annotated[str, typer.Argument(metavar="URL", help="The scheduler: tls://10.0.0.1:8786.")],
    role: Annotated[Literal["server", "client"], typer.Option("--as", help="Which half of a trial runs here.")],
    folder: ClusterFolder = CLUSTER,
    address: Annotated[
        str | None,
        typer.Option(
            help="Where servers listen on this host (default: the address by which it reaches the scheduler)."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="A port of this host that is open to the cluster's other hosts.")
    ] = 8787,
    cores: Annotated[str | None, typer.Option(help="The cores for the programs, such as 0,2-3 (default: all).")] = None,
) -> int:
    """Make this machine a host of the cluster, until Ctrl-C."""
    from netdyno.verbs import cluster

    return cluster.join(folder, scheduler, role, address, port, cores)


@cluster_app.command("status")
def cluster_status(folder: ClusterFolder = CLUSTER, as_json: Json = False) -> int:
    """Show the hosts, how far their clocks are apart, and how far they are from each other."""
    from netdyno.verbs import cluster

    return cluster.print_hosts(folder, as_json)


TOO_LITTLE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
)
"""The errors of the system where disk, descriptors, memory or processes have run out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return the exit code. A mistake of the user's is one line on stderr and exit code 2; where
    the program that reads the output has ended (`| head`), this one ends quietly, as SIGPIPE would end it."""
    try:
        return _run_verb(arguments)
    except BrokenPipeError as error:
        return _end_unread(error)
    except SystemExit as ended:  # Typer makes this of a broken pipe
        if isinstance(ended.__context__, BrokenPipeError):
            return _end_unread(ended.__context__)
        raise


def _end_unread(error: BrokenPipeError) -> int:
    """Return the exit code where a program that reads the output has ended. The broken pipe to another is an error."""
    unread = [descriptor for descriptor in (1, 2) if _is_unread(descriptor)]
    for descriptor in unread:  # Python would write what is left at its end, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    return 128 + signal.SIGPIPE if unread else _report_error(f"wrote to a program that has ended: {error}", 2)


def _is_unread(descriptor: int) -> bool:
    """Tell whether no program reads from the other end of a pipe or socket (poll(2))."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _list_typed() -> list[str]:
    """Return the command line that is being carried out, which its runs are stored with."""
    return ["netdyno", *get_current_context().obj]


def _run_verb(arguments: Sequence[str] | None) -> int:
    if ASKS in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        code = _build_command()(
            args=arguments,
            prog_name="netdyno",
            standalone_mode=False,
            obj=sys.argv[1:] if arguments is None else arguments,
        )
        print(end="", flush=True)  # while errors are still handled
        return code if isinstance(code, int) else 0
    except UserError as error:
        from netdyno.present.prose.wrong_reply import describe_error

        return _report_error(describe_error(error), 2)
    except HistogramError as error:
        return _report_error(f"a stored run is damaged: {error}", 2)
    except MemoryError:
        return _report_error("there is not enough memory", 2)
    except UnicodeEncodeError as error:
        return _report_error(f"the output cannot be written as {error.encoding}: set PYTHONUTF8=1", 2)
    except OSError as error:
        if error.errno not in TOO_LITTLE:
            raise
        return _report_error(f"the machine lacks a resource: {error}", 2)
    except typer.TyperException as error:
        if isinstance(error, NoArgsIsHelpError):
            print(error.format_message(), file=sys.stderr)
            return 2
        return _report_error((_explain_missing(error) or error.format_message()) + _find_help(error), 2)
    except KeyboardInterrupt:
        return 130


@functools.cache
def _build_command() -> TyperGroup:
    """Return the parser of all commands, which takes 30 ms to make. A list of commands has their first sentences."""
    group = get_group(app)
    for holder in (group, *(command for command in group.commands.values() if isinstance(command, TyperGroup))):
        for name, command in holder.commands.items():
            first_sentence = re.split(r"(?<=[.?])(?: |$)", command.help or "")[0]
            command.short_help = first_sentence + (" Needs a clone." if IS_INSTALLED and name in OF_CLONE else "")
    return group


OF_STORED = "reads a stored run and starts nothing: name contestants of that run"
NOT_THERE = {
    (
        "gate",
        "--vary",
    ): "a gate compares two servers; take run or capacity with --vary, or a level for each of --before and --after",
    ("gate", "--address"): "a gate starts both servers, so that they begin equal: take --before and --after, or run "
    "with --address",
    ("flips", "--server"): f"flips {OF_STORED}, or run an experiment with a [[flip]] and --server",
    ("compare", "--server"): f"compare {OF_STORED}s; run compares servers",
}
"""Why a verb does not have an option of others."""


def _explain_missing(error: typer.TyperException) -> str:
    option, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    verb = context.info_name if context is not None else ""
    why = NOT_THERE.get((verb, "--server" if option == "--address" and verb != "gate" else option), "")
    return f"{option}: {why}" if why else ""


def _find_help(error: typer.TyperException) -> str:
    """Return a hint to the help of the misused command; only an error of usage knows its command."""
    context = getattr(error, "ctx", None)
    return f" (see: {ENTRY}{context.command_path.removeprefix('netdyno')} --help)" if context else ""


def _report_error(text: str, code: int) -> int:
    print(f"netdyno: {harmless(cut_middle(' '.join(text.split())))}", file=sys.stderr)
    return code
