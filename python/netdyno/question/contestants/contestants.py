"""Contestants are folders: servers/<name>/server.json and clients/<name>/client.json. Every folder is found, and either
can be started or has a reason why not. Nothing is registered anywhere else."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args, get_type_hints

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError, check_keys, did_you_mean
from netdyno.kit.files import read_given
from netdyno.kit.paths import ENTRY, IS_INSTALLED, NEEDS_CLONE, ROOT, build_dir, launcher_path
from netdyno.model.contestant import Contestant, Manifest, behind_launcher, launched
from netdyno.model.own_requests import BYTES
from netdyno.model.transports import TRANSPORTS
from netdyno.question.contestants import kernel, own, programs
from netdyno.question.contestants.building import is_made_on_demand

ContestantKind = Literal["server", "client"]
VERSION_PATIENCE_S = 20.0
"""The limit for an answer that takes a second, on a busy machine."""
# Computed once: for the types of its fields, msgspec evaluates every annotation.
_KEYS = tuple(field.encode_name for field in msgspec.structs.fields(Manifest))
_PACKAGES = sysconfig.get_path("platlib")
_ALSO_BUILT = {"java": ("java/{}/program.jar",), "erlang": ("erlang/{}/*.beam",)}
"""What cmake/kinds/<kind>.cmake makes beside the program, by kind: `{}` is the contestant."""
_LEFT_BEHIND = {"Cargo.lock", "__pycache__"}
"""What git leaves in the folder of a contestant that another commit no longer has, as it ignores it."""
_EXPLAINED_KEYS = {
    "run": "the list of arguments that starts the program",
    "version": "the list of arguments that prints the version of the framework",
    "settings": "its settings, and the document that recommends them",
}


def parse_manifest(path: Path) -> Manifest:
    """Read one manifest. Raises UserError naming the file, the key and the nearest valid key."""
    try:
        raw = msgspec.json.decode(read_given(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # UTF-8 may be broken, too
        raise UserError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise UserError(f"{path}: must hold one JSON object")
    check_keys(str(path), raw, _KEYS)
    try:
        manifest = msgspec.convert(raw, Manifest)
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: {_explain_validation_error(raw, error)}") from error
    needed = {"command": ("run",), "framework": ("run", "version", "settings")}.get(manifest.kind, ())
    for key in needed:
        if not getattr(manifest, key):
            raise UserError(f"{path}: kind {manifest.kind!r} needs the key {key!r}: {_EXPLAINED_KEYS[key]}")
    _check_transports(path, manifest)
    return manifest


def _check_transports(path: Path, manifest: Manifest) -> None:
    if not manifest.transports:
        raise UserError(f"{path}: key 'transports': names none; the first is the one that is measured")
    for name in manifest.transports:
        if name not in TRANSPORTS:
            raise UserError(f"{path}: key 'transports': unknown transport {name!r}{did_you_mean(name, TRANSPORTS)}")


def _explain_validation_error(raw: dict[str, object], error: msgspec.ValidationError) -> str:
    """Describe a validation error: the key first, and for a wrong word the nearest right one."""
    text = str(error)
    if "`$." not in text:
        return text
    message, key = text.rsplit(" - at `$.", 1)
    key = key.rstrip("`")
    choices = [word for word in get_args(get_type_hints(Manifest).get(key)) if isinstance(word, str)]
    value = raw.get(key)
    return f"key {key!r}: {message}" + (did_you_mean(value, choices) if isinstance(value, str) else "")


def discover(root: Path = ROOT, build: Path | None = None, kind: ContestantKind = "server") -> tuple[Contestant, ...]:
    """Every contestant of a kind, by name. A folder without a manifest, or with a broken one, is a UserError."""
    build_folder = build if build is not None else build_dir()
    home = root / f"{kind}s"
    folders = sorted(entry for entry in home.iterdir() if _is_contestant(entry)) if home.is_dir() else []
    return tuple(_load(folder, build_folder, kind) for folder in folders)


def _is_contestant(entry: Path) -> bool:
    if not entry.is_dir() or entry.name.startswith((".", "_")):
        return False
    names = {path.name for path in entry.iterdir()}
    return not names or not names <= _LEFT_BEHIND


def _load(folder: Path, build: Path, kind: ContestantKind) -> Contestant:
    manifest = parse_manifest(folder / f"{kind}.json")
    for key, value in {"unsafe": manifest.unsafe, "unranked": manifest.unranked}.items():
        if value and kind == "client":
            raise UserError(f"{folder / 'client.json'}: key {key!r}: only a server can be {key}")
    if manifest.instrument and kind == "server":
        raise UserError(f"{folder / 'server.json'}: key 'instrument': only a client can be an external load program")
    if manifest.is_built:
        command: tuple[str, ...] = (str(build / f"{kind}s" / folder.name),)
    else:
        command = expand(manifest.run, folder, build)
    if manifest.is_framework:
        command = own.stand_in_for(command)
    elif kind == "server" and manifest.is_launched:
        command = launched(str(launcher_path(build)), folder.name, manifest, command)
    skipped, is_to_come = skip_file(build, folder.name, kind), is_made_on_demand(build)
    why_not = NEEDS_CLONE if IS_INSTALLED else _explain_why_not(skipped, manifest, command, is_to_come=is_to_come)
    built_files = tuple(f"{{build}}/{pattern.format(folder.name)}" for pattern in _ALSO_BUILT.get(manifest.kind, ()))
    return Contestant(
        name=folder.name,
        manifest=manifest,
        command=command,
        available=not why_not,
        why_not=why_not,
        loads=expand((*built_files, *manifest.loads), folder, build),
    )


def expand(arguments: Sequence[str], folder: Path, build: Path) -> tuple[str, ...]:
    """Replace {folder} (the contestant's own), {build} (the build directory), {python} (the interpreter of the harness,
    with its packages), {packages} (where these are) and the programs of others (programs.py) in a manifest's argument
    list."""
    places = {
        "{folder}": str(folder),
        "{build}": str(build),
        "{python}": sys.executable,
        "{packages}": _PACKAGES,
        **programs.resolve_places(arguments),
    }
    expanded = list(arguments)
    for name, place in places.items():
        expanded = [text.replace(name, place) for text in expanded]
    return tuple(expanded)


def skip_file(build: Path, name: str, kind: ContestantKind = "server") -> Path:
    """The file with the build's reason for skipping a contestant; it exists only then (cmake/Contestants.cmake)."""
    return build / "skipped" / f"{kind}s" / f"{name}.txt"


