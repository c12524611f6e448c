"""The launcher: it reads the options of servers that are not written in C++, and becomes them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from netdyno.kit.paths import build_dir, launcher_path
from netdyno.model.contestant import Contestant, behind_launcher
from netdyno.model.options import DEFAULT_POOL, SERVER
from tests.support.chosen import discover_once, startable

pytestmark = pytest.mark.needs_build


def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(launcher_path(build_dir())), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("argument", "key", "value"),
    [
        ("--listen=tcp://[::1%lo]:7", "host", "::1%lo"),
        ("--listen=tcp://a-b.example:65535?x", "port", 65535),
        ("--workload=chat", "workload", "chat"),
        ("--threads=7", "threads", 7),
        ("--backlog=9", "backlog", 9),
        ("--nodelay=off", "nodelay", False),
        ("--read-buffer=32KiB", "read_buffer", 32768),
        ("--write-mode=split", "write_mode", "split"),
        ("--audience=all", "audience", "all"),
        ("--deliveries=single", "deliveries", "single"),
        ("--service-time=1.5s", "service_time_ns", 1_500_000_000),
        ("--service-kind=cpu", "service_kind", "cpu"),
        ("--max-frame=7", "max_frame", 7),
        ("--outbox-limit=1024GiB", "outbox_limit", 1 << 40),
    ],
)
def test_an_option_arrives_resolved_and_the_others_with_their_defaults(argument: str, key: str, value: object) -> None:
    defaults, given = (
        json.loads(launch("name", "any", "echo", "--", *options).stdout) for options in ((), (argument,))
    )
    assert given[key] == value != defaults[key]
    changed = {name for name in defaults if given[name] != defaults[name]}
    assert changed <= ({"host", "port"} if "--listen" in argument else {key})


def test_the_harness_knows_the_defaults() -> None:
    backend = ("--service-kind=backend", "--backend=tcp://a.example:7")
    assert json.loads(launch("name", "any,pool", "echo", "--", *backend).stdout)["pool"] == DEFAULT_POOL
    switches = {True: "on", False: "off"}
    defaults = json.loads(launch("name", "any", "echo", "--").stdout).items()
    words = {key.replace("_", "-"): switches[value] if isinstance(value, bool) else value for key, value in defaults}
    harness = {name: option.takes.words[0] for name, option in SERVER.items() if option.takes.words and name in words}
    assert harness.keys() == {"nodelay", "write-mode", "audience", "deliveries", "service-kind"}
    assert harness == {name: words[name] for name in harness}


def test_a_backend_arrives_resolved_where_there_is_a_pool() -> None:
    options = ("--service-kind=backend", "--backend=tcp://a.example:7", "--pool=3")
    given = json.loads(launch("name", "any,tls,pool", "echo", "--", *options).stdout)
    assert {key: given[key] for key in ("service_kind", "backend_host", "backend_port", "pool")} == {
        "service_kind": "backend",
        "backend_host": "a.example",
        "backend_port": 7,
        "pool": 3,
    }
    refused = launch("a-server", "any,tls", "echo", "--", options[0])
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--service-kind backend: a-server has no pool of connections to a backend" in refused.stderr
    unknown = launch("a-server", "any", "echo", "--", "--pool=3")
    assert unknown.returncode == 2


def test_the_program_gets_its_own_arguments_before_the_options() -> None:
    assert launch("name", "any", "echo", "one", "two", "--").stdout.startswith('one two {"host":')


def test_what_cannot_be_meant_is_reported_under_the_name_of_the_server() -> None:
    done = launch("a-server", "one", "echo", "--", "--threads", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "a-server: --threads: a-server runs on exactly one thread (--help lists the options)\n"


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    done = launch("a-server", "one", str(tmp_path / "gone"), "--")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot start {tmp_path / 'gone'}: No such file" in done.stderr


@pytest.mark.parametrize(
    "arguments", [(), ("name", "any", "echo"), ("name", "many", "echo", "--"), ("name", "any", "--")]
)
def test_what_is_no_call_of_it_is_refused(arguments: tuple[str, ...]) -> None:
    done = launch(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: netdyno-launch NAME ")


LAUNCHED = [server for server in discover_once() if server.manifest.is_launched]


@pytest.mark.parametrize("server", LAUNCHED, ids=lambda server: server.name)
def test_a_server_that_is_started_without_it_says_how_it_is_started(server: Contestant) -> None:
    startable(server, "server")
    done = subprocess.run(
        [*behind_launcher(server.command), "--workload", "echo"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f": ./netdyno serve {server.name}\n"), done.stderr
