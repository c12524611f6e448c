"""Contestants are found by their folders; a broken manifest names the file, the key and the nearest valid key."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT, launcher_path
from netdyno.model.contestant import behind_launcher
from netdyno.question.contestants.contestants import (
    discover,
    find_by_name,
    parse_manifest,
    prepare,
    select,
    skip_file,
)
from tests.support.fixtures import WriteProgram, with_launcher

GOOD: dict[str, object] = {"kind": "cmake", "model": "reactor", "summary": "one loop", "workloads": ["echo"]}
NEEDS = f"""
cmake_minimum_required(VERSION 3.25)
project(needs LANGUAGES NONE)
function(netdyno_need_this result why)
  set(${{why}} "This not found: build it (from source; as it says)" PARENT_SCOPE)
endfunction()
function(netdyno_need_there result why)
  set(${{result}} there PARENT_SCOPE)
endfunction()
function(netdyno_need_that result why)
  set(${{why}} "That not found: install that" PARENT_SCOPE)
endfunction()
include({ROOT}/cmake/Contestants.cmake)
netdyno_add_contestants(servers)
"""
COMMAND = GOOD | {"kind": "command", "run": ["python3", "{folder}/main.py", "{build}"]}


def add(root: Path, name: str, manifest: object = GOOD, kind: str = "server") -> Path:
    folder = root / f"{kind}s" / name
    folder.mkdir(parents=True)
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (folder / f"{kind}.json").write_text(text)
    return folder


def test_every_folder_is_found_and_says_whether_it_can_start(tmp_path: Path, write_program: WriteProgram) -> None:
    build = tmp_path / "build"
    for name in ("built", "missing", "skipped"):
        add(tmp_path, name)
    write_program(build / "servers" / "built", "server.py")
    reason = skip_file(build, "skipped")
    reason.parent.mkdir(parents=True)
    reason.write_text("Folly not found:\nhow to get it\n")
    built, missing, skipped = discover(tmp_path, build)
    assert (built.name, built.available, built.why_not) == ("built", True, "")
    assert built.command == (str(build / "servers" / "built"),)
    assert not missing.available
    assert "not built" in missing.why_not
    assert (skipped.available, skipped.why_not) == (False, "Folly not found: how to get it")


def test_the_build_states_every_missing_need_word_for_word(tmp_path: Path) -> None:
    """A semicolon, which separates the elements of a CMake list, is one of the characters of a sentence."""
    add(tmp_path, "lacking", GOOD | {"needs": ["this", "there", "that"]})
    (tmp_path / "CMakeLists.txt").write_text(NEEDS)
    configure = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), "-G", "Ninja"]
    printed = subprocess.run(configure, check=True, capture_output=True, text=True).stdout
    assert "server lacking skipped: This not found: build it (from source; as it says)" in printed
    (lacking,) = discover(tmp_path, tmp_path / "build")
    assert lacking.why_not == "This not found: build it (from source; as it says) That not found: install that"


# --- other languages ----------------------------------------------------------------------------------------------

KINDS = f"""
cmake_minimum_required(VERSION 3.25)
project(kinds LANGUAGES NONE)
add_custom_target(netdyno_programs)
include({ROOT}/cmake/Contestants.cmake)
netdyno_add_contestants(servers)
"""
RUSTC = "echo 'host: x86_64-unknown-linux-gnu'; echo 'release: {version}'"
CARGO = """
case "$*" in
    *--offline*fetch* | *fetch*--offline*) test -f "{cache}" ;;
    fetch*) {network} ;;
    tree*) cat tree 2>/dev/null || true ;;
    build*--offline*--target-dir*) while [ "$1" != --target-dir ]; do shift; done
        mkdir -p "$2/release"; cp main.rs "$2/release/oxide" ;;
    *) exit 3 ;;
esac
"""
GO = """
test "$GOPROXY$GOTOOLCHAIN" = offlocal || [ "$1" = env ] || exit 3
case $1 in
    env) echo go{version}; echo /nowhere ;;
    build) while [ "$1" != -o ]; do shift; done; cat main.go >"$2"; echo "$CGO_ENABLED" >>"$2" ;;
