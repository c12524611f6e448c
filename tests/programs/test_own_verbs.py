"""Each verb measures servers of one's own, also at the levels of a knob; what is wrong from the start ends there."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from netdyno.store import read, schema
from netdyno.verbs.cli import main
from tests.programs.test_own_requests import API, expect_refused

pytestmark = [pytest.mark.needs_build, pytest.mark.long, pytest.mark.usefixtures("steady_canary")]

KNOB = ("--server", f"{API} {{how}}", "--vary", "how=plain,chunked", "--path", "/api/items")
COUNTED = ("--foreign-load", "count")
SEARCH = ("--objective", "mean<5s", "--duration", "100ms", "--warmup", "0ms", "--needed", "1", *COUNTED)
QUICK = ("--duration", "100ms", "--blocks", "1", *COUNTED, "--trace", "never")


@pytest.mark.usefixtures("undrawn")
def test_a_capacity_is_searched_at_each_level_of_a_knob(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = ("--start", "100", "--most", "110", "--resolution", "0.2", "-c", "4")
    code = main(["capacity", *KNOB, *SEARCH, *bounds, "--results", str(tmp_path), "--json"])
    captured = capsys.readouterr()
    searches = json.loads(captured.out)["searches"]
    assert [search["server"] for search in searches] == ["how=plain", "how=chunked"]
    runs = [read.load(path) for path in sorted(tmp_path.glob(f"*/{schema.FILE_NAME}"))]
    assert {run.experiment.scenarios[0].path for run in runs} == {("/api/items",)}
    # A machine that is busy enough spoils every trial.
    assert code in (0, 1)
    if code == 0:
        assert "how = plain: no other level is shown to carry more; chunked is not shown to carry more." in captured.err


@pytest.mark.usefixtures("undrawn")
def test_a_server_that_closes_after_each_reply_has_a_capacity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "index.html").write_text("hello")
    closes = f"{shlex.join([sys.executable, '-m', 'http.server'])} {{port}} --bind 127.0.0.1 --directory {tmp_path}"
    bounds = ("--start", "100", "--most", "110", "--resolution", "0.2", "-c", "4")
    words = ["--server", closes, *SEARCH, *bounds, "--results", str(tmp_path / "results"), "--json"]
    code = main(["capacity", *words])
    captured = capsys.readouterr()
    assert captured.out, captured.err
    answer = json.loads(captured.out)
    # A machine that is busy enough spoils every trial.
    assert code in (0, 1)
    assert answer["ending"] != "none"


@pytest.mark.usefixtures("undrawn")
def test_a_search_begins_below_the_rate_of_the_first_replies(tmp_path: Path) -> None:
    bounds = ("--most", "150", "--resolution", "0.2", "-c", "4")
    assert main(["capacity", "--server", API, "--path", "/api/items", *SEARCH, *bounds, "--results", str(tmp_path)]) < 2
    (path,) = tmp_path.glob(f"*/{schema.FILE_NAME}")
    run = read.load(path)
    assert run.experiment.capacity is not None
    assert 100 <= run.experiment.capacity.start_hz <= 150  # and not the usual 1000


@pytest.mark.usefixtures("undrawn")
def test_a_run_is_stored_with_the_words_that_were_typed(tmp_path: Path) -> None:
    assert main(["run", "web", *KNOB, *QUICK, "--results", str(tmp_path)]) == 0
    (path,) = tmp_path.glob(f"*/{schema.FILE_NAME}")
    run = read.load(path)
    assert {trial.contestant for trial in run.trials} == {"how=plain", "how=chunked"}
    assert run.typed == ("run", "web", *KNOB, *QUICK, "--results", str(tmp_path))


def test_advice_is_between_ones_own_servers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--connections", "4", "--time-budget", "3s", "--no-along", "--results", str(tmp_path), "--json")
    code = main(["advise", *KNOB, *options])
    advice = json.loads(capsys.readouterr().out)
    (path,) = tmp_path.glob(f"*/{schema.FILE_NAME}")
    assert set(read.load(path).experiment.scenarios[0].contestants) == {"how=plain", "how=chunked"}
    assert code in (0, 1)
    assert set(advice["take"]) <= {"how=plain", "how=chunked"}


@pytest.mark.parametrize("verb", ["capacity", "advise", "profile"])
def test_what_is_wrong_from_the_start_ends_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert main([verb, "--server", API, "--path", "/none", "--results", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert "has no right reply to the first requests. Sent: GET /none HTTP/1.1" in printed
    assert "--expect-status 404 accepts it" in printed
    assert not list(tmp_path.glob(f"*/{schema.FILE_NAME}"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("capacity",), "name a server (see: ./netdyno list servers), or start your own: --server"),
        (("capacity", "xyz"), "unknown server 'xyz' (see: ./netdyno list servers)"),
        (("capacity", "--server", f"{API} {{how}}"), "nothing fills {how}; add --vary how=LEVEL,LEVEL"),
        (("run", "web", "--vary", "how=a,b"), "--vary is for your own servers; add --server or --address"),
        (("run", "web", "--server", API, "--vary", "how=a,b"), "no --server has a place for it: write {how} there"),
        (("gate", "--vary", "how=a,b"), "--vary: a gate compares two servers"),
        (("flips", "x", "--server", API), "--server: flips reads a stored run and starts nothing"),
        (("advise", "--server", API, "--service-time", "1ms", "--waits"), "your own server does its own work"),
        (("profile", "--address", "tcp://127.0.0.1:1"), "an already running server is not profiled"),
        (
            ("advise", "--server", API, "--path", "/x", "--contestants", "epoll-reactor"),
            "can only repeat the URL of a request",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    expect_refused(words, [complaint], tmp_path, capsys)
