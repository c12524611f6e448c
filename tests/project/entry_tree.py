"""A small tree with the real entry script in it, and a system made of fakes around it (entry_fakes/README.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).with_name("entry_fakes")
# What every Debian has (essential packages), and all that the script may use of it.
REAL_TOOLS = """
awk cat cp cut dirname env flock grep kill mkdir mv printf readlink rm sed setsid sh sha256sum tail touch tr
"""

PACKAGES = """
# build
cmake
g++  # a compiler

libboost1.81-dev | libboost1.83-dev
test: browser | none
test: linter
"""
ELSEWHERE = """
# Debian Fedora Arch
cmake             cmake        cmake
g++               gcc-c++      gcc
libboost1.81-dev  boost-devel  boost
browser           -            chromium
linter            a-linter     -
"""
LOCK = """# made by a command
numpy==2.0.0 \\
    --hash=sha256:aa
uv==1.0.0 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
    # via netdyno (pyproject.toml:setup)
"""


@dataclass(frozen=True)
class Tree:
    """The tree under `root`; the fakes' state under `fakes`; `bin` is the whole PATH."""

    root: Path
    fakes: Path
    bin: Path

    def start(self, *arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.Popen[str]:
        """Starts ./netdyno in a session of its own, without a terminal."""
        environment = {"PATH": str(self.bin), "FAKES": str(self.fakes), "NETDYNO_PYTHON": str(self.bin / "python3")}
        return subprocess.Popen(
            [str(self.root / "netdyno"), *arguments],
            cwd=cwd or self.root,
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs ./netdyno to its end. The fake command line ends with status 3, so that its status is seen to arrive."""
        process = self.start(*arguments, cwd=cwd, **variables)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def calls(self) -> list[str]:
        """Return what was called since the last call of this; CMake, which configures beside the Python steps, after
        them."""
        path = self.fakes / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return sorted(lines, key=lambda line: 2 * line.startswith("cli") + line.startswith("cmake"))

    def environment(self) -> dict[str, str]:
        """Return the environment of the last command."""
        lines = (self.fakes / "environment").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def have(self, *names: str) -> None:
        self._write("installed", names)

    def offer(self, *names: str) -> None:
        self._write("offered", names)

    def be_user(self, uid: int) -> None:
        self._write("uid", (str(uid),))

    def without(self, tool: str) -> None:
        (self.bin / tool).unlink()

    def be_of(self, *tools: str) -> None:
        """Have the tools of another system, which ask for what is installed by their last argument."""
        for tool in tools:
            path = self.bin / tool
            path.write_text('#!/bin/sh\nfor name; do :; done\nexec grep -qxF -- "$name" "$FAKES/installed"\n')
            path.chmod(0o755)

    def break_(self, name: str, why: str = "") -> None:
        """Lets a step fail, with these words in its log."""
        (self.fakes / "fail" / name).write_text(why)

    def repair(self, name: str) -> None:
        (self.fakes / "fail" / name).unlink()

    def edit(self, name: str, text: str) -> None:
        """Appends to a file of the tree."""
        path = self.root / name
        path.write_text(path.read_text() + text)

    def hold(self, step: str) -> tuple[Path, Path]:
        """Makes a step wait: it writes to the first pipe when it is reached, and goes on when the second is written."""
        self._write("hold", (step,))
        pipes = (self.fakes / "reached", self.fakes / "go")
        for pipe in pipes:
            os.mkfifo(pipe)
        return pipes

    def hold_no_more(self) -> None:
        for name in ("hold", "reached", "go"):
            (self.fakes / name).unlink()

    @contextmanager
    def seconds(self) -> Iterator[Callable[[int], None]]:
        """Time stands still; what it gives lets so many seconds go by."""
        os.mkfifo(self.fakes / "seconds")
        pipe = os.open(self.fakes / "seconds", os.O_RDWR)  # open at both ends, so that neither waits for the other
        try:
            yield partial(_let_go_by, pipe)
        finally:
            (self.fakes / "seconds").unlink()  # a sleep from now on does not wait for a line
            os.close(pipe)

    def _write(self, name: str, lines: tuple[str, ...]) -> None:
        (self.fakes / name).write_text("".join(f"{line}\n" for line in lines))


def _let_go_by(pipe: int, seconds: int) -> None:
    os.write(pipe, b"\n" * seconds)


def make_tree(folder: Path) -> Tree:
    """A fresh clone on a Debian where all but the test packages is installed, used by root."""
    tree = Tree(folder / "clone", folder / "fakes", folder / "bin")
    for path in (tree.root / "packages", tree.fakes / "fail", tree.bin):
        path.mkdir(parents=True)
    shutil.copy(ROOT / "netdyno", tree.root)
    shutil.copy(ROOT / "packages" / "set-up.sh", tree.root / "packages")
    (tree.root / "packages" / "debian.txt").write_text(PACKAGES)
    (tree.root / "packages" / "elsewhere.txt").write_text(ELSEWHERE)
    (tree.root / "requirements.lock").write_text(LOCK)
    (tree.root / "CMakePresets.json").write_text("{}\n")
    for called, name in {**{name: name for name in REAL_TOOLS.split()}, "real-sleep": "sleep"}.items():
        real = shutil.which(name)
        assert real is not None, f"this system has no {name}"
        (tree.bin / called).symlink_to(real)
    for fake in FAKES.iterdir():
        if os.access(fake, os.X_OK):
            shutil.copy(fake, tree.bin)
    tree.have("cmake", "g++", "libboost1.81-dev")
    tree.offer("cmake", "g++", "libboost1.81-dev", "browser", "linter")
    tree.be_user(0)
    return tree
