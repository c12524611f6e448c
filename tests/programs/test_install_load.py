"""The generator for other machines: what `install-load` leaves, its size, and what its build looks for.

The program is that of the build under test; a person's is of the preset `load` (tests/project/test_entry.py)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT, build_dir
from netdyno.measure.trial.load import INVALID_LOAD
from tests.support.patience import slowness

pytestmark = pytest.mark.needs_build

MOST_BYTES = 5_000_000
PATIENCE_S = 60


def run(command: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **more}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd=ROOT
    )


def install_load(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-P", "-m", "netdyno", "install-load", *words], **more)


def loads(program: Path) -> None:
    """Measure an echo server with the program, where there is nothing but it."""
    command = [str(build_dir() / "servers/threads-global-lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = json.loads(server.stdout.readline())["endpoint"]
            load = [str(program), url, "-c", "2", "--warmup", "20ms", "--duration", "100ms"]
            done = subprocess.run(load, env={}, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        finally:
            server.terminate()
    assert done.returncode in {0, INVALID_LOAD}, done.stderr
    assert "messages/s" in done.stdout


def test_the_program_is_installed_and_loads_a_server(tmp_path: Path) -> None:
    done = install_load(str(tmp_path / "prefix"))
    program = tmp_path / "prefix/bin/netdyno-load"
    assert (done.returncode, done.stdout.split(" (")[0]) == (0, str(program)), done.stderr
    assert done.stderr == f"netdyno: {program.parent} is not on PATH\n"
    assert program.stat().st_size < MOST_BYTES, "with its symbols it has more"
    assert (tmp_path / "prefix/share/doc/netdyno-load/load.md").is_file()
    loads(program)


def test_a_shell_completes_the_installed_program_by_what_is_beside_it(tmp_path: Path) -> None:
    assert install_load(str(tmp_path)).returncode == 0
    script = tmp_path / "share/bash-completion/completions/netdyno-load"
    ask = f"""source '{script}'
        complete -p netdyno-load
        COMP_WORDS=(netdyno-load --look) COMP_CWORD=1; _netdyno_load; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    registered, *offered = run(["bash", "-euc", ask]).stdout.splitlines()
    assert registered.startswith("complete ")
    assert offered == ["--look-every"]
    assert (tmp_path / "share/zsh/site-functions/_netdyno-load").read_text().startswith("#compdef netdyno-load\n")
    assert "complete -c netdyno-load -l look-every" in (
        (tmp_path / "share/fish/vendor_completions.d/netdyno-load.fish").read_text()
    )


@pytest.mark.skipif(shutil.which("man") is None, reason="no man: apt-get install man-db")
def test_man_shows_its_help_to_the_letter(tmp_path: Path) -> None:
    assert install_load(str(tmp_path)).returncode == 0
    page = tmp_path / "share/man/man1/netdyno-load.1"
    done = run(["man", "--warnings", "--local-file", str(page)], MANWIDTH="400", LC_ALL="C.UTF-8", MANPAGER="cat")
    assert done.stderr == ""
    lines = [line.strip() for line in run([str(tmp_path / "bin/netdyno-load"), "--help"]).stdout.splitlines()]
    shown = [line.strip() for line in done.stdout.splitlines()]
    assert [line for line in lines if line not in shown] == []


