"""Requests and replies of servers not written for netdyno: measured as they are, and where they are wrong from the
start, a sentence within seconds."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from netdyno.measure.trial import first_requests
from netdyno.model.run import Run
from netdyno.store import read, schema
from netdyno.verbs.cli import main
from tests.support.fixtures import FAKES

pytestmark = [pytest.mark.needs_build, pytest.mark.long, pytest.mark.usefixtures("steady_canary", "undrawn")]

API = f"{shlex.join([sys.executable, '-I', '-S', str(FAKES / 'json_api.py')])} {{port}}"
QUICK = ("--duration", "100ms", "--blocks", "1", "--foreign-load", "count", "--trace", "never")


LIGHT = ("-c", "20", "--rate", "300")
"""A load that such servers carry also beside other tests: one that follows from their first replies overloads them for
seconds."""


def run(results: Path, *options: str, load: Sequence[str] = LIGHT) -> Run:
    assert main(["run", "web", *options, *load, *QUICK, "--results", str(results)]) == 0
    (folder,) = results.iterdir()
    return read.load(folder / schema.FILE_NAME)


def expect_right(whole: Run, verify: str | None) -> None:
    assert {scenario.verify for scenario in whole.experiment.scenarios} == {verify}
    for trial in whole.trials:
        assert trial.load is not None, trial.reason
        assert trial.load.messages.received > 10
        assert trial.load.messages.received == trial.load.messages.due
        assert {audit.name: audit.passed for audit in trial.audits}["verification"]


def expect_refused(
    words: Sequence[str], sentences: Sequence[str], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command is refused in one line, which has these sentences."""
    assert main([*words, "--results", str(results)]) == 2
    printed = capsys.readouterr().err
    assert [sentence for sentence in sentences if sentence not in printed] == [], printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("how", "options", "verify"),
    [
        ("", ("--path", "/api/items"), "length"),
        ("chunked", ("--path", "/api/items=3", "--path", "/api/health"), "length"),
        ("varies", ("--path", "/api/items"), "status"),
        ("", ("--path", "/api/items", "--verify", "hash"), "hash"),
        ("", ("--expect-status", "404"), "length"),
        ("", ("-d", '{"name": "new"}', "-H", "Authorization: Bearer secret", "--expect-status", "201"), "length"),
        ("line", ("--send", r"PING {sequence}\n", "--expect", "+OK"), None),
    ],
)
def test_an_ordinary_server_is_measured_as_it_is(
    tmp_path: Path, how: str, options: Sequence[str], verify: str | None
) -> None:
    expect_right(run(tmp_path, "--server", f"{API} {how}", *options), verify)


def test_a_folder_of_files_is_measured_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "page.html").write_text("hello " * 500)
    line = f"{sys.executable} -m http.server {{port}} --bind 127.0.0.1 --directory {tmp_path / 'files'}"
    whole = run(tmp_path / "results", "--server", line, "--path", "/page.html", "--path", "/")
    expect_right(whole, "length")
    assert whole.about[0].own is not None
    assert whole.about[0].own.closes, "so an open loop connects when a message is due"
    assert whole.trials[0].load is not None
    assert whole.trials[0].load.bytes.received > 3000 * whole.trials[0].load.messages.received / 2


def test_the_rate_is_one_that_the_slowest_server_can_carry(tmp_path: Path) -> None:
    servers = ("--server", API, "--as", "usual", "--server", f"{API} slow", "--as", "slow", "--path", "/api/items")
    most, same_rate = run(tmp_path, *servers, load=()).experiment.scenarios
    assert (most.rate, most.rate_for, same_rate.rate_for) == (None, "", "slow")
    assert same_rate.rate is not None
    assert same_rate.rate <= 0.6 * 200


def test_the_load_of_the_command_line_is_taken_as_it_is(tmp_path: Path) -> None:
    whole = run(tmp_path, "--server", f"{API} slow", "--path", "/api/items", load=("-c", "3", "--rate", "150"))
    for scenario in whole.experiment.scenarios:
        assert (scenario.connections, scenario.rate in (None, 150.0), scenario.rate_for) == (3, True, "")


