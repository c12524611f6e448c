"""`netdyno link` by hand: both ends can be entered as it says, and nothing is left of it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from netdyno.kit.paths import ROOT, build_dir
from netdyno.measure.machine.links import lan
from netdyno.measure.machine.links.namespace import NotAllowedError
from netdyno.model.transports import LOAD_ADDRESS, SERVER_ADDRESS
from netdyno.verbs import cli

SOON_S = 30.0  # a limit for a stuck test, never waited for in one that passes


def hear_interrupts() -> None:
    """Take SIGINT as from a terminal: what a script starts in the background ignores it, with all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def link(options: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        with lan.make_ends():
            pass
    except NotAllowedError as error:
        pytest.skip(str(error))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "NETDYNO_BUILD": str(build_dir())}
    command = [sys.executable, "-m", "netdyno", "link", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env=environment, preexec_fn=hear_interrupts
    ) as made:
        try:
            yield made
        finally:
            made.kill()


def lines(made: subprocess.Popen[str], count: int) -> list[str]:
    """Its first lines; skips the test where the device of the relay cannot be opened."""
    assert made.stdout is not None
    assert made.stderr is not None
    printed = [made.stdout.readline() for _ in range(count)]
    if not printed[0] and "cannot open /dev/net/tun" in (why := made.stderr.read()):
        pytest.skip(why)
    return printed


def entering(line: str) -> list[str]:
    """The words that stand before the command of the example."""
    words = shlex.split(line)
    return words[: words.index("./netdyno")]


@contextmanager
def somebody_there(line: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has entered one end, and stays."""
    command = [*entering(line), "sh", "-c", "echo entered; exec sleep 1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as left:
        assert left.stdout is not None
        try:
            assert left.stdout.readline() == "entered\n"
            yield left
        finally:
            left.kill()


@pytest.mark.needs_build
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wan_can_be_entered_at_both_ends_and_is_gone_when_it_is_interrupted(number: signal.Signals) -> None:
    with link(["--delay", "5ms", "--loss", "0.01"]) as made:
        measured, server, serve, load, loads, until = lines(made, 6)
        assert measured.startswith("wan with 5ms each way, 1% lost, by ")
        assert "ms round trip" in measured
        assert server.startswith(f"the server's end is {SERVER_ADDRESS}")
        assert load.startswith(f"the load's end is {LOAD_ADDRESS}")
        assert until.startswith("It is there until you press Ctrl-C")
        for line, address in ((serve, SERVER_ADDRESS), (loads, LOAD_ADDRESS)):
            shown = subprocess.run([*entering(line), "ip", "address"], check=True, capture_output=True, text=True)
            assert f"inet {address}/30" in shown.stdout
        with somebody_there(serve) as left:
            made.send_signal(number)
            printed, _ = made.communicate(timeout=SOON_S)
            assert made.returncode == 0
            assert "netem" in measured or printed.startswith("carried ")
            assert left.wait(SOON_S) == -signal.SIGKILL  # a process that is still there ends with it


@pytest.mark.needs_build
def test_kill_9_ends_every_program_there() -> None:
    with link(["--delay", "1ms"]) as made, somebody_there(lines(made, 3)[-1]) as left:
        made.kill()
        left.wait(SOON_S)


def test_without_delay_and_loss_it_is_a_lan() -> None:
    with link(["--rate", "100mbit"]) as made:
        (measured,) = lines(made, 1)
        assert measured.startswith("lan at 100mbit: measured ")
        made.send_signal(signal.SIGINT)
        made.communicate(timeout=SOON_S)
        assert made.returncode == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--delay", "20"], "netdyno: --delay: '20' is not a duration: write a number and a unit"),
        (["--delay", "11s"], "netdyno: --delay: 11s is above 10 s"),
        (["--loss", "1"], "netdyno: --loss: 1.0 is not a share from 0 to below 1"),
        (["--rate", "fast"], "netdyno: --rate: 'fast' is not a rate"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    options: Sequence[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["link", *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith(complaint)
    assert error.count("\n") == 1