def _explain_why_not(reason: Path, manifest: Manifest, command: tuple[str, ...], *, is_to_come: bool) -> str:
    """The reason why a contestant cannot be started, or "": the build's own where it skipped it, what the kernel lacks,
    or a missing program, unless it `is_to_come`."""
    if reason.is_file():
        return " ".join(reason.read_text(encoding="utf-8").split())
    if why_not := kernel.explain_missing(manifest.needs) or programs.explain_missing(manifest.needs):
        return why_not
    if lacking := [f"{tool} not found: {how}" for tool, how in manifest.tools.items() if shutil.which(tool) is None]:
        return lacking[0]
    program = behind_launcher(command)[0]
    if not manifest.is_built and shutil.which(program) is None:
        return f"{program} not found"
    built = [*([program] if manifest.is_built else []), *([command[0]] if command[0] != program else [])]
    if missing := [path for path in built if not is_to_come and not Path(path).is_file()]:
        return f"not built: {missing[0]} is missing (run ./netdyno, or: cmake --build --preset release)"
    return ""


def find_by_name(contestants: Iterable[Contestant], name: str, kind: ContestantKind = "server") -> Contestant:
    """The contestant of that name. Raises UserError with the nearest name."""
    everyone = {contestant.name: contestant for contestant in contestants}
    if name not in everyone:
        raise UserError(f"unknown {kind} {name!r}{did_you_mean(name, everyone, f'{ENTRY} list {kind}s')}")
    return everyone[name]


def select(contestants: Sequence[Contestant], patterns: Sequence[str]) -> tuple[Contestant, ...]:
    """The contestants whose name matches one of the globs, or kind and name, such as framework:*, in name order; an
    unsafe or unranked one only where it is named in full. A pattern without a match is a UserError."""
    chosen: dict[str, Contestant] = {}
    for pattern in dict.fromkeys(patterns):
        matching = [contestant for contestant in contestants if _matches(contestant, pattern)]
        if not matching:
            names = [contestant.name for contestant in contestants]
            excluded = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
            if excluded:
                reason = "unsafe or not ranked"
                raise UserError(f"{pattern!r} matches only what is {reason}; name it in full: {', '.join(excluded)}")
            raise UserError(f"no server is called {pattern!r}{did_you_mean(pattern, names, f'{ENTRY} list servers')}")
        chosen.update((contestant.name, contestant) for contestant in matching)
    return tuple(chosen[name] for name in sorted(chosen))