WRONG: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    (
        "",
        (),
        (
            "Sent: GET / HTTP/1.1",
            "Expected: a whole reply of HTTP/1.1 with status 2xx. Came: HTTP/1.1 404 Not Found",
        ),
    ),
    ("", ("--path", "/api/items", "--path", "/none"), ("Sent: GET /none HTTP/1.1",)),
    ("", ("--path", "/api/items", "-X", "DELETE"), ("--method requests it in another way; --expect-status 501",)),
    ("moved", (), ("--path /api/items requests what it redirects to; --expect-status 301 accepts it",)),
    ("mute", ("--path", "/api/items"), ("Came: nothing (no answer in time). No option accepts silence",)),
    ("line", (), (r"Came: +OK\n", "--send, and --expect, are for another protocol than http")),
    ("line", ("--send", r"PING\n", "--expect", "+PONG"), (r"--expect '+OK\n",)),
    ("line", ("--send", r"PING\n", "--reply-until", "."), ("says where such a reply ends",)),
    ("single", ("--path", "/api/items"), ("answers 1 connection at a time: the other ", "; -c 1 loads only that many")),
    ("", ("--verify", "echo"), ("Expected: status 200, and a body that repeats the URL",)),
]
WRONG_IN_A_GATE = [WRONG[0], *(wrong for wrong in WRONG if "+PONG" in wrong[1])]
"""A gate sends the same first requests; what differs is that both of its servers have to be wrong."""


@pytest.mark.parametrize(
    ("verb", "how", "options", "sentences"),
    [*(("run", *wrong) for wrong in WRONG), *(("gate", *wrong) for wrong in WRONG_IN_A_GATE)],
)
def test_what_is_wrong_from_the_start_ends_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    how: str,
    options: Sequence[str],
    sentences: Sequence[str],
) -> None:
    if how in ("mute", "single"):  # which are waited for to the end
        monkeypatch.setattr(first_requests, "LONGEST_WAIT_S", first_requests.LEAST_WAIT_S)
    line = f"{API} {how}"
    servers = ("--server", line) if verb == "run" else ("--before", line, "--after", line)
    expect_refused([verb, "web", *servers, *options, "--duration", "100ms"], sentences, tmp_path, capsys)
    assert not list(tmp_path.glob(f"*/{schema.FILE_NAME}"))


def test_a_gate_of_servers_with_different_replies_ends_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ("--before", API, "--after", f"{API} fewer")
    code = main(["gate", "web", *servers, "--path", "/api/items", "--duration", "100ms", "--results", str(tmp_path)])
    printed = capsys.readouterr().err
    assert code == 2
    assert re.search(r"before and after answer /api/items differently: \d+ bytes and \d+ bytes", printed)
    assert printed.count("\n") == 1


def test_a_body_that_was_to_stay_fails_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    servers = ("--before", API, "--after", f"{API} fewer")
    assert main(["gate", "web", *servers, "--path", "/api/items", "--verify", "hash", "--results", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert re.search(r"answer /api/items differently: \d+ bytes with the hash \w+ and", printed)
    assert printed.count("\n") == 1


def test_a_gate_fails_where_no_reply_is_right_any_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    servers = ("--before", API, "--after", f"{API} warms", "--path", "/api/items", "--duration", "100ms")
    assert main(["gate", "web", *servers, "--time-budget", "60s", "--results", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    sentence = "after has no right reply to the first requests. Sent: GET /api/items HTTP/1.1"
    assert sentence in printed.out or sentence in printed.err
    assert re.search(r"\nmost: Sent: GET /api/items .* Came: HTTP/1.1 503 Service Unavailable", printed.out)
    assert "--expect-status 503 accepts it." in printed.out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--path", "/x"), "--path is for your own servers; add --server or --address"),
        (("--server", API, "--path", "x"), "'x' is not a path"),
        (("--server", API, "--path", "/x", "--send", "a"), "--path is for http, and --send is not"),
        (("--server", API, "--expect", "a"), "--expect goes with --send"),
        (("--server", API, "--path", "/x", "--verify", "echo"), "--verify echo: each request has a URL of its own"),
        (
            ("--server", API, "--path", "/x", "--contestant", "epoll-reactor"),
            "--path: epoll-reactor can only repeat the URL of a request",
        ),
        (("--server", API, "-d", "@/nowhere"), "--data: /nowhere cannot be read"),
        (("--server", API, "-H", "Content-Length: 3"), "the length of the body follows from the data"),
        (("--server", API, "--send", "a", "--workload", "echo"), "--send says what is sent; leave --workload out"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: Sequence[str], sentence: str
) -> None:
    expect_refused(["run", "web", *options], [sentence], tmp_path, capsys)
