"""The files that netdyno-load writes for other programs, read back by these or by equally strict readers; its version,
completion and live view."""

from __future__ import annotations

import csv
import importlib
import math
import os
import pty
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import IO

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.model.load_result import PERCENTILES, LoadResult
from tests.support.foreign import MEASURED, OK, http, load, replies_of, requests
from tests.support.nodes import NODES
from tests.support.server import serving

pytestmark = pytest.mark.needs_build

Rows = list[dict[str, str]]
FORMS = ("json", "csv", "hdr", "percentiles", "prometheus")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of an echo server."""
    with serving((str(build_dir() / "servers" / "threads-global-lock"),)) as serves:
        yield serves.endpoint


@pytest.fixture(scope="module")
def written(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadResult, Path]:
    """Two steps with all outputs: the result, and where the others are."""
    folder = tmp_path_factory.mktemp("outputs")
    files = [f"--{name}={folder / name}" for name in ("json", "csv", "prometheus", "percentiles")]
    done = load(server, "-c", "3", "--warmup", "20ms", "--rate", "200,200..600/200ms", *files)
    assert done.returncode in MEASURED, done.stderr
    return msgspec.json.decode((folder / "json").read_bytes(), type=LoadResult), folder


def test_each_step_has_its_figures(written: tuple[LoadResult, Path]) -> None:
    result, _ = written
    assert isinstance(result.steps, tuple)
    assert [(step.from_hz, step.to_hz, step.begins_s, step.seconds) for step in result.steps] == [
        (200, 200, 0, 0.2),
        (200, 600, 0.2, 0.2),
    ]
    assert [step.sent for step in result.steps] == [40, 80]
    assert [step.response_ns.count for step in result.steps] == [40, 80]
    assert sum(step.completed for step in result.steps) == result.requests.completed
    assert (result.plan.rate_hz, result.plan.duration_s) == (300, 0.4)


def test_the_table_has_window_steps_and_intervals(written: tuple[LoadResult, Path]) -> None:
    result, folder = written
    with (folder / "csv").open(newline="") as file:
        rows: Rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows), "as many fields as names"
    parts = {part: [row for row in rows if row["part"] == part] for part in ("window", "step", "interval")}
    assert len(rows) == sum(map(len, parts.values()))
    (window,) = parts["window"]
    response = result.latency.response_ns
    assert (int(window["sent"]), int(window["completed"])) == (result.requests.sent, result.requests.completed)
    for field in (*PERCENTILES.values(), "max"):
        assert int(window[f"{field}_ns"]) == getattr(response, field), field
    assert [(row["from_hz"], row["to_hz"], row["sent"]) for row in parts["step"]] == [
        ("200", "200", "40"),
        ("200", "600", "80"),
    ]
    assert [int(row["completed"]) for row in parts["interval"]] == list(result.timeseries.completed)
    assert [int(row["p99_ns"]) if row["p99_ns"] else None for row in parts["interval"]] == list(
        result.timeseries.p99_ns
    )


NAME, LABELS = r"[a-zA-Z_:][a-zA-Z0-9_:]*", r"\{((?:[a-zA-Z_]\w*=\"(?:[^\"\\\n]|\\[\\n\"])*\",?)*)\}"


def samples(text: str) -> dict[str, float]:
    """Read Prometheus' text format 0.0.4: each sample follows the type that declares it, and stands once."""
    assert text.endswith("\n")
    types: dict[str, str] = {}
    values: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if kind := re.fullmatch(rf"# TYPE ({NAME}) (gauge|summary)", line):
            assert kind[1] not in types
            types[kind[1]] = kind[2]
            continue
        sample = re.fullmatch(rf"({NAME})(?:{LABELS})? (\S+)", line)
        assert sample is not None, line
        base = sample[1] if sample[1] in types else re.sub("_(sum|count)$", "", sample[1])
        assert base == list(types)[-1], line
        assert base == sample[1] or types[base] == "summary"
        key = line.rpartition(" ")[0]
        assert key not in values
        values[key] = float(sample[3])
    return values