esac
"""


class Kinds:
    """A tree with a server in Rust and one in Go, and what stands for their builders."""

    def __init__(self, root: Path) -> None:
        self.root, self.build = root, root / "build"
        (root / "CMakeLists.txt").write_text(KINDS)
        self.rust = add(root, "oxide", GOOD | {"kind": "cargo"})
        self.go = add(root, "gopher", GOOD | {"kind": "go"})
        for folder, names in ((self.rust, ("main.rs", "Cargo.toml")), (self.go, ("main.go", "go.mod"))):
            for name in names:
                (folder / name).write_text("first\n")
        self.have("1.85.0", "1.19.8")

    def have(self, rust: str, go: str, network: str = "false") -> None:
        """Provide these versions, and a network on which `network` happens."""
        programs = {
            "rustc": RUSTC.format(version=rust),
            "cargo": "cd " + str(self.rust) + "\n" + CARGO.format(cache=self.root / "cache", network=network),
            "go": GO.format(version=go),
        }
        for name, script in programs.items():
            (self.root / name).write_text("#!/bin/sh\n" + script)
            (self.root / name).chmod(0o755)

    def configure(self, **overrides: str) -> dict[str, str]:
        """Configure the build and return why each contestant cannot be started."""
        programs = {"cargo": "cargo", "rustc": "rustc", "go": "go"} | overrides
        where = [f"-DNETDYNO_{name.upper()}={self.root / program}" for name, program in programs.items()]
        command = ["cmake", "-G", "Ninja", "-S", str(self.root), "-B", str(self.build), *where]
        subprocess.run(command, check=True, capture_output=True)
        return {contestant.name: contestant.why_not for contestant in discover(self.root, self.build)}

    def make(self) -> str:
        """Build, and return the output of Ninja."""
        command = ["cmake", "--build", str(self.build), "--target", "oxide", "gopher"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def kinds(tmp_path: Path) -> Kinds:
    return Kinds(tmp_path)


def test_a_program_of_another_language_is_made_where_that_of_cmake_would_be(kinds: Kinds) -> None:
    (kinds.root / "cache").touch()
    assert all("not built" in why_not for why_not in kinds.configure().values())
    kinds.make()
    with_launcher(kinds.build)
    gopher, oxide = discover(kinds.root, kinds.build)
    assert (gopher.why_not, oxide.why_not) == ("", "")
    assert Path(behind_launcher(oxide.command)[0]).read_text() == "first\n"
    assert Path(behind_launcher(gopher.command)[0]).read_text() == "first\n0\n"  # without cgo


def test_it_is_rebuilt_when_a_source_has_changed_and_only_then(kinds: Kinds) -> None:
    (kinds.root / "cache").touch()
    kinds.configure()
    kinds.make()
    assert "no work to do" in kinds.make()
    (kinds.rust / "main.rs").write_text("second\n")
    assert "Building Rust program oxide" in (printed := kinds.make())
    assert "Go program" not in printed
    assert (kinds.build / "servers/oxide").read_text() == "second\n"
    (kinds.go / "main.go").write_text("second\n")
    assert "Building Go program gopher" in kinds.make()
    assert "no work to do" in kinds.make()


def test_a_language_that_is_too_old_or_not_there_is_a_stated_skip(kinds: Kinds) -> None:
    kinds.have("1.84.1", "1.18")
    why_not = kinds.configure()
    assert why_not["oxide"].startswith("Rust 1.85 or newer with cargo not found: install cargo-web (Debian 12)")
    assert why_not["gopher"].startswith("Go 1.19 or newer not found: install golang-go")
    kinds.have("1.85.0", "1.19")
    (kinds.root / "cache").touch()
    why_not = kinds.configure(rustc="no-such-file", go="no-such-file")
    assert why_not["oxide"].startswith("Rust 1.85 or newer")
    assert why_not["gopher"].startswith("Go 1.19 or newer")


def test_crates_are_fetched_where_they_can_be_and_else_a_stated_skip(kinds: Kinds) -> None:
    assert "its crates cannot be had: let 'cargo fetch' in" in kinds.configure()["oxide"]
    kinds.have("1.85.0", "1.19", network=f"touch {kinds.root}/cache")
    assert "not built" in kinds.configure()["oxide"]
    assert (kinds.root / "cache").exists()


def test_a_crate_that_is_not_the_pinned_one_is_not_built_with(kinds: Kinds) -> None:
    digest, other, lines = 64 * "a", 64 * "b", kinds.root / "packages/digests.txt"
    lines.parent.mkdir()
    (kinds.root / "cache").touch()
    (kinds.rust / "tree").write_text(f"oxide v0.1.0 ({kinds.rust})\nmio v1.2.5\nmio v1.2.5 (*)\n")
    entry = '[[package]]\nname = "mio"\nversion = "1.2.5"\nsource = "registry"\nchecksum = "{}"\n'
    for text in (f"{digest}  mio-1.2.6.crate\n", f"{other}  mio-1.2.5.crate\n", f"{digest}  mio-1.2.5.crate\n"):
        lines.write_text(text)
        (kinds.rust / "Cargo.lock").write_text(entry.format(digest))
        why_not = kinds.configure()["oxide"]
        if "mio-1.2.5" in text and digest in text:
            assert "not built" in why_not
        else:
            assert why_not.startswith("mio-1.2.5.crate is not the one of packages/digests.txt (its SHA-256 is aaaa")


def test_all_crates_that_are_not_pinned_are_named_at_once(kinds: Kinds) -> None:
    lines = kinds.root / "packages/digests.txt"
    lines.parent.mkdir()
    lines.write_text("")
    (kinds.root / "cache").touch()
    (kinds.rust / "tree").write_text(f"oxide v0.1.0 ({kinds.rust})\nmio v1.2.5\nsocket2 v0.6.0\nmio v1.2.5 (*)\n")
    entry = '[[package]]\nname = "{}"\nversion = "{}"\nsource = "registry"\nchecksum = "{}"\n'
    crates = (("mio", "1.2.5", 64 * "a"), ("socket2", "0.6.0", 64 * "b"))
    (kinds.rust / "Cargo.lock").write_text("".join(entry.format(*crate) for crate in crates))
    assert re.findall(r"(\S+)\.crate is not", kinds.configure()["oxide"]) == ["mio-1.2.5", "socket2-0.6.0"]


def test_a_command_gets_its_folders_behind_the_launcher(tmp_path: Path) -> None:
    folder = add(tmp_path, "other", COMMAND)
    build = with_launcher(tmp_path / "build")
    (contestant,) = discover(tmp_path, build)
    assert contestant.available
    program = ("python3", f"{folder}/main.py", str(build))
    assert contestant.command == (str(launcher_path(build)), "other", "one", *program, "--")


def test_without_the_launcher_a_command_is_not_built(tmp_path: Path) -> None:
    add(tmp_path, "other", COMMAND)
    (contestant,) = discover(tmp_path, tmp_path)
    assert contestant.why_not.startswith(f"not built: {launcher_path(tmp_path)} is missing")


def test_a_client_reads_its_own_options(tmp_path: Path) -> None:
    add(tmp_path, "other", COMMAND, kind="client")
    (contestant,) = discover(tmp_path, tmp_path, "client")
    assert contestant.available
    assert contestant.command[0] == "python3"


def test_a_command_gets_the_interpreter_of_the_harness(tmp_path: Path) -> None:
    add(tmp_path, "other", COMMAND | {"run": ["{python}", "-P", "{folder}/main.py"]})
    (contestant,) = discover(tmp_path, tmp_path)
    assert contestant.command[3:5] == (sys.executable, "-P")


def test_a_command_that_is_not_installed_is_unavailable(tmp_path: Path) -> None:
    add(tmp_path, "other", COMMAND | {"run": ["no-such-program-anywhere"]})
    (contestant,) = discover(tmp_path, tmp_path)
    assert (contestant.available, contestant.why_not) == (False, "no-such-program-anywhere not found")


def test_clients_are_found_in_their_own_folder(tmp_path: Path) -> None:
    add(tmp_path, "server-only")
    assert discover(tmp_path, tmp_path, "client") == ()


def test_a_server_and_a_client_of_the_same_name_do_not_meet(tmp_path: Path) -> None:
    build = tmp_path / "build"
    add(tmp_path, "twin")
    add(tmp_path, "twin", kind="client")
    reason = skip_file(build, "twin", "client")
    reason.parent.mkdir(parents=True)
    reason.write_text("Qt not found\n")
    (server,), (client,) = discover(tmp_path, build), discover(tmp_path, build, "client")
    assert "not built" in server.why_not
    assert client.why_not == "Qt not found"
    assert {server.command, client.command} == {(f"{build}/{kind}s/twin",) for kind in ("server", "client")}


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (GOOD | {"worklods": []}, "unknown key 'worklods' (did you mean 'workloads'?)"),
        (GOOD | {"kind": "cmaek"}, "key 'kind': Invalid enum value 'cmaek' (did you mean 'cmake'?)"),
        (GOOD | {"threads": "many"}, "key 'threads'"),
        (GOOD | {"out_of_descriptors": "close"}, "key 'out_of_descriptors': Invalid enum value 'close' (did you mean"),
        (
            GOOD | {"clients": "limited"},
            "key 'clients': Invalid enum value 'limited' (did you mean 'limited-by-threads'?)",
        ),
        (GOOD | {"transports": ["upd"]}, "key 'transports': unknown transport 'upd' (did you mean 'udp'?)"),
        (GOOD | {"transports": []}, "key 'transports': names none"),
        (GOOD | {"workloads": "echo"}, "key 'workloads': Expected `array`, got `str`"),
        (GOOD | {"kind": "command"}, "needs the key 'run'"),
        ({"kind": "cmake"}, "missing required field `model`"),
        ("{", "not valid JSON"),
        ("[]", "must hold one JSON object"),
    ],
)
def test_a_broken_manifest_is_one_clear_line(manifest: object, message: str, tmp_path: Path) -> None:
    folder = add(tmp_path, "broken", manifest)
    with pytest.raises(UserError) as error:
        parse_manifest(folder / "server.json")
    assert str(folder / "server.json") in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("content", [b'{"model": "\xff"}', b"[" * 100_000])
def test_a_manifest_that_is_no_json_at_all_is_one_clear_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not valid JSON"):
        parse_manifest(path)


def test_a_folder_without_a_manifest_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "servers" / "empty").mkdir(parents=True)
    with pytest.raises(UserError, match=r"empty/server.json: cannot be read: No such file"):
        discover(tmp_path, tmp_path)


def test_what_git_leaves_of_a_contestant_that_is_gone_is_none(tmp_path: Path) -> None:
    gone = tmp_path / "servers" / "gone"
    (gone / "__pycache__").mkdir(parents=True)
    (gone / "Cargo.lock").touch()
    assert discover(tmp_path, tmp_path) == ()
    (gone / "main.rs").touch()
    with pytest.raises(UserError, match=r"gone/server.json: cannot be read: No such file"):
        discover(tmp_path, tmp_path)


def test_globs_choose_in_name_order_and_once(tmp_path: Path) -> None:
    for name in ("asio-callbacks", "asio-coroutines", "epoll"):
        add(tmp_path, name)
    everyone = discover(tmp_path, tmp_path)
    assert [contestant.name for contestant in select(everyone, ["epoll", "asio-*", "*-callbacks"])] == [
        contestant.name for contestant in everyone
    ]
    with pytest.raises(UserError, match=r"no server is called 'epol' \(did you mean 'epoll'"):
        select(everyone, ["epol"])
    with pytest.raises(UserError, match=r"unknown server 'asio-calbacks' \(did you mean 'asio-callbacks'"):
        find_by_name(everyone, "asio-calbacks")


def test_a_server_that_is_unsafe_is_chosen_only_by_its_full_name(tmp_path: Path) -> None:
    add(tmp_path, "safe")
    add(tmp_path, "safe-not", GOOD | {"unsafe": "answers wrong"})
    everyone = discover(tmp_path, tmp_path)
    assert [contestant.manifest.unsafe for contestant in everyone] == ["", "answers wrong"]
    assert [contestant.name for contestant in select(everyone, ["*"])] == ["safe"]
    assert [contestant.name for contestant in select(everyone, ["safe*"])] == ["safe"]
    assert [contestant.name for contestant in select(everyone, ["*", "safe-not"])] == ["safe", "safe-not"]
    with pytest.raises(
        UserError, match=r"'\*-not' matches only what is unsafe or not ranked; name it in full: safe-not"
    ):
        select(everyone, ["*-not"])


def test_no_client_can_be_unsafe(tmp_path: Path) -> None:
    add(tmp_path, "wrong", GOOD | {"unsafe": "asks wrong"}, "client")
    with pytest.raises(UserError, match=r"wrong/client.json: key 'unsafe': only a server can be unsafe"):
        discover(tmp_path, tmp_path, "client")


def test_what_is_no_contestant_is_chosen_only_by_its_full_name(tmp_path: Path) -> None:
    add(tmp_path, "good")
    add(tmp_path, "gauge", GOOD | {"unranked": "an instrument"})
    everyone = discover(tmp_path, tmp_path)
    assert [contestant.name for contestant in select(everyone, ["*"])] == ["good"]
    assert [contestant.name for contestant in select(everyone, ["*", "gauge"])] == ["gauge", "good"]
    add(tmp_path, "gauge", GOOD | {"unranked": "an instrument"}, "client")
    with pytest.raises(UserError, match=r"gauge/client.json: key 'unranked': only a server can be unranked"):
        discover(tmp_path, tmp_path, "client")


def test_a_build_step_runs_in_its_folder_and_its_failure_is_the_reason(tmp_path: Path) -> None:
    folder = add(tmp_path, "good", COMMAND | {"build": ["sh", "-c", "touch made"]})
    add(
        tmp_path,
        "bad",
        COMMAND | {"build": ["sh", "-c", "echo looking; echo one moment >&2; echo no compiler >&2; exit 4"]},
    )
    add(tmp_path, "ugly", COMMAND | {"build": ["no-such-program-anywhere"]})
    build = with_launcher(tmp_path / "build")
    bad, good, ugly = (prepare(contestant, tmp_path, build) for contestant in discover(tmp_path, build))
    assert good.available
    assert (folder / "made").exists()
    assert (bad.available, bad.why_not) == (False, "its build step failed (exit code 4): no compiler")
    assert "its build step cannot be started" in ugly.why_not


@pytest.mark.parametrize("stated", ["", "NETDYNO_BUILD_ENVIRONMENT:INTERNAL=LANG=C.UTF-8 PATH CARGO_HOME\n"])
def test_a_build_step_has_no_flags_of_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: str) -> None:
    folder = add(tmp_path, "good", COMMAND | {"build": ["sh", "-c", "env >given"]})
    build = with_launcher(tmp_path / "build")
    (build / "CMakeCache.txt").write_text(stated)
    monkeypatch.setenv("RUSTFLAGS", "-C opt-level=0")
    monkeypatch.setenv("CARGO_HOME", "/crates")
    (good,) = discover(tmp_path, build)
    assert prepare(good, tmp_path, build).available
    given = dict(line.split("=", 1) for line in (folder / "given").read_text().splitlines())
    assert given["LANG"] == "C.UTF-8"
    assert "RUSTFLAGS" not in given
    assert ("CARGO_HOME" in given) == bool(stated)


def test_every_folder_of_this_repository_is_a_contestant() -> None:
    names = {contestant.name for contestant in discover()}
    assert names == {path.name for path in (ROOT / "servers").glob("[!._]*") if path.is_dir()}
    assert names
