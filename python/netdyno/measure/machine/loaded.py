"""The files that a contestant's program consists of when it runs: the files that its command names, those that its
manifest lists as loaded, the runtime that interprets it, and the shared libraries of all these.

Not among them are files that a program opens by a name that only it knows (plugins of a library, what a server of the
user's own loads beside the files that its command names), and caches of what is among them (__pycache__, Java's archive
of classes)."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from netdyno.model.contestant import Contestant, behind_launcher
from netdyno.question.contestants import own

_LIBRARY = re.compile(r"^\s+(?:\S+ => )?(/\S.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
"""A line of ldd(1) that has a path: "libz.so.1 => /lib/libz.so.1 (0x7f…)", or the loader, which has no arrow."""
_NO_LIBRARY_FOLDERS = frozenset({"site-packages", "dist-packages", "test", "tests", "__pycache__"})
"""The folders of Python's standard library that belong to other packages or that no program loads."""
_ASK_PYTHON = "import platform, sysconfig; print(platform.python_version()); print(sysconfig.get_path('stdlib'))"
_NODE_MODULE = re.compile(rb"\0(/[!-~]+\.js)(?=\0)")
"""A path in the machine code of Node.js: of a module that it loads from a file, where a distribution has taken that out
of the program (Node.js's configure, --shared-builtin-…-path)."""
_JAVA_PARTS = ("lib/modules", "lib/server/*.so", "lib/*.so")
"""Paths below a JDK's folder. All but libjvm.so need at most the C library and each other."""
_ERLANG_PARTS = ("lib/kernel-*/ebin/*.beam", "lib/stdlib-*/ebin/*.beam")
"""Paths below the root of Erlang/OTP: the applications that every program of it starts with."""
_PATIENCE_S = 20.0
"""The time limit, on a busy machine, of commands that take a tenth of a second."""


class LoadedRuntime(msgspec.Struct, frozen=True):
    """An interpreter or virtual machine: `files` are its program, the files that it loads itself, and the shared
    libraries of all these."""

    name: str
    version: str
    program: Path
    files: tuple[Path, ...]


def files(contestant: Contestant) -> tuple[Path, ...]:
    """Return all of them, each once, in an order that is the same on every host where they are laid out in the same
    way. Raises OSError, SubprocessError."""
    interpreter = find_runtime(contestant)
    runtime_files = interpreter.files if interpreter else ()
    loads = [path for pattern in contestant.loads for path in expand_pattern(pattern)]
    named = [path for path in _find_named(contestant) if interpreter is None or path != interpreter.program]
    return tuple(dict.fromkeys((*_add_libraries((*named, *loads)), *runtime_files)))


def list_program_files(program: Path) -> tuple[Path, ...]:
    """Return a program of the harness's own with its shared libraries. Raises OSError, SubprocessError."""
    return _add_libraries((program.resolve(),))


def find_runtime(contestant: Contestant) -> LoadedRuntime | None:
    """Find its interpreter; None where its program is machine code, or the interpreter is not known here. Raises
    OSError, SubprocessError."""
    runtimes = (_recognise_runtime(path) for path in _find_named(contestant))
    return next((known for known in runtimes if known is not None), None)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file as it is now. For a jar it is that of its entries, as the jar itself holds the time
    at which it was made. Raises OSError, BadZipFile."""
    status = path.stat()
    return _digest_version(path, status.st_ino, status.st_mtime_ns, status.st_size)


@functools.cache
def _digest_version(path: Path, *_: int) -> str:
    if path.suffix != ".jar":
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    entries = hashlib.sha256()
    with zipfile.ZipFile(path) as jar:
        for name in sorted(jar.namelist()):
            entries.update(f"{name}\0".encode())
            entries.update(hashlib.sha256(jar.read(name)).digest())
    return entries.hexdigest()


def _find_named(contestant: Contestant) -> tuple[Path, ...]:
    """Return the files that its command names, and those that a script among them names in full."""
    first = own.behind_stand_in(contestant)
    words = [*_find_program(behind_launcher(contestant.command)), *contestant.command, *first, *(_find_program(first))]
    named = [path for word in words if (path := _resolve_file(word)) is not None]
    return tuple(dict.fromkeys(path for file in named for path in (file, *_read_script(file))))


def _find_program(command: Sequence[str]) -> Iterator[str]:
    """Find the program that a command starts, by env(1) or by itself, in the search path."""
    for word in command:
        if Path(word).name == "env" or word.startswith("-") or "=" in word:
            continue
        if path := shutil.which(word):
            yield path
        return


def _resolve_file(word: str) -> Path | None:
    path = Path(word)
    try:
        return path.resolve() if path.is_file() else None
    except (OSError, ValueError):  # too long a name, or a zero byte in it
        return None


def _read_script(path: Path) -> Iterator[Path]:
    with path.open("rb") as file:
        if file.read(2) != b"#!":
            return
        text = file.read(1 << 16).decode("utf-8", "replace")
    for quoted, bare in re.findall(r"""(?<!\S)(?:"(/[^"\n]+)"|(/\S+))""", text):
        if (named := _resolve_file(quoted or bare)) is not None:
            yield named