def test_prometheus_reads_the_figures(written: tuple[LoadResult, Path]) -> None:
    result, folder = written
    values = samples((folder / "prometheus").read_text())
    response = result.latency.response_ns
    assert values['netdyno_load_response_seconds{quantile="0.99"}'] == pytest.approx(response.p99 / 1e9)
    assert values["netdyno_load_response_seconds_count"] == response.count == 120
    assert values["netdyno_load_response_seconds_sum"] == pytest.approx(response.mean * response.count / 1e9)
    assert values["netdyno_load_completed_per_second"] == pytest.approx(result.requests.per_second)
    assert values['netdyno_load_messages{what="sent"}'] == result.messages.sent
    assert values['netdyno_load_connections{what="established"}'] == 3
    for audit in result.audits:
        assert values[f'netdyno_load_audit_passed{{audit="{audit.name}"}}'] == audit.passed


def test_the_percentiles_are_those_of_the_histogram(written: tuple[LoadResult, Path]) -> None:
    result, folder = written
    histogram = importlib.import_module("hdrh.histogram").HdrHistogram.decode(result.latency.response_ns.histogram)
    head, empty, *lines = (folder / "percentiles").read_text().splitlines()
    assert (head.split(), empty) == (["Value", "Percentile", "TotalCount", "1/(1-Percentile)"], "")
    rows = [[float(word) for word in line.split()] for line in lines if not line.startswith("#")]
    assert len(rows) > 20
    assert rows == sorted(rows)
    counts = [(step.value_iterated_to, step.total_count_to_this_value) for step in histogram.get_recorded_iterator()]
    for value, share, count, *_ in rows:
        assert count == max(upto for highest, upto in counts if highest <= round(value * 1e3)), "as HdrHistogram counts"
        assert value == pytest.approx(histogram.get_value_at_percentile(100 * share) / 1e3, abs=0.001, rel=0.002)
    assert rows[-1][1:] == [1.0, 120]
    assert re.fullmatch(r"#\[Max     = +[\d.]+, Total count    = +120\]", lines[-1])


def test_errors_stand_in_every_output(tmp_path: Path) -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        for count, _ in enumerate(requests(connection)):
            connection.sendall(b"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n" if count % 2 else OK)
            if count == 10:
                return

    files = [f"--{name}={tmp_path / name}" for name in ("json", "csv", "prometheus")]
    with http(serve) as url:
        load(url, "--warmup", "0", "--rate", "200,200..600/103ms", "--timeout", "1s", "--assert", "errors=0", *files)
    result: LoadResult = msgspec.json.decode((tmp_path / "json").read_bytes(), type=LoadResult)
    assert isinstance(result.steps, tuple)
    failed = replies_of(result).unexpected
    assert failed > 0
    rows: Rows = list(csv.DictReader((tmp_path / "csv").read_text().splitlines()))
    assert int(rows[0]["errors"]) == failed + sum(result.errors.values())
    assert sum(step.errors for step in result.steps) == sum(result.timeseries.errors) > 0
    assert sum(float(row["seconds"]) for row in rows if row["part"] == "interval") == pytest.approx(0.206)
    values = samples((tmp_path / "prometheus").read_text())
    assert values['netdyno_load_messages{what="unexpected"}'] == failed
    assert values["netdyno_load_cpu_seconds"] == pytest.approx(
        result.generator.cpu_user_s + result.generator.cpu_system_s, rel=1e-4
    )


