"""clients/tcpkali without tcpkali: what it asks for, what it reads, and how it follows a program that prints as tcpkali
does. tests/contract/clients/test_instruments.py runs the real one where it is installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from netdyno.kit.paths import ROOT
from netdyno.measure.audits.plausible import accounts
from netdyno.model.load_result import LoadResult
from tests.support.running_client import running
from tests.support.server import run

MAIN = ROOT / "clients" / "tcpkali" / "main.py"
URL = "tcp://127.0.0.1:7000"
RECORDED = """\
Total data sent:     1.5 MiB (1550000 bytes)
Total data received: 1.5 MiB (1549969 bytes)
Bandwidth per channel: 0.124⇅ Mbps (15.5 kBps)
Aggregate bandwidth: 6.200↓, 6.200↑ Mbps
Aggregate message rate: 24999.500↓, 25000.000↑ mps
Packet rate estimate: 24998.0↓, 24998.0↑ (1↓, 1↑ TCP MSS/op)
Message latency at percentiles: 0.0/2.4/3.0/9.9 ms (10/50/90/100%)
Test duration: 2.00012 s.
"""
"""The output of tcpkali 1.2 (src/tcpkali_engine.c)."""
FAKE = """\
#!{python}
import signal, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if arguments["-c"] == "8":
    signal.pause()
if arguments["-c"] == "7":
    sys.exit("Could not create 7 connections in allotted time (0.3s)\\n")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