def expand_pattern(pattern: str) -> list[Path]:
    """Return the files that a manifest's pattern names, sorted."""
    paths = sorted(Path("/").glob(pattern.lstrip("/")))
    return [path.resolve() for path in paths if path.is_file()]


@functools.cache
def _recognise_runtime(program: Path) -> LoadedRuntime | None:
    """Recognise the runtime by the name of the program."""
    if re.fullmatch(r"node(js)?(-?\d+(\.\d+)*)?", program.name):
        version = _run_command(str(program), "--version").strip()
        return LoadedRuntime(
            "Node.js", version, program, tuple(dict.fromkeys(_add_node_modules(_add_libraries((program,)))))
        )
    if re.fullmatch(r"python3?(\.\d+t?)?", program.name):
        version, _, library = _run_command(str(program), "-I", "-S", "-c", _ASK_PYTHON).strip().partition("\n")
        parts = _list_standard_library(Path(library))
        return LoadedRuntime("Python", version, program, _add_libraries((program, *parts)))
    if program.name == "java":
        home = program.parents[1]
        parts = [part for pattern in _JAVA_PARTS for part in sorted(home.glob(pattern))]
        version = _run_command(str(program), "--version").partition("\n")[0]
        needed = _add_libraries((program, *(part for part in parts if part.name == "libjvm.so")))
        return LoadedRuntime("Java", version, program, tuple(dict.fromkeys((*needed, *parts))))
    if program.name == "beam.smp":
        root = program.parents[2]
        versions = [path.read_text(encoding="utf-8").strip() for path in sorted(root.glob("releases/*/OTP_VERSION"))]
        parts = [part for pattern in _ERLANG_PARTS for part in sorted(root.glob(pattern))]
        return LoadedRuntime("Erlang/OTP", "".join(versions[-1:]), program, (*_add_libraries((program,)), *parts))
    return None


def _add_node_modules(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the paths, and the modules that the program or its library names in full."""
    yield from paths
    for path in paths:
        if path.name.startswith(("node", "libnode")):
            modules = (Path(name.decode()) for name in _NODE_MODULE.findall(path.read_bytes()))
            yield from (module.resolve() for module in modules if module.is_file())


def _list_standard_library(folder: Path) -> list[Path]:
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".so")]
    return [path for path in paths if not _NO_LIBRARY_FOLDERS.intersection(path.relative_to(folder).parts)]


def _add_libraries(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    machine_code = tuple(path for path in dict.fromkeys(paths) if _is_machine_code(path))
    return tuple(dict.fromkeys((*paths, *_find_libraries(machine_code))))


@functools.cache
def _find_libraries(machine_code: tuple[Path, ...]) -> tuple[Path, ...]:
    """Find the libraries of programs and libraries together, by ldd(1), which fails where one of them needs none."""
    if not machine_code:
        return ()
    command = ["ldd", *map(str, machine_code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    return tuple(sorted({Path(path).resolve() for path in _LIBRARY.findall(done.stdout)}))


def _is_machine_code(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _run_command(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True).stdout
