"""The digest of a contestant changes with each file that its program loads, and with nothing else."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.measure.machine import digests, loaded
from netdyno.model.contestant import Contestant, Own
from netdyno.question.contestants.contestants import discover, find_by_name
from tests.support.fixtures import with_launcher

GENERATOR = Path("/bin/true")


def copied(folder: Path, *parts: str) -> Path:
    """Make a tree with these folders of the real one."""
    for part in parts:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def digest(contestant: Contestant) -> str:
    assert contestant.available, contestant.why_not
    (line,) = (
        line for line in digests.digest_programs(GENERATOR, [contestant]) if line.startswith(f"{contestant.name} ")
    )
    return line


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_session_file_of_node_changes_the_digest(tmp_path: Path) -> None:
    tree = copied(tmp_path, "servers/node-events", "servers/_shared/node")
    server = find_by_name(discover(root=tree, build=with_launcher(tmp_path / "build")), "node-events")
    before = digest(server)
    assert digest(server) == before
    with (tree / "servers/_shared/node/session.js").open("a") as file:
        file.write("// changed\n")
    assert digest(server) != before
    (line,) = digests.list_runtimes([server])
    assert line.startswith("node-events: Node.js v")
    assert line.endswith(f", {Path(shutil.which('node') or '').resolve()}")


@pytest.mark.parametrize("module", ["servers/_shared/asyncio/protocols.py", "python/netdyno_server/workloads.py"])
def test_a_module_of_a_server_in_python_changes_the_digest(tmp_path: Path, module: str) -> None:
    parts = ("servers/asyncio-protocol", "servers/_shared/asyncio", "python/netdyno_server")
    tree = copied(tmp_path, *parts)
    server = find_by_name(discover(root=tree, build=with_launcher(tmp_path / "build")), "asyncio-protocol")
    before = digest(server)
    with (tree / module).open("a") as file:
        file.write("# changed\n")
    assert digest(server) != before
    assert digests.list_runtimes([server])[0].startswith("asyncio-protocol: Python 3.")


def write_jar(path: Path, text: str, year: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr(zipfile.ZipInfo("Main.class", (year, 1, 1, 0, 0, 0)), text)


@pytest.mark.parametrize("jar", ["java/netty/program.jar", "java/netty-4/netty-common.jar"])
def test_a_jar_changes_the_digest_by_what_is_in_it_and_not_by_when_it_was_made(tmp_path: Path, jar: str) -> None:
    tree, build = copied(tmp_path, "servers/netty"), with_launcher(tmp_path / "build")
    (build / "servers").mkdir(parents=True)
    (build / "servers/netty").write_text("#!/bin/sh\n")
    for name in ("java/netty/program.jar", "java/netty-4/netty-common.jar"):
        write_jar(build / name, "one", 2024)
    server = find_by_name(discover(root=tree, build=build), "netty")
    before = digest(server)
    write_jar(build / jar, "one", 2025)
    assert digest(server) == before
    write_jar(build / jar, "two", 2024)
    assert digest(server) != before


def test_a_shared_library_changes_the_digest(contestant: Contestant, tmp_path: Path) -> None:
    """ldd(1) says which there are; that their bytes count is shown on the one that a manifest names."""
    library = tmp_path / "libx.so"
    library.write_text("one")
    server = msgspec.structs.replace(contestant, loads=(str(tmp_path / "*.so"),))
    before = digest(server)
    library.write_text("two")
    assert digest(server) != before


def test_how_a_manifest_starts_it_changes_the_digest(contestant: Contestant) -> None:
    """A variable that the command gives by env(1) is no file, and tunes it all the same."""
    tuned = msgspec.structs.replace(contestant.manifest, run=("env", "TUNED=1", *contestant.manifest.run))
    assert digest(msgspec.structs.replace(contestant, manifest=tuned)) != digest(contestant)


def test_a_server_of_ones_own_is_digested_with_its_program(contestant: Contestant, tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text("one")
    program.chmod(0o755)
    command = (sys.executable, "stand_in.py", str(program), "--port", "{port}")
    own = Own(command=f"{program} --port {{port}}", workload="echo")
    server = msgspec.structs.replace(contestant, command=command, own=own)
    before = digest(server)
    program.write_text("two")
    assert digest(server) != before


def test_a_client_with_the_name_of_a_server_has_a_line_of_its_own(contestant: Contestant, tmp_path: Path) -> None:
    program = tmp_path / "client"
    program.write_text("one")
    client = msgspec.structs.replace(contestant, command=(str(program),))
    before = digests.digest_programs(GENERATOR, [contestant], [client])
    assert digests.digest_programs(GENERATOR, [contestant]) == before[1:]
    program.write_text("two")
    after = digests.digest_programs(GENERATOR, [contestant], [client])
    assert [line.split()[0] for line in set(before) - set(after)] == ["client-fake"]


def test_what_cannot_be_read_is_a_user_error(contestant: Contestant, tmp_path: Path) -> None:
    (tmp_path / "broken.jar").write_text("no jar")
    server = msgspec.structs.replace(contestant, loads=(str(tmp_path / "*.jar"),))
    with pytest.raises(UserError, match=r"files of fake cannot be read"):
        digests.digest_programs(GENERATOR, [server])


def test_a_program_of_machine_code_has_the_libraries_that_it_needs(contestant: Contestant) -> None:
    from netdyno.measure.machine import loaded

    server = msgspec.structs.replace(contestant, command=("/bin/ls",))
    names = [path.name for path in loaded.files(server)]
    assert any(name.startswith(("libc.so", "libc-")) for name in names), names


def test_modules_that_nodes_machine_code_names_in_full_are_files_of_its_runtime(tmp_path: Path) -> None:
    first, second, unnamed = (tmp_path / f"{name}.js" for name in ("first", "second", "unnamed"))
    for module in (first, second, unnamed):
        module.write_text("")
    program, other = tmp_path / "node", tmp_path / "other"
    names = [str(first), str(second), str(tmp_path / "missing.js")]
    program.write_bytes(b"\x7fELF\0" + "\0".join(names).encode() + b"\0")
    other.write_bytes(f"\0{unnamed}\0".encode())
    assert list(loaded._add_node_modules((program, other))) == [program, other, first, second]


@pytest.mark.parametrize("name", ["python", "python3", "python3.13", "python3.13t"])
def test_an_interpreter_of_python_is_recognised_by_its_name(contestant: Contestant, tmp_path: Path, name: str) -> None:
    """The last is free-threaded (PEP 703)."""
    program = tmp_path / name
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    runtime = loaded.find_runtime(msgspec.structs.replace(contestant, command=(str(program),)))
    assert runtime is not None
    assert (runtime.name, runtime.program) == ("Python", program)
