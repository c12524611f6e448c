"""`./netdyno serve` and `./netdyno load` of a multicast server, as docs/load.md shows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from netdyno.kit.paths import ROOT
from netdyno.measure.machine.links.namespace import NotAllowedError, make_namespace
from netdyno.measure.machine.links.namespace_child import read_network
from netdyno.measure.trial.load import INVALID_LOAD
from tests.support.server import launched, run

NETDYNO = (sys.executable, "-m", "netdyno")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line of this tree; a skip where namespaces are forbidden."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    try:
        with make_namespace():
            pass
    except NotAllowedError as error:
        pytest.skip(f"no namespaces here: {error}")


def test_serve_makes_a_namespace_and_load_enters_it(server: tuple[str, ...], generator: str) -> None:
    with launched((*NETDYNO, "serve", "udp-multicast"), "--workload", "chat") as served:
        served.wait_ready()
        assert read_network(served.pid) != read_network("self")
        assert served.pid == served.process.pid
        assert f"load it by: ./netdyno load --namespace {served.pid} 'ENDPOINT'" in served.stderr()
        load = (*NETDYNO, "load", "--namespace", str(served.pid), served.endpoint, "--workload", "chat")
        options = ("--audience", "all", "-c", "3", "--rate", "100", "--warmup", "0ms", "--duration", "200ms")
        done = run(load, *options, "--json", "-")
        assert done.code in {0, INVALID_LOAD}, done
        messages = json.loads(done.stdout)["messages"]
        assert (messages["sent"], messages["received"], messages["lost"]) == (20, 60, 0)
        outside = run((*NETDYNO, "load"), served.endpoint, *options, "--workload", "chat")
        assert outside.code == 2
        assert "./netdyno load --namespace PID enters it" in outside.stderr
        served.stop()


def test_help_and_a_caller_that_insists_need_no_namespace(server: tuple[str, ...]) -> None:
    done = run((*NETDYNO, "serve", "udp-multicast"), "--help")
    assert (done.code, done.stderr) == (0, "")
    assert "--multicast-anywhere" in done.stdout
    done = run((*NETDYNO, "serve", "udp-multicast"), "--multicast-anywhere", "--listen", "multicast://239.1.1.1:0")
    assert done.code == 2
    assert done.stderr.startswith("udp-multicast: --listen: no interface is named")
    assert done.stderr.count("\n") == 1


def test_a_namespace_that_is_none(generator: str) -> None:
    done = run((*NETDYNO, "load"), "--namespace", str(os.getpid()), "multicast://239.1.1.1:7000?interface=lo")
    assert done.code == 2
    assert done.stderr == f"netdyno: process {os.getpid()} is in no private network namespace of netdyno's\n"


def test_where_no_namespace_can_be_had_it_says_so(server: tuple[str, ...]) -> None:
    """No process may be started by the programs that make one, because they are not found."""
    environment = os.environ | {"PATH": "/nowhere"}
    command = [*NETDYNO, "serve", "udp-multicast"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "udp-multicast needs a private network namespace, which cannot be made here: unshare" in done.stderr
    assert done.stderr.count("\n") == 1
