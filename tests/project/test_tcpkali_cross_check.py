"""The cross-check against tcpkali: what it reads, what it makes of packets, what it does where tcpkali is missing."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from netdyno.kit.paths import ROOT, build_dir
from tests.support import bench_script

SCRIPT = ROOT / "bench" / "tcpkali_cross_check.py"
SERVER = 7000
RECORDED = """\
Aggregate message rate: 16189.612↓, 16227.101↑ mps
Message latency at percentiles: 2.4 ms (50%)
Test duration: 3.06628 s.
"""


@pytest.fixture(scope="module")
def cross() -> ModuleType:
    """The script as a module."""
    return bench_script.load("tcpkali_cross_check")


def test_the_median_and_the_answered_rate_are_read(cross: ModuleType) -> None:
    assert cross.parse(RECORDED) == (16189.612, 2400.0)


@pytest.mark.parametrize("line", ["Aggregate", "Message latency"])
def test_an_end_without_figures_says_so(cross: ModuleType, line: str) -> None:
    with pytest.raises(SystemExit, match="without figures"):
        cross.parse("\n".join(text for text in RECORDED.splitlines() if not text.startswith(line)))


def packet(us: int, source: int, target: int, sequence: int, length: int, flags: int = 0x10) -> bytes:
    """As tcpdump stores it, cut after the headers."""
    ip = struct.pack(">BBHIBBH4s4s", 0x45, 0, 20 + 20 + length, 0, 64, 6, 0, bytes([127, 0, 0, 1]), bytes(4))
    tcp = struct.pack(">HHIIBBHHH", source, target, sequence % 2**32, 0, 5 << 4, flags, 0, 0, 0)
    frame = bytes(12) + b"\x08\x00" + ip + tcp
    return struct.pack("<IIII", us // 10**6, us % 10**6 * 1000, len(frame), len(frame) + length) + frame


HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 80, 1)
CLIENT, OTHER = 40_000, 40_016


def of_stream(client: int, start: int) -> bytes:
    """Three messages: the first echoed after 20 us, the others, sent together, after 30 us in two parts."""
    return b"".join(
        [
            packet(0, client, SERVER, start, 0, flags=0x02),
            packet(1, SERVER, client, start + 5, 0, flags=0x12),
            packet(100, client, SERVER, start + 1, 31),
            packet(110, SERVER, client, start + 6, 0),  # an acknowledgement alone
            packet(120, SERVER, client, start + 6, 31),
            packet(200, client, SERVER, start + 32, 62),
            packet(210, SERVER, client, start + 37, 31),
            packet(230, SERVER, client, start + 68, 31),
        ]
    )


def test_a_message_took_from_its_packet_to_that_of_its_echo(cross: ModuleType) -> None:
    packets = list(cross.packets(HEADER + of_stream(CLIENT, 2**32 - 10) + of_stream(OTHER, 5)))
    assert cross.echo_times(packets, SERVER, 1) == [20e3, 30e3, 30e3] * 2
    assert cross.echo_times(packets, SERVER, 50e-6) == [30e3, 30e3] * 2, "of the last 50 us"


def test_a_connection_that_was_there_before_the_capture_is_left_out(cross: ModuleType) -> None:
    packets = list(cross.packets(HEADER + packet(1, CLIENT, SERVER, 8, 31) + packet(9, SERVER, CLIENT, 4, 31)))
    assert cross.echo_times(packets, SERVER, 1) == []


def test_a_capture_that_ends_in_a_packet_is_read_up_to_there(cross: ModuleType) -> None:
    whole = HEADER + of_stream(CLIENT, 5)
    assert len(list(cross.packets(whole[:-1]))) == len(list(cross.packets(whole))) - 1


def test_what_a_load_says_stands_over_what_the_packets_say(cross: ModuleType) -> None:
    reads = [cross.LoadReading(1e5, 6000.0 * factor, 50.0, 15.0) for factor in (1.0, 1.1, 0.9)]
    assert cross.judged("tcpkali", reads) == (
        "tcpkali: 100,000/s, says 6,000, packets 50, CPU 15.0 us a message; says / packets 120 [114.000 to 126.000]"
    )


def test_without_tcpkali_it_says_so(tmp_path: Path) -> None:
    message = bench_script.without_programs("tcpkali_cross_check", tmp_path)
    assert message.startswith("skipped: tcpkali is not installed (in no Debian; build it from github.com/")


@pytest.mark.quiet
@pytest.mark.needs_build
@pytest.mark.skipif(
    shutil.which("tcpkali") is None or shutil.which("tcpdump") is None, reason="tcpkali or tcpdump is not installed"
)
def test_it_prints_both_beside_the_packets() -> None:
    """One short block of a small load: what is printed, not what it says of speed."""
    command = [sys.executable, str(SCRIPT), "--build", str(build_dir())]
    short = ["--blocks", "1", "--seconds", "1", "--connections", "4"]
    ended = subprocess.run([*command, *short], capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    for load in ("netdyno-load", "tcpkali"):
        assert f"\n{load}: " in ended.stdout