def test_what_was_never_answered_has_no_times_in_any_output(tmp_path: Path) -> None:
    """A stall of 0 ns would be the best moment of all."""

    def serve(connection: socket.socket, _number: int) -> None:
        for count, _ in enumerate(requests(connection)):
            if count == 2:
                time.sleep(0.4)
            connection.sendall(OK)

    files = [f"--{name}={tmp_path / name}" for name in ("json", "csv", "prometheus", "percentiles")]
    with http(serve) as url:
        load(url, "--warmup", "0", "--rate", "20..20/300ms,20..20/300ms", "--timeout", "5s", *files)
        before = ("--rate", "1", "--warmup", "50ms", "--duration", "50ms")  # the one message is due before the window
        never = load(url, *before, *(f"--{name}={tmp_path / 'never'}.{name}" for name in ("csv", "prometheus")))
    result: LoadResult = msgspec.json.decode((tmp_path / "json").read_bytes(), type=LoadResult)
    series = result.timeseries
    assert series.completed.count(0) > 5
    for times in (series.p50_ns, series.p99_ns):
        assert [time_ns is None for time_ns in times] == [count == 0 for count in series.completed]
    rows: Rows = list(csv.DictReader((tmp_path / "csv").read_text().splitlines()))
    intervals = [row for row in rows if row["part"] == "interval"]
    assert [row["p50_ns"] == row["p99_ns"] == "" for row in intervals] == [count == 0 for count in series.completed]
    assert re.search("^response +none$", never.stdout, re.MULTILINE), never.stdout
    (window, *_) = csv.DictReader((tmp_path / "never.csv").read_text().splitlines())
    assert {window[f"{name}_ns"] for name in ("mean", *PERCENTILES.values(), "max")} == {""}
    values = samples((tmp_path / "never.prometheus").read_text())
    assert values["netdyno_load_response_seconds_count"] == 0
    assert math.isnan(values['netdyno_load_response_seconds{quantile="0.99"}'])
    assert math.isnan(values['netdyno_load_receive_lag_seconds{quantile="0.5"}'])


def test_the_live_view_has_no_time_where_nothing_was_answered() -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        for _ in requests(connection):
            time.sleep(0.8)
            connection.sendall(OK)

    with http(serve) as url:
        frames = live_frames(url, "-n", "1")
    assert [line.split()[:2] for line in frames[0][:4]] == [["0", "of"], ["rate", "0/s"], ["p50", "-"], ["p99", "-"]]


@pytest.mark.parametrize("name", NODES)
def test_what_is_no_regular_file_is_written_and_stays_what_it_is(server: str, name: str, tmp_path: Path) -> None:
    nodes = {}
    for form in FORMS:
        (tmp_path / form).mkdir()
        nodes[form] = NODES[name](tmp_path / form)
    kinds = {form: stat.S_IFMT(node.lstat().st_mode) for form, (node, _) in nodes.items()}
    done = load(server, "-n", "5", *(f"--{form}={node}" for form, (node, _) in nodes.items()))
    assert done.returncode in MEASURED, done.stderr
    for form, (node, content) in nodes.items():
        assert stat.S_IFMT(node.lstat().st_mode) == kinds[form], form
        written = content()
        assert (written == "") == (name == "device"), form
        assert "the old one" not in written, form
        if form == "json" and written:
            assert msgspec.json.decode(written, type=LoadResult).messages.sent == 5


def test_a_descriptor_goes_on_where_it_stands(server: str, tmp_path: Path) -> None:
    """The redirections that a shell makes of `--json >(cat > FILE) --csv /dev/stdout >> OUTPUT`."""
    command = [str(generator_path(build_dir())), server, "-n", "5", "--csv", "/dev/stdout"]
    script = f'echo before; "$@" --json >(cat > {tmp_path}/json); code=$?; wait; exit $code'
    with (tmp_path / "output").open("wb") as output:
        done = subprocess.run(["bash", "-c", script, "bash", *command], stdout=output, check=False)
    assert done.returncode in MEASURED
    first, head, *_, last = (tmp_path / "output").read_text().splitlines()
    assert first == "before"
    assert head.startswith("part,begins_s")
    assert last.startswith(("audits", "INVALID", "  ")), last
    assert msgspec.json.decode((tmp_path / "json").read_bytes(), type=LoadResult).messages.sent == 5