def test_where_it_cannot_be_installed_is_stated(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = install_load(str(tmp_path / "file"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"netdyno: cannot install into {tmp_path / 'file'}: ")


def test_without_a_program_nothing_is_installed(tmp_path: Path) -> None:
    done = install_load(str(tmp_path / "prefix"), NETDYNO_BUILD=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "the load generator is not built" in done.stderr


# --- how large they are -------------------------------------------------------------------------------------------

HELD = {"installed": "z|protobuf", "wheel": "z|zstd|protobuf|ssl|crypto"}
"""The libraries that each form holds; the rest, but for the C library, is our own code and that of headers."""


def holding(libraries: str, program: Path) -> bytes:
    """The generator of the build under test, linked again as the preset `load` links it: to compile all of it for that
    preset takes minutes. Libraries of which there is no such form are asked for, there too."""

    def held(match: re.Match[str]) -> str:
        return f"{match[1]}.a" if Path(f"{match[1]}.a").exists() else match[0]

    *_, link = run(["ninja", "-C", str(build_dir()), "-t", "commands", "loadgen/netdyno-load"]).stdout.splitlines()
    if "crypto" in libraries:  # a static one may need others of them (cmake/Contestants.cmake)
        folder = run(["pkg-config", "--variable=libdir", "libcrypto"]).stdout.strip()
        names = {word[2:] for word in run(["pkg-config", "--static", "--libs-only-l", "libcrypto"]).stdout.split()}
        files = [f"{folder}/{name[1:]}" for name in names if name.startswith(":")]
        if missing := [file for file in files if not Path(file).exists()]:
            pytest.skip(f"the static libcrypto here needs {missing}: on Ubuntu 26.04 install libjitterentropy3-dev")
        private = " ".join([*(f"{folder}/lib{name}.so" for name in names & {"z", "zstd"}), *files])
        link = link.removesuffix(" && :") + f" {private} && :"
    link = re.sub(rf"(\S+/lib(?:{libraries}))\.so\b", held, link)
    form = f" -static-libstdc++ -static-libgcc -Wl,--gc-sections,--strip-all -o {program} "
    link = link.replace(" -o loadgen/netdyno-load ", form)
    done = run(["env", "-C", str(build_dir()), "bash", "-c", link])
    assert done.returncode == 0, done.stderr
    return program.read_bytes()


@pytest.mark.skipif(slowness(build_dir()) > 1, reason="the size of what a sanitizer has been added to says nothing")
def test_what_is_installed_is_small(tmp_path: Path) -> None:
    assert len(holding(HELD["installed"], tmp_path / "netdyno-load")) < MOST_BYTES


@pytest.mark.skipif(slowness(build_dir()) > 1, reason="the size of what a sanitizer has been added to says nothing")
def test_the_program_of_the_wheel_is_small_with_all_that_it_holds(tmp_path: Path) -> None:
    program = holding(HELD["wheel"], tmp_path / "netdyno-load")
    assert b"libcrypto.so" not in program
    assert len(zlib.compress(program)) < MOST_BYTES


# --- with little to build with ------------------------------------------------------------------------------------


def test_the_installed_program_asks_for_openssl_and_that_of_the_wheel_holds_it(tmp_path: Path) -> None:
    """OpenSSL alone, held in the file, is more than 4 MB."""
    done = run(["cmake", "--preset", "load", "-B", str(tmp_path)])
    assert done.returncode == 0, done.stderr
    linked = {}
    for program in ("netdyno-load", "whole/netdyno-load"):
        *_, link = run(["ninja", "-C", str(tmp_path), "-t", "commands", f"loadgen/{program}"]).stdout.splitlines()
        linked[program] = {Path(word).name for word in link.split() if "libssl" in word or "libcrypto" in word}
    assert linked == {
        "netdyno-load": {"libssl.so", "libcrypto.so"},
        "whole/netdyno-load": {"libssl.a", "libcrypto.a"},
    }


def test_the_preset_load_asks_for_nothing_that_only_servers_need(tmp_path: Path) -> None:
    """Protobuf is off, and so is the search for ZeroMQ and libuv: what is left to compile needs none of them."""
    absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Protobuf", "PkgConfig", "Qt6", "GTest")]
    done = run(["cmake", "--preset", "load", "-B", str(tmp_path), *absent])
    assert done.returncode == 0, done.stderr
    assert "netdyno-load without the workload rpc: Protobuf not found" in done.stdout
    assert "netdyno-load without the transport zmq+tcp: " in done.stdout
    assert "netdyno-load without TLS: " in done.stdout
    compiled = [Path(entry["file"]) for entry in json.loads((tmp_path / "compile_commands.json").read_text())]
    assert ROOT / "loadgen/main.cpp" in compiled
    assert {path.relative_to(ROOT).parts[0] for path in compiled} == {"lib", "loadgen", "link", "canary"}
    headers = ("work.pb.h", "<zmq", "<openssl/")
    assert [path for path in compiled if any(header in path.read_text() for header in headers)] == []
