"""A private network namespace: no other process sees it, it ends with its owner, and no program in it outlives it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.measure.machine.links import namespace_child
from netdyno.measure.machine.links.namespace import (
    Namespace,
    NotAllowedError,
    build_entry_words,
    make_namespace,
    wrap_in_namespace,
)
from netdyno.measure.machine.links.namespace_child import MARK, read_network
from tests.support.proc import ends

NOBODY_UID = 65534

HARNESS = """
import signal, subprocess
from netdyno.measure.machine.links.namespace import make_namespace
with make_namespace() as made:
    inside = subprocess.Popen([*made.enter, "sh", "-c", "echo entered; exec sleep 1000"], stdout=subprocess.PIPE)
    inside.stdout.readline()
    print(made.pid, inside.pid, flush=True)
    signal.pause()
"""


@pytest.fixture
def made(rights: str) -> Iterator[Namespace]:
    """A namespace made with root's rights, and one made with a user namespace alone."""
    try:
        with make_namespace() as namespace:
            assert namespace.other_users == ("--user" in namespace.enter) == (rights == "anybody")
            yield namespace
    except NotAllowedError as error:
        pytest.skip(f"no namespaces here: {error}")


def test_it_has_a_network_of_its_own_whose_loopback_is_up(made: Namespace) -> None:
    assert read_network(made.pid) != read_network("self")
    rows = made.run("cat", "/proc/net/dev").splitlines()[2:]
    assert [row.split(":")[0].strip() for row in rows] == ["lo"]
    talk = "import socket as s; here = s.create_server(('127.0.0.1', 0)); s.create_connection(here.getsockname())"
    made.run(sys.executable, "-c", talk)


def test_one_beside_another_is_another_network_of_the_same_users(made: Namespace) -> None:
    with make_namespace(partner=made) as second:
        assert read_network(second.pid) not in (read_network(made.pid), read_network("self"))
        users = [Path(f"/proc/{pid}/ns/user").readlink() for pid in (made.pid, second.pid)]
        assert users[0] == users[1]
        assert second.other_users == made.other_users


def test_a_command_inside_keeps_its_process_id_and_learns_where_it_is(made: Namespace) -> None:
    program = f"import os; print(os.getpid(), os.environ[{MARK!r}], os.stat('/proc/self/ns/net').st_ino)"
    command = [*made.enter, sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, mark, inode = process.stdout.read().split()
    assert int(pid) == process.pid
    assert mark == inode == str(read_network(made.pid))


def test_a_program_that_is_in_it_ends_with_it() -> None:
    with ExitStack() as stack:
        try:
            made = stack.enter_context(make_namespace())
        except NotAllowedError as error:
            pytest.skip(f"no namespaces here: {error}")
        keeper = os.pidfd_open(made.pid)
        # no parent waits for it, it holds no pipe, and it leads a session of its own
        script = "setsid sleep 1000 <&- >&- 2>&- & echo $!"
        orphan = os.pidfd_open(int(made.run("sh", "-c", script)))
    assert ends(orphan)
    assert ends(keeper)


@pytest.mark.quiet
def test_kill_9_of_the_harness_leaves_nothing_behind() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen([sys.executable, "-c", HARNESS], stdout=subprocess.PIPE, env=environment) as harness:
        assert harness.stdout is not None
        words = harness.stdout.readline().split()
        if not words:
            pytest.skip("no namespaces here")
        left = [os.pidfd_open(int(word)) for word in words]
        harness.send_signal(signal.SIGKILL)
        assert [ends(pidfd) for pidfd in left] == [True, True]


def test_a_hosts_file_of_its_own(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 only.netdyno.test\n")
    try:
        with make_namespace(hosts) as made:
            assert made.run("cat", "/etc/hosts") == hosts.read_text()
    except NotAllowedError as error:
        pytest.skip(f"no namespaces here: {error}")
    assert Path("/etc/hosts").read_text() != hosts.read_text()


def test_a_program_becomes_the_only_one_in_a_namespace_and_another_can_join_it() -> None:
    try:
        command = wrap_in_namespace(["sh", "-c", "echo ready; exec cat"])
    except NotAllowedError as error:
        pytest.skip(f"no namespaces here: {error}")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        assert read_network(program.pid) != read_network("self")
        read_inode = [*build_entry_words(program.pid), "stat", "--dereference", "--format=%i", "/proc/self/ns/net"]
        seen = subprocess.run(read_inode, check=True, capture_output=True, text=True).stdout
        assert int(seen) == read_network(program.pid)


@pytest.mark.parametrize(
    ("user", "way"), [(0, "start that with CAP_SYS_ADMIN"), (NOBODY_UID, "run it as root, or let users")]
)
def test_a_system_that_forbids_it_is_quoted_with_the_way_to_get_it(
    user: int, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unshare = tmp_path / "unshare"
    unshare.write_text("#!/bin/sh\necho 'unshare: not here' >&2\nexit 1\n")
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(NotAllowedError, match=rf"^unshare: not here \(.*{way}"):
        wrap_in_namespace(["true"])
    with pytest.raises(NotAllowedError, match=rf"^unshare: not here \(.*{way}"), make_namespace():
        pass


def test_none_joins_a_process_that_is_in_no_private_network() -> None:
    with pytest.raises(UserError, match=f"process {os.getpid()} is in no private network namespace"):
        build_entry_words(os.getpid())
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.raises(UserError, match=f"process {gone.pid} cannot be inspected"):
        build_entry_words(gone.pid)


def test_a_mark_of_another_namespace_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = os.environ | {MARK: "4026531000"}
    with subprocess.Popen(["sleep", "1000"], env=environment) as process:
        try:
            with pytest.raises(UserError, match="no private network"):
                build_entry_words(process.pid)
        finally:
            process.kill()


def test_without_the_tools_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _tool: None)
    with pytest.raises(NotAllowedError, match="install util-linux"), make_namespace():
        pass
    with pytest.raises(NotAllowedError, match="install util-linux"):
        wrap_in_namespace(["true"])


def test_what_the_system_says_against_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netdyno.measure.machine.links.namespace._list_options", lambda: [("--no-such-way",)])
    with pytest.raises(NotAllowedError, match="no-such-way"), make_namespace():
        pass
    with pytest.raises(NotAllowedError, match="no-such-way"):
        wrap_in_namespace(["true"])


def test_an_interface_that_is_not_there_cannot_be_brought_up() -> None:
    with pytest.raises(OSError, match="No such device"):
        namespace_child.bring_up("none0")