def test_what_cannot_be_written_is_reported(server: str, tmp_path: Path) -> None:
    done = load(server, "-n", "5", "--json", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"netdyno-load: cannot write {tmp_path}: Is a directory\n"


def test_a_pipe_that_no_program_reads_is_reported(server: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = load(server, "-n", "5", "--json", str(tmp_path / "pipe"), "--csv", str(tmp_path / "csv"))
    assert done.returncode == 1
    assert done.stderr == f"netdyno-load: cannot write {tmp_path / 'pipe'}: it is a pipe that no program reads\n"
    assert "5 answered" in done.stdout
    assert (tmp_path / "csv").read_text()


def test_a_pipe_with_a_reader_gets_all(server: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE) as reader:
        done = load(server, "-n", "5", "--json", str(tmp_path / "pipe"))
        text, _ = reader.communicate()
    assert done.returncode in MEASURED
    assert msgspec.json.decode(text, type=LoadResult).messages.sent == 5


@pytest.mark.parametrize("asks", [(), *((f"--{name}", "-") for name in FORMS)], ids=str)
def test_a_result_that_stdout_does_not_take_is_an_error(server: str, asks: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = load_to(full, server, "-n", "5", *asks)
    assert done.returncode == 1
    assert done.stderr == "netdyno-load: cannot write standard output: No space left on device\n"


def test_a_closed_stdout_is_no_place_for_a_connection(server: str) -> None:
    command = ["bash", "-c", '"$@" >&-', "bash", str(generator_path(build_dir())), server, "-n", "5"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "netdyno-load: cannot write standard output: Bad file descriptor\n")


@pytest.mark.parametrize("stderr", ["&-", "/dev/full"])
def test_a_stderr_that_takes_nothing_ends_no_load(server: str, tmp_path: Path, stderr: str) -> None:
    files = ["--json", "/dev/full", "--csv", str(tmp_path / "csv")]
    command = ["bash", "-c", f'"$@" 2>{stderr}', "bash", str(generator_path(build_dir())), server, "-n", "5", *files]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "5 answered" in done.stdout
    assert (tmp_path / "csv").read_text()


@pytest.mark.parametrize("asks", [("--help",), ("--version",), ("--completion", "bash")], ids=str)
def test_what_it_says_of_itself_is_written_or_an_error(asks: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = load_to(full, *asks)
    assert done.returncode == 1
    assert done.stderr.startswith("netdyno-load: cannot write standard output")


@pytest.mark.parametrize("program", ["canary/netdyno-canary", "servers/threads-global-lock"])
def test_every_program_says_that_its_output_went_nowhere(program: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = load_to(full, "--help", program=build_dir() / program)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{Path(program).name}: cannot write standard output")


@pytest.mark.parametrize("asks", [("--help",), ("--completion", "bash")], ids=str)
def test_what_it_says_of_itself_ends_quietly_where_it_is_not_read(asks: tuple[str, ...]) -> None:
    with unread() as stdout:
        done = load_to(stdout, *asks)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("asks", [(), ("--json", "-")], ids=str)
def test_a_result_that_stdout_is_not_read_for_is_missed_quietly_and_its_files_are_kept(
    server: str, tmp_path: Path, asks: tuple[str, ...]
) -> None:
    with unread() as stdout:
        done = load_to(stdout, server, "-n", "5", *asks, "--csv", str(tmp_path / "csv"), "--hdr", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"netdyno-load: cannot write {tmp_path}: Is a directory\n"
    assert (tmp_path / "csv").read_text()


@contextmanager
def unread() -> Iterator[IO[bytes]]:
    """Yield a pipe that no program reads."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        yield pipe


def load_to(stdout: IO[bytes], *arguments: str, program: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(program or generator_path(build_dir())), *arguments]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def test_an_export_that_fails_takes_no_other_with_it(server: str, tmp_path: Path) -> None:
    files = [f"--{name}={tmp_path / name}" for name in ("csv", "prometheus", "percentiles")]
    done = load(server, "-n", "5", "--json", "/dev/full", "--hdr", str(tmp_path), *files)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "netdyno-load: cannot write /dev/full: No space left on device",
        f"netdyno-load: cannot write {tmp_path}: Is a directory",
    ]
    assert "5 answered" in done.stdout
    assert all((tmp_path / name).read_text() for name in ("csv", "prometheus", "percentiles"))


def test_a_table_on_stdout_stands_alone(server: str) -> None:
    done = load(server, "-n", "5", "--csv", "-")
    assert done.returncode in MEASURED
    assert done.stdout.startswith("part,begins_s")
    assert "audits" not in done.stdout


def test_it_says_its_version() -> None:
    done = load("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"netdyno-load \d+\.\d+\.\d+\n", done.stdout)


def completed(*words: str) -> list[str]:
    """The completions that bash offers for the last of these words, once it has read the script."""
    script = load("--completion", "bash")
    assert script.returncode == 0
    line = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _netdyno_load; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    shown = subprocess.run(["bash", "-euc", script.stdout + ask], check=True, capture_output=True, text=True)
    return shown.stdout.split()


def test_bash_completes_options_and_their_values(tmp_path: Path) -> None:
    (tmp_path / "result.json").touch()
    assert completed("netdyno-load", "--look") == ["--look-every"]
    assert sorted(completed("netdyno-load", "--spin", "")) == ["auto", "off", "on"]
    assert completed("netdyno-load", "--json", f"{tmp_path}/res") == [f"{tmp_path}/result.json"]


def test_zsh_gets_a_specification_of_each_option() -> None:
    script = load("--completion", "zsh").stdout
    assert script.startswith("#compdef netdyno-load\n")
    specifications = re.findall(r"^    '(--[a-z-]+)\[((?:[^\]\\]|\\.)*)\](.*)' \\$", script, re.MULTILINE)
    options = {name for name, _, _ in specifications}
    assert options == set(re.findall(r"^ {2,10}(?:-\w, *)?(--[a-z-]+)", load("--help").stdout, re.MULTILINE))
    assert {"--help", "--rate", "--spin", "--json", "--count"} <= options
    assert ("--spin", ":value:(auto off on)") in {(name, value) for name, _, value in specifications}


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish: apt-get install fish")
def test_fish_completes_the_options_their_words_and_files(tmp_path: Path) -> None:
    script = tmp_path / "netdyno-load.fish"
    script.write_text(load("--completion", "fish").stdout)
    (tmp_path / "result.json").touch()

    def completed(typed: str) -> list[str]:
        ask = f"source {script}; complete --do-complete 'netdyno-load {typed}'"
        done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, check=True)
        return [line.partition("\t")[0] for line in done.stdout.splitlines()]

    assert completed("--look") == ["--look-every"]
    assert completed("--spin ") == ["auto", "off", "on"]
    assert completed(f"--json {tmp_path}/res") == [f"{tmp_path}/result.json"]
    assert {"-c", "--connections"} <= set(completed("-"))


def test_another_shell_is_refused() -> None:
    done = load("--completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert "none of bash, zsh and fish" in done.stderr


def on_a_terminal(*arguments: str) -> str:
    """The text that a load draws while it runs, on a terminal of 30 columns."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    command = [str(generator_path(build_dir())), *arguments]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 4096):
                shown += data
        except OSError:  # EIO: the other side has closed the terminal
            pass
        os.close(ours)
    assert process.returncode in MEASURED
    return shown.decode()


def live_frames(*arguments: str) -> list[list[str]]:
    """The lines of each frame that has figures."""
    frames = re.split(r"\033\[4A\r", on_a_terminal(*arguments))
    plain = [
        [re.sub(r"\033\[\d*[A-Z]", "", line).strip("\r").rpartition("\r")[2] for line in frame.split("\r\n")]
        for frame in frames
    ]
    return [lines for lines in plain if len(lines) == 5]


def test_the_live_view_is_drawn_over_itself_and_gone_at_the_end(server: str) -> None:
    text = on_a_terminal(server, "--warmup", "0", "--duration", "1200ms")
    assert "\033[2J" not in text, "nothing is wiped before it is drawn"
    frames = re.split(r"\033\[4A\r", text)
    assert len(frames) >= 3, "the second figures stand where the first stood"
    lines = [re.sub(r"\033\[\d*[A-Z]", "", line) for line in frames[1].split("\r\n")]
    assert [line.split()[0] for line in lines] == ["1.0", "rate", "p50", "p99", "errors"]
    assert any(block in frames[1] for block in "▁▂▃▄▅▆▇█")
    assert all(len(line) < 30 for line in lines), "a line that wraps would not be drawn over"
    assert frames[-1].startswith("\033[K\033[J") or frames[-1].endswith("\r\033[K\033[J")


def test_nothing_is_drawn_on_a_pipe(server: str) -> None:
    done = load(server, "--warmup", "0", "--duration", "600ms")
    assert done.stderr == ""
    assert "\033" not in done.stdout
