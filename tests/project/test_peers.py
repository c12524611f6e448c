"""The comparison with other load programs: what it reads of them, what its tables say, what it does without them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from netdyno.kit.paths import ROOT, build_dir
from netdyno.kit.quantities import DASH
from tests.support import bench_script

SCRIPT = ROOT / "bench" / "peers.py"

WRK = """  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    13.94ms   31.73ms 189.68ms   93.07%
  Latency Distribution
     50%    0.91ms
     75%   13.19ms
     90%   29.17ms
     99%  169.41ms
  3093 requests in 1.50s, 407.77KB read
  Socket errors: connect 0, read 7, write 0, timeout 2
  Non-2xx or 3xx responses: 93
"""
H2LOAD = """finished in 2.10s, 6214.00 req/s, 819.23KB/s
requests: 6214 total, 6278 started, 6214 done, 6200 succeeded, 14 failed, 0 errored, 0 timeout
"""
AB = """Time taken for tests:   2.000 seconds
Complete requests:      6456
Failed requests:        0
Non-2xx responses:      56
"""
HEY = """Summary:
  Total:	2.0000 secs

Latency distribution:
  50%% in 0.0001 secs
  99%% in 0.0002 secs

Status code distribution:
  [200]	2700 responses
  [503]	82 responses

Error distribution:
  [4]	Get "http://127.0.0.1:1/": EOF
"""
OHA = """{"summary": {"total": 2.0}, "latencyPercentiles": {"p50": 0.0001, "p99": 0.002},
 "statusCodeDistribution": {"200": 400, "503": 3},
 "errorDistribution": {"aborted due to deadline": 64, "connection refused": 2}}"""
VEGETA = '{"latencies": {"50th": 115421, "99th": 36851513}, "requests": 500, "status_codes": {"0": 3, "200": 497}}'
FORTIO = """Fortio 1.66.5 running at 0 queries per second
{"ActualDuration": 2000000000, "RetCodes": {"-1": 5, "200": 395},
 "DurationHistogram": {"Percentiles": [{"Percentile": 50, "Value": 0.0005}, {"Percentile": 99, "Value": 0.001}]}}