def select_able(
    contestants: Sequence[Contestant], patterns: Sequence[str], workloads: Collection[str]
) -> tuple[Contestant, ...]:
    """As `select`, without those that speak none of the workloads, unless they are named in full, or all are such.
    Raises UserError for a pattern of which none would be left beside others."""
    selected = select(contestants, patterns)
    able = [
        contestant
        for contestant in selected
        if contestant.name in patterns or not {*workloads}.isdisjoint(contestant.manifest.workloads)
    ]
    for pattern in patterns if able else ():
        if not any(_matches(contestant, pattern) for contestant in able):
            spoken = quantities.listed(sorted(workloads))
            raise UserError(f"{pattern!r} matches only servers that speak none of {spoken}")
    return tuple(able) or selected


def _matches(contestant: Contestant, pattern: str) -> bool:
    names = contestant.name, f"{contestant.manifest.kind}:{contestant.name}"
    matches = any(fnmatch.fnmatchcase(name, pattern) for name in names)
    return contestant.name == pattern or (matches and not contestant.manifest.apart)


def choose_workload(requested: str | None, servers: Sequence[Contestant]) -> str:
    """Return the requested workload, or else the first that all servers speak. Raises UserError."""
    known = [
        name for name in servers[0].manifest.workloads if all(name in server.manifest.workloads for server in servers)
    ]
    if requested is None and known:
        return known[0]
    for server in servers:
        if requested not in server.manifest.workloads:
            speaks = quantities.listed([name for name in server.manifest.workloads if name != BYTES])
            raise UserError(
                f"--workload: {server.name} does not speak {requested or servers[0].manifest.workloads[0]!r} "
                f"(it speaks {speaks})"
            )
    assert requested is not None
    return requested


def prepare(
    contestant: Contestant, root: Path = ROOT, build: Path | None = None, kind: ContestantKind = "server"
) -> Contestant:
    """Return a contestant ready to be started, after CMake has built its part (building.make): a build step of any
    other kind is run here, with the environment that the build gives to compilers. A failing step makes it unavailable,
    with its last line of output as the reason."""
    if not contestant.available:
        return contestant
    build_folder = build if build is not None else build_dir()
    skipped = skip_file(build_folder, contestant.name, kind)
    if why_not := _explain_why_not(skipped, contestant.manifest, contestant.command, is_to_come=False):
        return _mark_unavailable(contestant, why_not)
    if not contestant.manifest.build:
        return contestant
    folder = root / f"{kind}s" / contestant.name
    command = expand(contestant.manifest.build, folder, build_folder)
    try:
        (build_folder / "frameworks").mkdir(parents=True, exist_ok=True)
        process = subprocess.run(
            command,
            cwd=folder,
            env=_read_build_environment(build_folder),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return _mark_unavailable(contestant, f"its build step cannot be started: {command[0]}: {error.strerror}")
    if process.returncode == 0:
        return contestant
    last_line = (process.stderr.strip() or process.stdout.strip() or "it printed nothing").splitlines()[-1]
    return _mark_unavailable(contestant, f"its build step failed (exit code {process.returncode}): {last_line}")


def describe_frameworks(servers: Sequence[Contestant], build: Path, root: Path = ROOT) -> list[str]:
    """Return one line for each framework that can be started: its version, as it prints that, and its settings."""
    return [
        f"{server.name}: {_read_version(server, root / 'servers' / server.name, build)}; {server.manifest.settings}"
        for server in servers
        if server.manifest.is_framework and server.available
    ]


def _read_version(framework: Contestant, folder: Path, build: Path) -> str:
    command = expand(framework.manifest.version, folder, build)
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=VERSION_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"version unknown ({error})"
    return ((process.stdout or process.stderr).strip().splitlines() or ["version unknown"])[0].replace(f"{build}/", "")


def _read_build_environment(build: Path) -> dict[str, str]:
    """The environment that cmake/Environment.cmake has left in the cache; in a foreign build the least there is."""
    cache = build / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8", errors="replace") if cache.is_file() else ""
    stated = re.search(r"^NETDYNO_BUILD_ENVIRONMENT:\w+=(.*)$", text, re.MULTILINE)
    words = stated[1].split() if stated else ["LANG=C.UTF-8", "PATH", "HOME", "TMPDIR"]
    fixed = dict(word.split("=", 1) for word in words if "=" in word)
    return {name: os.environ[name] for name in words if name in os.environ} | fixed


def _mark_unavailable(contestant: Contestant, why_not: str) -> Contestant:
    return msgspec.structs.replace(contestant, available=False, why_not=why_not)
