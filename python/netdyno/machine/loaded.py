"""The files that a contestant's program is made of when it runs: what its command names, what its manifest says that it
loads, the run time that interprets it, and the shared libraries of all these.

Not among them are what a program opens by a name that only it knows (plugins of a library, what a server of the user's
own loads beside the files that its command names), and caches of what is among them (__pycache__, Java's archive of
classes)."""

from __future__ import annotations

import functools
import hashlib
import re
import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from netdyno.model.contestant import Contestant, behind_launcher

_LIBRARY = re.compile(r"^\s+(?:\S+ => )?(/\S.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
"""A line of ldd(1) that has a path: "libz.so.1 => /lib/libz.so.1 (0x7f…)", or the loader, which has no arrow."""
_NO_LIBRARY_FOLDERS = frozenset({"site-packages", "dist-packages", "test", "tests", "__pycache__"})
"""Of Python's standard library, what belongs to others and what no program loads."""
_ASK_PYTHON = "import platform, sysconfig; print(platform.python_version()); print(sysconfig.get_path('stdlib'))"
_JAVA_PARTS = ("lib/modules", "lib/server/*.so", "lib/*.so")
"""Below a JDK's folder. All but libjvm.so need the C library and each other at most."""
_PATIENCE_S = 20.0
"""For what answers in a tenth of a second, on a machine that is busy."""


class Runtime(NamedTuple):
    """An interpreter or virtual machine: `files` are those that it loads of its own, with its program and the shared
    libraries of all."""

    name: str
    version: str
    program: Path
    files: tuple[Path, ...]


def files(contestant: Contestant) -> tuple[Path, ...]:
    """All of them, each once, in an order that is the same on every host where they are laid out in the same way.
    Raises OSError, SubprocessError."""
    interpreter = runtime(contestant)
    its_own = interpreter.files if interpreter else ()
    loads = [path for pattern in contestant.loads for path in matching(pattern)]
    named = [path for path in _named(contestant) if interpreter is None or path != interpreter.program]
    return tuple(dict.fromkeys((*_with_libraries((*named, *loads)), *its_own)))


def program_files(program: Path) -> tuple[Path, ...]:
    """A program of the harness's own with its shared libraries. Raises OSError, SubprocessError."""
    return _with_libraries((program.resolve(),))


def runtime(contestant: Contestant) -> Runtime | None:
    """What interprets it; None where its program is machine code, or is interpreted by what is not known here. Raises
    OSError, SubprocessError."""
    found = (_runtime(path) for path in _named(contestant))
    return next((one for one in found if one is not None), None)


def digest(path: Path) -> str:
    """The SHA-256 of a file as it is now. Of a jar it is that of its entries, for the jar itself has the time at which
    it was made. Raises OSError, BadZipFile."""
    is_now = path.stat()
    return _digest(path, is_now.st_ino, is_now.st_mtime_ns, is_now.st_size)


@functools.cache
def _digest(path: Path, *_: int) -> str:
    if path.suffix != ".jar":
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    entries = hashlib.sha256()
    with zipfile.ZipFile(path) as jar:
        for name in sorted(jar.namelist()):
            entries.update(f"{name}\0".encode())
            entries.update(hashlib.sha256(jar.read(name)).digest())
    return entries.hexdigest()


def _named(contestant: Contestant) -> tuple[Path, ...]:
    """The files that its command names, and those that a script among them names in full."""
    own = contestant.own
    first = shlex.split(own.command)[:1] if own is not None and own.command else []
    words = [*_program(behind_launcher(contestant.command)), *contestant.command, *first, *(_program(first))]
    named = [path for word in words if (path := _file(word)) is not None]
    return tuple(dict.fromkeys(path for one in named for path in (one, *_of_script(one))))


def _program(command: Sequence[str]) -> Iterator[str]:
    """What a command starts, by env(1) or by itself, where it is looked for in the search path."""
    for word in command:
        if Path(word).name == "env" or word.startswith("-") or "=" in word:
            continue
        if found := shutil.which(word):
            yield found
        return


def _file(word: str) -> Path | None:
    path = Path(word)
    try:
        return path.resolve() if path.is_file() else None
    except (OSError, ValueError):  # too long a name, or a zero byte in it
        return None


def _of_script(path: Path) -> Iterator[Path]:
    with path.open("rb") as file:
        if file.read(2) != b"#!":
            return
        text = file.read(1 << 16).decode("utf-8", "replace")
    for quoted, bare in re.findall(r"""(?<!\S)(?:"(/[^"\n]+)"|(/\S+))""", text):
        if (named := _file(quoted or bare)) is not None:
            yield named


def matching(pattern: str) -> list[Path]:
    """The files that a manifest's pattern names, sorted."""
    found = sorted(Path("/").glob(pattern.lstrip("/")))
    return [path.resolve() for path in found if path.is_file()]


@functools.cache
def _runtime(program: Path) -> Runtime | None:
    """By the name of the program."""
    if re.fullmatch(r"node(js)?(-?\d+(\.\d+)*)?", program.name):
        return Runtime("Node.js", _said(str(program), "--version").strip(), program, _with_libraries((program,)))
    if re.fullmatch(r"python3?(\.\d+)?", program.name):
        version, _, library = _said(str(program), "-I", "-S", "-c", _ASK_PYTHON).strip().partition("\n")
        parts = _standard_library(Path(library))
        return Runtime("Python", version, program, _with_libraries((program, *parts)))
    if program.name == "java":
        home = program.parents[1]
        parts = [part for pattern in _JAVA_PARTS for part in sorted(home.glob(pattern))]
        version = _said(str(program), "--version").partition("\n")[0]
        needed = _with_libraries((program, *(part for part in parts if part.name == "libjvm.so")))
        return Runtime("Java", version, program, tuple(dict.fromkeys((*needed, *parts))))
    return None


def _standard_library(folder: Path) -> list[Path]:
    found = [path for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".so")]
    return [path for path in found if not _NO_LIBRARY_FOLDERS.intersection(path.relative_to(folder).parts)]


def _with_libraries(some: tuple[Path, ...]) -> tuple[Path, ...]:
    machine_code = tuple(path for path in dict.fromkeys(some) if _is_machine_code(path))
    return tuple(dict.fromkeys((*some, *_libraries(machine_code))))


@functools.cache
def _libraries(machine_code: tuple[Path, ...]) -> tuple[Path, ...]:
    """Of programs and libraries together, by ldd(1), which fails where one of them needs none."""
    if not machine_code:
        return ()
    command = ["ldd", *map(str, machine_code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    return tuple(sorted({Path(path).resolve() for path in _LIBRARY.findall(done.stdout)}))


def _is_machine_code(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True).stdout