All done"""
K6 = """{"http_req_duration": {"values": {"med": 2.5, "p(99)": 30}}, "http_reqs": {"values": {"count": 400}},
 "http_req_failed": {"values": {"passes": 4}}, "dropped_iterations": {"values": {"count": 11}}}"""
BOMBARDIER = """{"result": {"timeTakenSeconds": 2.0, "req1xx": 0, "req2xx": 390, "req3xx": 0, "req4xx": 6, "req5xx": 0,
 "others": 4, "latency": {"percentiles": {"50": 49, "99": 196}}}}"""
AUTOCANNON = """{"duration": 2.0, "errors": 3, "timeouts": 1, "non2xx": 2, "2xx": 398,
 "latency": {"p50": 1, "p99": 20}}"""
REDIS = '"test","rps","avg","min","p50","p95","p99","max"\n"GET","60000.00","0.6","0.1","0.623","0.9","1.103","3.6"\n'
MEMCASLAP = "get_misses: 3\nRun time: 2.0s Ops: 137843 TPS: 68249 Net_rate: 76.3M/s\n"
GCANNON = """{"elapsed_sec": 2.004, "responses": 400, "latency_us": {"p50": 712, "p99": 1030},
 "status": {"2xx": 390, "3xx": 3, "4xx": 5, "5xx": 0, "other": 2}, "errors": {"connect": 0, "read": 1, "timeout": 0}}"""
LOAD = """{"latency": {"response_ns": {"p50": 38000, "p99": 90000}}, "requests": {"completed": 400},
 "replies": {"faults": [{"what": "404 Not Found", "count": 7}]}}"""


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    """The script as a module."""
    return bench_script.load("peers")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("netdyno-load", LOAD, (400, 2, 38, 90, "7 404 Not Found")),
        ("wrk", WRK, (3000, 1.5, 910, 169_410, "7 read errors, 2 timeouts, 93 other status")),
        ("gcannon", GCANNON, (393, 2.004, 712, 1_030, "7 other status, 1 read errors")),
        ("h2load", H2LOAD, (6200, 2, 30, 40, "14 failed")),
        ("ab", AB, (6400, 2, 5_080, 34_028, "56 other status")),
        ("hey", HEY, (2700, 2, 100, 200, "4 errors, 82 other status")),
        ("oha", OHA, (400, 2, 100, 2_000, "2 errors, 3 other status")),
        ("vegeta", VEGETA, (497, 2, 115.421, 36_851.513, "3 failed")),
        ("fortio", FORTIO, (395, 2, 500, 1_000, "5 failed")),
        ("k6", K6, (396, 2, 2_500, 30_000, "4 failed, 11 dropped")),
        ("bombardier", BOMBARDIER, (390, 2, 49, 196, "10 failed")),
        ("autocannon", AUTOCANNON, (398, 2, 1_000, 20_000, "3 errors, 1 timeouts, 2 other status")),
        ("redis-benchmark", REDIS, (120_000, 2, 623, 1_103, "")),
        ("memcaslap", MEMCASLAP, (137_843, 2, None, None, "3 misses")),
    ],
)
def test_what_each_program_says_is_read(
    peers: ModuleType, tmp_path: Path, name: str, text: str, expected: tuple[Any, ...]
) -> None:
    (tmp_path / "h2load.log").write_text("".join(f"1\t200\t{time}\n" for time in (10, 40, 30, 20)))
    (tmp_path / "ab.csv").write_text("Percentage served,Time in ms\n0,0.362\n50,5.080\n99,34.028\n")
    peer = next(candidate for candidate in peers.PEERS if candidate.name == name)
    read = peer.read(text, peers.Task("http://127.0.0.1:1/", 4, 2, 100, tmp_path))
    times = (pytest.approx(figure) for figure in expected[:4])
    assert (read.requests, read.seconds, read.p50_us, read.p99_us, read.failed) == (*times, expected[4])


def test_a_program_without_figures_is_reported_by_its_last_words(peers: ModuleType, tmp_path: Path) -> None:
    for peer in peers.PEERS:
        with pytest.raises(peers.UnreadableError, match="cannot connect"):
            peer.read("cannot connect", peers.Task("http://127.0.0.1:1/", 4, 2, None, tmp_path))


def results(peers: ModuleType, **more: Any) -> Any:
    """Three rounds of two programs in a closed loop, at a rate and over a stall."""
    runs = []
    for number, cpu in enumerate((8.0, 9.0, 12.0), 1):
        runs += [
            peers.PeerRun("closed loop", "wrk", number, 100_000 + number, cpu + 1, 500, 900),
            peers.PeerRun("closed loop", "netdyno-load", number, 115_000, cpu, 400, 800),
            peers.PeerRun("10,000/s", "netdyno-load", number, 9_990.0, 44.0, 38.0, 90.0),
            peers.PeerRun("stall", "netdyno-load", number, 2_000, 44.0, 38, 451_000, 450_000),
            peers.PeerRun("stall", "wrk", number, 2_000, 44.0, 38, 900, 450_000, "3 timeouts"),
        ]
    facts = {"command": "bench/peers.py", "machine": "a machine", "connections": 64, "seconds": 2}
    facts |= {"stall_seconds": 5, "server_seconds": 10}
    about = {"versions": {"wrk": "4.1.0"}, "absent": {"oha": "cargo install oha"}}
    return peers.PeerResults(**facts, **about, cases=["closed loop", "10,000/s", "stall"], runs=runs, **more)


def test_the_page_has_each_program_with_its_quartiles(peers: ModuleType) -> None:
    stalled = "| 38.0 µs (38.0-38.0) | 0.451 (0.451-0.451) |"
    table = "\n".join(
        [
            "|  | closed loop: requests/s | CPU each, µs | 10,000/s: kept | CPU | p50 | stall: p99, true 0.450 s |",
            "|---|---|---|---|---|---|---|",
            f"| `netdyno-load` | 115k (115-115) | 9.00 (8.50-10.5) | 99.9% | 44.0 {stalled}",
            "| `wrk` | 100k (100-100) | 10.0 (9.50-11.5) | - | - | - | 0.001 (0.001-0.001) |",
        ]
    )
    assert f"\n\n{table}\n\n" in peers.page([results(peers)]).replace(DASH, "-")


def test_the_table_has_the_columns_of_what_was_measured(peers: ModuleType) -> None:
    peer_results = results(peers)
    peer_results.cases = ["closed loop"]
    peer_results.runs = [run for run in peer_results.runs if run.case == "closed loop"]
    text = peers.page([peer_results]).replace(DASH, "-")
    assert "\n|  | closed loop: requests/s | CPU each, µs |\n|---|---|---|\n" in text
    assert "\n| `wrk` | 100k (100-100) | 10.0 (9.50-11.5) |\n" in text
    assert "64 connections; 2 s a run." in text


def test_the_page_has_the_best_other_program_of_each_server(peers: ModuleType) -> None:
    """And of a server that no other program speaks to, nothing."""
    peer_results = results(peers)
    peer_results.cases += ["redis, GET", "memcached, get of 1 KiB"]
    rates = {"netdyno-load": (110, 120, 130), "wrk": (10, 200, 20), "redis-benchmark": (100, 60, 130)}
    for name, values in rates.items():
        peer_results.runs += [
            peers.PeerRun("redis, GET", name, number, value) for number, value in enumerate(values, 1)
        ]
    peer_results.runs += [peers.PeerRun("redis, GET", "wrk", 4, failed="no figures")]
    peer_results.runs += [peers.PeerRun("memcached, get of 1 KiB", "netdyno-load", 1, 100)]
    assert [line.replace(DASH, "-") for line in peers.of_others_servers(peer_results)][-3:] == [
        "|  | `netdyno-load`: requests/s | best other | its requests/s | ratio |",
        "|---|---|---|---|---|",
        "| redis, GET | 120 (115-125) | `redis-benchmark` | 100 (80-115) | 1.10 (1.05-1.55) |",
    ]


def test_the_page_names_what_failed_and_what_is_absent(peers: ModuleType) -> None:
    text = peers.page([results(peers)])
    assert "Absent: oha (cargo install oha)." in text
    assert text.endswith("\n* `wrk`: stall: 3 timeouts\n")
    assert max(map(len, text.splitlines())) <= 120


def test_the_page_says_that_memcaslap_does_not_only_get(peers: ModuleType) -> None:
    peer_results = results(peers)
    peer_results.cases = ["memcached, get of 1 KiB"]
    peer_results.runs = [peers.PeerRun("memcached, get of 1 KiB", "memcaslap", 1, 1000.0)]
    last = peers.page([peer_results]).splitlines()[-1]
    assert last == "* `memcaslap`: one in a hundred of its requests is a set"


def test_the_page_has_every_command(peers: ModuleType) -> None:
    again = results(peers)
    again.command, again.cases = "bench/peers.py --cases redis", ["redis, GET"]
    again.runs = [peers.PeerRun("redis, GET", name, 1, 100.0) for name in ("netdyno-load", "redis-benchmark")]
    text = peers.page([results(peers), again])
    assert text.count("closed loop: requests/s") == 1
    assert "\nbench/peers.py --cases redis\n" in text
    assert text.endswith("\n| redis, GET | 100 | `redis-benchmark` | 100 | 1.00 |\n")


def test_a_case_stands_once_as_the_latest_command_measured_it(peers: ModuleType) -> None:
    def at_redis(ours: float, connections: int = 64) -> Any:
        peer_results = results(peers)
        peer_results.connections = connections
        peer_results.command, peer_results.cases = f"bench/peers.py --seconds {ours:.0f}", ["redis, GET"]
        rates = {"netdyno-load": ours, "redis-benchmark": 100.0}
        peer_results.runs = [peers.PeerRun("redis, GET", name, 1, value) for name, value in rates.items()]
        return peer_results

    text = peers.page([at_redis(150), results(peers), at_redis(120)])
    assert "--seconds 150" not in text
    assert text.endswith("\n| redis, GET | 120 | `redis-benchmark` | 100 | 1.20 | 1.50 |\n")
    text = peers.page([at_redis(150, connections=512), at_redis(120)])
    assert "--seconds 150" in text, "with other connections it is another case"


def test_a_run_that_failed_is_in_no_median(peers: ModuleType) -> None:
    peer_results = results(peers)
    peer_results.runs.append(peers.PeerRun("closed loop", "wrk", 4, failed="no figures"))
    text = peers.page([peer_results]).replace(DASH, "-")
    assert "| `wrk` | 100k (100-100) |" in text
    assert "\n* `wrk`: closed loop: no figures; stall: 3 timeouts\n" in text


def test_what_is_kept_reads_back(peers: ModuleType) -> None:
    assert peers.read(peers.stored([results(peers)])) == [results(peers)]


def test_a_command_takes_the_place_of_what_it_had_measured_and_of_nothing_else(peers: ModuleType) -> None:
    first, second, again = (results(peers) for _ in range(3))
    second.command += " --only wrk"
    again.runs = again.runs[:1]
    assert peers.together([first, second], again) == [second, again]


def test_a_command_names_no_folder_of_this_machine(peers: ModuleType) -> None:
    assert peers.asked(["--build", "/tmp/x", "--budget", "20m"]) == "bench/peers.py --build DIR --budget 20m"


def test_the_page_says_what_is_kept(peers: ModuleType) -> None:
    if not peers.STORE.exists():
        pytest.skip("no run is kept")
    kept = peers.read(peers.STORE.read_text())
    assert peers.PAGE.read_text() == peers.page(kept)


def test_without_programs_it_says_how_to_get_them(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--build", str(tmp_path)]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "absent: h2load (Debian: apt-get install nghttp2-client)\n" in done.stderr
    assert done.stderr.endswith("nothing to compare\n")


@pytest.mark.calm
@pytest.mark.needs_build
@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (packages/debian.txt)")
def test_it_runs_each_program_over_each_case() -> None:
    """One short round: what is printed, not what it says of speed."""
    command = [sys.executable, str(SCRIPT), "--build", str(build_dir()), "--budget", "1s"]
    short = [
        "--seconds",
        "1",
        "--stall-seconds",
        "1",
        "--only",
        "wrk",
        "netdyno-load",
        "--cases",
        "closed loop",
        "stall",
    ]
    done = subprocess.run([*command, *short], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    for program in ("netdyno-load", "wrk"):
        assert done.stderr.count(f" closed loop, {program}: ") == 1
        assert done.stderr.count(f" stall, {program}: ") == 1
    assert done.stderr.count("true p99") == 2
    assert "stall: p99, true" in done.stdout
