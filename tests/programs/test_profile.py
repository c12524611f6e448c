"""A profile of servers whose time is known: what one was planted is found where it is, with the share that it has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netdyno.measure.machine import perf
from netdyno.measure.machine.perf import PREEMPTED
from netdyno.model.profile import Stack
from netdyno.verbs import profile
from netdyno.verbs.own_servers import OwnServers, ServersRequest
from tests.support.fixtures import FAKES

pytestmark = [pytest.mark.needs_build, pytest.mark.calm, pytest.mark.long]

TRIES = 5


@pytest.fixture(scope="module", autouse=True)
def _perf(tmp_path_factory: pytest.TempPathFactory) -> None:
    tool = shutil.which(perf.NAME)
    if tool is None:
        pytest.skip("perf is not installed (package linux-perf)")
    may = perf.find_rights(tool, tmp_path_factory.mktemp("rights"))
    if not may.kernel:
        pytest.skip(f"perf may not see the kernel here: {may.why or 'kernel.perf_event_paranoid'}")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("planted") / "server"
    source = FAKES / "planted_server.cpp"
    subprocess.run(["c++", "-std=c++20", "-O1", "-g1", "-pthread", "-o", target, source], check=True)
    return target


def read(path: str) -> dict[Stack, int]:
    """Read the stacks without those of preempted threads: what they are in is not what they wait for."""
    lines = (line.rpartition(" ") for line in Path(path).read_text().splitlines())
    amounts = {tuple(stack.split(";")): int(amount) for stack, _, amount in lines}
    return {stack: amount for stack, amount in amounts.items() if stack[-1] != PREEMPTED}


def in_function(stacks: dict[Stack, int], name: str) -> int:
    """Microseconds with a function on the stack."""
    return sum(amount for stack, amount in stacks.items() if name in stack)


def profile_undisturbed(request: ServersRequest, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the profile as JSON; one that the machine disturbed is retried."""
    for _ in range(TRIES):
        code, printed = profile.run(request), capsys.readouterr().out
        report = json.loads(printed)
        if code == 0 and all(shown["folded"] for shown in report["profiles"]):
            return report
    raise AssertionError("the machine disturbed every profile")


def test_a_copy_is_in_what_is_computed_and_a_sleep_in_what_is_waited_for(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = {"connections": 4, "size": 64, "warmup": 0.1, "duration": 0.4}
    commands = (f"{program} {{port}}", f"{program} {{port}} planted")
    request = ServersRequest(
        servers=(),
        own=OwnServers(commands=commands, names=("plain", "planted")),
        given=levels,
        results=tmp_path,
        as_json=True,
        foreign_load="count",
    )
    report = profile_undisturbed(request, capsys)
    stacks = {(shown["server"], shown["sort"]): read(shown["folded"]) for shown in report["profiles"]}

    computes = stacks["planted", "on-cpu"]
    copies, works = (in_function(computes, name) for name in ("planted_copy", "planted_work"))
    assert works > 0
    assert copies / (copies + works) == pytest.approx(0.5, abs=0.25)
    assert in_function(computes, "planted_sleep") < 0.4 * copies  # to set a timer costs a virtual machine some
    waits = stacks["planted", "off-cpu"]
    # It waits for requests too, the longer the more others use the core of the load.
    assert in_function(waits, "planted_sleep") > 0.1 * sum(waits.values())
    assert in_function(waits, "planted_copy") < 0.05 * sum(waits.values())
    for sort in ("on-cpu", "off-cpu"):
        assert in_function(stacks["plain", sort], "planted_copy") == 0
        assert in_function(stacks["plain", sort], "planted_sleep") == 0

    functions = {function["name"] for shown in report["profiles"] for function in shown["functions"]}
    assert {"planted_copy", "planted_sleep"} <= functions
    assert not any(str(program.parent) in name for name in functions)
    left = {path.name for path in Path(report["folder"]).rglob("*") if path.suffix in {".data", ".script"}}
    assert left == set()


def in_openssl(stacks: dict[Stack, int]) -> float:
    """The share of the time with OpenSSL on the stack."""
    inside = sum(amount for stack, amount in stacks.items() if any(re.match(OPENSSL, frame) for frame in stack))
    return inside / sum(stacks.values())


OPENSSL = r"SSL_|EVP_|\[lib(ssl|crypto)\."


def request_reactor(results: Path, **options: object) -> ServersRequest:
    return ServersRequest(
        servers=("epoll-reactor",), given=options, results=results, as_json=True, foreign_load="count"
    )


@pytest.mark.parametrize(("tls", "least", "most"), [("off", 0.0, 0.0), ("on", 0.02, 0.9)])
def test_the_share_of_tls_is_seen(
    tls: str, least: float, most: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = request_reactor(tmp_path, workload="echo", connections=4, warmup=0.1, duration=0.4, tls=tls)
    report = profile_undisturbed(request, capsys)
    (computes,) = (read(shown["folded"]) for shown in report["profiles"] if shown["sort"] == "on-cpu")
    assert least <= in_openssl(computes) <= most


def test_a_server_that_cannot_have_the_load_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile.run(request_reactor(tmp_path, workload="chat", connections=4, duration=0.2, tls="on")) == 1
    notes = [shown["notes"] for shown in json.loads(capsys.readouterr().out)["profiles"]]
    assert all("does not encrypt chat" in note[0] for note in notes), notes