sys.stderr.write("Destination: [127.0.0.1]:7000\\n\\x1b[KRamped up to %s connections.\\n" % arguments["-c"])
sys.stderr.flush()
interrupted = signal.sigtimedwait([signal.SIGINT], float(arguments["-T"][:-1])) is not None
print({said!r}.replace("2.00012", "%g" % 0.1 if interrupted else "2.00012"), end="")
sys.exit(64 if interrupted else 0)
"""


@pytest.fixture(scope="module")
def client() -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("tcpkali_client", MAIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def fake(tmp_path: Path) -> tuple[str, ...]:
    """The command of the client with a program that prints what tcpkali prints."""
    program = tmp_path / "tcpkali"
    program.write_text(FAKE.format(python=sys.executable, said=RECORDED))
    program.chmod(0o755)
    return ("env", f"PYTHONPATH={ROOT / 'python'}", sys.executable, "-P", str(MAIN), str(program))


def test_it_requests_what_source_d_requested(client: ModuleType) -> None:
    options = ("-c", "100", "--connect-rate", "100", "--rate", "1000/conn", "--duration", "10s")
    command = client.command(client.parse(["tcpkali", URL, *options]))
    percents = command.pop(command.index("--latency-percentiles") + 1).split(",")
    assert " ".join(command) == (
        "tcpkali -c 100 --connect-rate 100 -r 1000 -T 10s --connect-timeout 5s -em \\{message.marker}\\n "
        "--write-combine off --nagle off --latency-percentiles 127.0.0.1:7000"
    )
    assert {"50", "99.9", "100"} <= set(percents)
    assert [float(percent) for percent in percents] == sorted({float(percent) for percent in percents})


def test_joined_leaves_the_combining_of_writes_on(client: ModuleType) -> None:
    options = ("-c", "4", "--connect-rate", "4", "--rate", "100", "--write-due", "joined", "--nodelay", "off")
    command = client.command(client.parse(["tcpkali", URL, *options]))
    assert "--write-combine" not in command
    assert command[command.index("--nagle") + 1] == "on"
    assert command[command.index("-r") + 1] == "25"  # of each connection


def test_each_of_its_figures_is_read(client: ModuleType) -> None:
    report = client.read_report(RECORDED)
    assert (report.bytes_sent, report.bytes_received, report.seconds) == (1550000, 1549969, 2.00012)
    assert (report.received_hz, report.sent_hz) == (24999.5, 25000.0)
    assert report.latencies_ms == ((10, 0.0), (50, 2.4), (90, 3.0), (100, 9.9))


@pytest.mark.parametrize("line", ["Total data sent", "Aggregate message rate", "Message latency", "Test duration"])
def test_a_line_that_is_missing_is_named(client: ModuleType, line: str) -> None:
    text = "\n".join(printed for printed in RECORDED.splitlines() if not printed.startswith(line))
    with pytest.raises(client.NoFiguresError, match=f"tcpkali ended without its line '{line}"):
        client.read_report(text)


def test_the_histogram_has_the_percentiles_that_it_printed(client: ModuleType) -> None:
    made = client.histogram(client.read_report(RECORDED).latencies_ms, 1000)
    assert made.count == 1000
    assert [round(value / 1e6, 2) for value in made.percentiles(10, 50, 90, 100)] == [0.05, 2.4, 3.0, 9.9]


def test_what_it_says_becomes_a_result_that_adds_up(fake: tuple[str, ...]) -> None:
    options = ("-c", "25", "--connect-rate", "100", "--rate", "1000/conn", "--duration", "300ms", "--warmup", "100ms")
    with running(fake, URL, *options) as runs:
        done = runs.wait()
    result = done.result
    assert (done.code, done.stderr, done.failed_audits) == (0, "", [])
    assert [event["event"] for event in runs.events] == ["connected", "window_start", "window_end"]
    assert (result.instrument, result.plan.rate_hz, result.plan.duration_s) == ("tcpkali", 25000, 0.3)
    assert (result.requests.completed, result.requests.sent, result.requests.due) == (7500, 7500, None)
    assert (result.messages.sent, result.messages.received, result.messages.lost) == (50000, 49999, 0)
    assert result.latency.response_ns.p50 == pytest.approx(2.4e6, rel=1e-3)
    assert [bound.what for bound in accounts(result) if bound.broken] == []
    assert "by its own figures: 25000.0 messages/s received, p50 2.4 ms" in done.stdout


def test_a_signal_ends_it_with_what_it_has(fake: tuple[str, ...]) -> None:
    options = ("-c", "25", "--connect-rate", "100", "--rate", "1000/conn", "--duration", "10m")
    with running(fake, URL, *options) as runs:
        runs.wait_event("window_start")
        done = runs.stop()
    assert (done.code, done.failed_audits) == (0, ["window"])
    assert done.result.plan.duration_s == pytest.approx(0.1)


def test_tcpkali_ends_when_it_is_killed(fake: tuple[str, ...]) -> None:
    options = ("-c", "25", "--connect-rate", "100", "--rate", "1000/conn", "--duration", "10m")
    with running(fake, URL, *options) as runs:
        runs.wait_event("window_start")
        runs.kill()


def test_without_figures_it_says_its_last_words_and_writes_no_result(fake: tuple[str, ...], tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    options = ("-c", "7", "--connect-rate", "100", "--rate", "10/conn", "--duration", "300ms", "--json", str(result))
    done = run(fake, URL, *options)
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr == "tcpkali: Could not create 7 connections in allotted time (0.3s)\n"
    assert not result.exists()


def test_where_it_does_not_come_to_its_end_it_is_ended(fake: tuple[str, ...]) -> None:
    options = ("-c", "8", "--connect-rate", "100", "--rate", "10/conn", "--duration", "100ms")
    done = run(fake, URL, *options)
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr == "tcpkali: tcpkali did not have its connections within 5.2 s\n"


def test_the_result_goes_to_stdout_when_requested(fake: tuple[str, ...]) -> None:
    options = ("-c", "2", "--connect-rate", "100", "--rate", "10/conn", "--duration", "100ms", "--json", "-")
    done = run(fake, URL, *options)
    assert done.stdout.count("\n") == 1
    assert msgspec.json.decode(done.stdout, type=LoadResult).connections.established == 2


def test_a_result_that_cannot_be_written_is_one_clear_line(fake: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "result.json"
    options = ("-c", "2", "--connect-rate", "100", "--rate", "10/conn", "--duration", "100ms", "--json", str(path))
    done = run(fake, URL, *options)
    assert (done.code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"tcpkali: cannot write {path}: ")
    assert "by its own figures:" in done.stdout, "one export that fails takes no other with it"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (("--workload", "rpc"), "--workload"),
        (("--size", "64"), "--size"),
        (("--rate", "fast"), "--rate"),
        (("--connect-rate", "burst"), "--connect-rate"),
        (("--connect-rate", "1"), "--connect-rate: it gives up"),
        (("--depth", "2"), "--depth"),
    ],
)
def test_what_it_cannot_do_is_refused(fake: tuple[str, ...], wrong: tuple[str, ...], named: str) -> None:
    options = ("-c", "5", "--connect-rate", "100", "--rate", "10/conn", "--duration", "100ms", "--warmup", "0")
    done = run(fake, URL, *options, *wrong)
    assert (done.code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert named in done.stderr
