"""Which contestants a suite runs over: all of a kind, or those that `--contestant` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import ROOT, build_dir
from netdyno.model.contestant import Contestant
from netdyno.question.contestants import codesize, kernel
from netdyno.question.contestants.contestants import ContestantKind, discover, select, skip_file

NONE_CHOSEN = [pytest.param(None, marks=pytest.mark.skip(reason="concerns none of the chosen contestants"))]
ONCE_A_LANGUAGE = "once_a_language"
ONCE_A_FAMILY = "once_a_family"
MARKS = (
    (
        f"{ONCE_A_LANGUAGE}: what the test looks at is shared by all contestants of a language; it runs against one of "
        "them, unless contestants are named or --all is given"
    ),
    (
        f"{ONCE_A_FAMILY}: the same of the contestants of a language that stand on the same libraries and all block or "
        "never do"
    ),
)
RICHEST = "rpc"
"""The workload whose session asks most of a loop: replies, waits and burnt CPU."""


def chosen(config: pytest.Config, kind: ContestantKind) -> list[Contestant]:
    """The requested contestants of that kind. A name that neither a server nor a client has is an error."""
    names = _named(config)
    if names:
        select((*discovered("server"), *discovered_frameworks(), *discovered("client")), names)
    return [
        contestant
        for contestant in discovered(kind)
        if not names or any(fnmatchcase(contestant.name, name) for name in names)
    ]


def targets(
    metafunc: pytest.Metafunc, kind: ContestantKind, concerns: Callable[[Contestant], bool] = lambda _: True
) -> tuple[list[Contestant], set[str]]:
    """The contestants that a test concerns and runs against, and the names of those that meet every test."""
    in_full = tested_in_full(metafunc.config, kind)
    contestants = [contestant for contestant in chosen(metafunc.config, kind) if concerns(contestant)]
    if metafunc.definition.get_closest_marker(ONCE_A_LANGUAGE) is not None:
        return [contestant for contestant in contestants if contestant.name in in_full], in_full
    if metafunc.definition.get_closest_marker(ONCE_A_FAMILY) is not None:
        families = {
            contestant.name for contestant in one_of_each(contestants, lambda contestant: _family(kind, contestant))
        }
        return [contestant for contestant in contestants if contestant.name in families | in_full], in_full
    return contestants, in_full


def tested_in_full(config: pytest.Config, kind: ContestantKind) -> set[str]:
    """The names of the contestants against which every test runs: those that are named, all with --all, else one for
    each language and transport. Against the others run the tests that look at what is their own."""
    contestants = chosen(config, kind)
    if _named(config) or config.getoption("--all"):
        return {contestant.name for contestant in contestants}
    return {
        contestant.name
        for contestant in one_of_each(contestants, lambda contestant: _language_and_transport(kind, contestant))
    }


def one_of_each(contestants: Iterable[Contestant], key: Callable[[Contestant], object]) -> list[Contestant]:
    """Return, for each key, the contestant that stands for all with it: the first by name with the most workloads, from
    those that are ranked and can be started if there are such, and are one process."""
    representatives: dict[object, Contestant] = {}
    ordered = sorted(
        contestants,
        key=lambda contestant: (
            contestant.manifest.apart,
            not contestant.available,
            -len(contestant.manifest.workloads),
            _starts_interpreters(contestant),
            contestant.name,
        ),
    )
    for contestant in ordered:
        representatives.setdefault(key(contestant), contestant)
    return list(representatives.values())


def _starts_interpreters(contestant: Contestant) -> bool:
    """Its threads are processes with an interpreter each, so that a start costs several."""
    return contestant.manifest.kind == "command" and contestant.manifest.threads == "any"


def _language_and_transport(kind: ContestantKind, contestant: Contestant) -> object:
    return _language(kind, contestant.name), contestant.manifest.transports


def _family(kind: ContestantKind, contestant: Contestant) -> object:
    manifest = contestant.manifest
    return _language_and_transport(kind, contestant), manifest.needs, manifest.asynchronous


def workloads_to_test(workloads: Iterable[str], *, in_full: bool) -> list[str]:
    """All of them, or the one that stands for them where a contestant is not tested in full."""
    available = list(workloads)
    return available if in_full else [RICHEST] if RICHEST in available else available[:1]


@cache
def _language(kind: ContestantKind, name: str) -> str:
    """Read once: every test of a suite asks for it."""
    return codesize.find_language(codesize.list_sources(ROOT / f"{kind}s" / name))


def _named(config: pytest.Config) -> list[str]:
    names: list[str] = config.getoption("--contestant", default=[])
    return names


@cache
def discover_once(kind: ContestantKind = "server") -> tuple[Contestant, ...]:
    """Return all of a kind, read once for all files of tests that need them while they are collected."""
    return discover(kind=kind)


@cache
def discovered(kind: ContestantKind) -> tuple[Contestant, ...]:
    """All of a kind but for frameworks, which have a contract of their own."""
    return tuple(contestant for contestant in discover_once(kind) if not contestant.manifest.is_framework)


@cache
def discovered_frameworks() -> tuple[Contestant, ...]:
    """All frameworks, whose contract is that of one workload alone (tests/contract/web, tests/contract/grpc)."""
    return tuple(contestant for contestant in discover_once("server") if contestant.manifest.is_framework)


def list_tested_workloads(contestant: Contestant) -> list[str]:
    """The workloads of a contestant whose contract is the large one; of web there is a smaller (tests/contract/web)."""
    return [workload for workload in contestant.manifest.workloads if workload != "web"]


def list_web_servers(config: pytest.Config) -> list[Contestant]:
    """The servers that the contract of web is checked with: the requested ones, or all with --all, else those of its
    own that netdyno tests in full, and the frameworks that are there without a build."""
    names = _named(config)
    own_servers = [server for server in discovered("server") if "web" in server.manifest.workloads]
    frameworks = [framework for framework in discovered_frameworks() if "web" in framework.manifest.workloads]
    if names or config.getoption("--all"):
        everyone = [*own_servers, *frameworks]
        return [server for server in everyone if not names or any(fnmatchcase(server.name, name) for name in names)]
    full = tested_in_full(config, "server")
    built = [framework for framework in frameworks if not framework.manifest.build]
    return [*(server for server in own_servers if server.name in full), *built]


def list_grpc_servers(config: pytest.Config) -> list[Contestant]:
    """The frameworks that the contract of grpc is checked with: the requested ones, or all with --all."""
    names = _named(config) or (["*"] if config.getoption("--all") else [])
    return [
        framework
        for framework in discovered_frameworks()
        if "grpc" in framework.manifest.workloads and any(fnmatchcase(framework.name, name) for name in names)
    ]


def startable(contestant: Contestant, kind: ContestantKind) -> Contestant:
    """The contestant; a skip that states the reason of build or kernel; or a failure when it is just not built."""
    if contestant.available:
        return contestant
    stated = skip_file(build_dir(), contestant.name, kind).is_file() or kernel.explain_missing(
        contestant.manifest.needs
    )
    if stated or contestant.manifest.kind in ("command", "framework"):
        pytest.skip(f"{contestant.name}: {contestant.why_not}")
    pytest.fail(f"{contestant.name}: neither built nor skipped: {contestant.why_not}")


def quickly_compiled(contestant: Contestant, folder: Path) -> Contestant:
    """The contestant, its program left to the quick compiler of the JVM (C1) where it is in Java: what a test asks of
    it is over before code by the other is worth its CPU. The program is a script (cmake/kinds/java.cmake); the copy of
    it with that option goes into the folder."""
    if contestant.manifest.kind != "java":
        return contestant
    program = next(Path(part) for part in contestant.command if Path(part).name == contestant.name and "/" in part)
    script, quick = program.read_text(encoding="utf-8"), folder / contestant.name
    changed = script.replace('/bin/java" ', '/bin/java" -XX:TieredStopAtLevel=1 ')
    assert changed != script, f"{program} starts no JVM"
    quick.write_text(changed, encoding="utf-8")
    quick.chmod(0o755)
    command = tuple(str(quick) if part == str(program) else part for part in contestant.command)
    return msgspec.structs.replace(contestant, command=command)


def one_at_a_time(contestant: Contestant, kind: ContestantKind) -> pytest.MarkDecorator:
    """The mark of a test with this contestant: where suites run side by side, one process has all tests of it, so that
    as many contestants run at a time as there are processes."""
    return pytest.mark.xdist_group(f"{kind} {contestant.name}")
