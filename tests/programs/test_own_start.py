"""How an ordinary server is started and reached: slowly, in its own folder and environment, over TLS, at a file, or at
the address of one that runs already."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from netdyno.model.run import Run
from netdyno.question.contestants import stand_in
from tests.programs.test_own_requests import API, expect_refused, expect_right, run
from tests.support.certificates import make_authority
from tests.support.fixtures import FAKES

pytestmark = [pytest.mark.needs_build, pytest.mark.long, pytest.mark.usefixtures("steady_canary", "undrawn")]

ITEMS = ("--path", "/api/items")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options that give a server a certificate."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = make_authority(folder)
    if authority is None:
        pytest.skip("openssl is not installed")
    authority.sign("localhost")
    return ("--env", f"CERTIFICATE={folder / 'localhost.pem'}", "--env", f"KEY={folder / 'localhost.key'}")


def test_it_is_loaded_when_its_path_answers(tmp_path: Path) -> None:
    whole = run(tmp_path, "--server", f"{API} warms", *ITEMS, "--ready-path", "/api/health")
    expect_right(whole, "length")


def test_it_has_its_folder(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "page.html").write_text("hello")
    line = f"{sys.executable} -m http.server {{port}} --bind 127.0.0.1"
    whole = run(tmp_path / "results", "--server", line, "--directory", str(tmp_path / "files"), "--path", "/page.html")
    expect_right(whole, "length")


def test_it_speaks_tls(tmp_path: Path, certificate: tuple[str, ...]) -> None:
    whole = run(tmp_path, "--server", API, *certificate, "--tls", *ITEMS, "--ready-path", "/api/health")
    expect_right(whole, "length")
    assert all(trial.load is not None and trial.load.tls for trial in whole.trials)


def test_it_listens_at_a_file(tmp_path: Path) -> None:
    place = f"{tmp_path}/api-{{port}}"
    line = f"{shlex.join([sys.executable, '-I', '-S', str(FAKES / 'json_api.py')])} {place} at-{{port}}"
    whole = run(tmp_path / "results", "--server", line, "--unix-socket", place, *ITEMS)
    expect_right(whole, "length")
    assert all(trial.load is not None and f" by {tmp_path}/api-" in trial.load.plan.url for trial in whole.trials)


@contextmanager
def running(place: str, *how: str, env: Sequence[str] = ()) -> Iterator[None]:
    """The API, started by another program."""
    command = ["env", *env, sys.executable, "-I", "-S", str(FAKES / "json_api.py"), place, *how]
    is_file = "/" in place
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            while not stand_in.try_connect("127.0.0.1", 0 if is_file else int(place), place if is_file else ""):
                assert process.poll() is None
            yield
        finally:
            process.kill()


def expect_observed(whole: Run) -> None:
    """Of a disturbed trial the server may not have been read."""
    valid = [trial for trial in whole.trials if trial.status == "valid"]
    assert valid
    assert all(trial.server is not None and trial.server.cpu_s > 0 for trial in valid)


def test_it_runs_already_at_an_address_of_http(tmp_path: Path) -> None:
    port = stand_in.find_free_port("127.0.0.1")
    with running(str(port), "named"):
        whole = run(tmp_path, "--address", f"http://localhost:{port}", *ITEMS)
    expect_right(whole, "length")
    expect_observed(whole)


def test_it_runs_already_at_an_address_of_https(tmp_path: Path, certificate: tuple[str, ...]) -> None:
    port = stand_in.find_free_port("127.0.0.1")
    with running(str(port), env=[word for word in certificate if word != "--env"]):
        whole = run(tmp_path, "--address", f"https://localhost:{port}/", *ITEMS)
    expect_right(whole, "length")


def test_it_runs_already_at_a_file(tmp_path: Path) -> None:
    with running(f"{tmp_path}/api"):
        whole = run(tmp_path / "results", "--address", "http://localhost", "--unix-socket", f"{tmp_path}/api", *ITEMS)
    expect_right(whole, "length")
    expect_observed(whole)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--server", f"{API} warms", "--ready-path", "/none", "--ready-timeout", "4s"),
            "/none does not answer 2xx at",
        ),
        (("--server", API, "--tls"), "what the server answers is no TLS"),
        (("--server", "sh -c 'sleep 0.1 # {port}'"), "a server has to stay in the foreground"),
        (("--server", API, "--directory", "/nowhere"), "/nowhere is no folder"),
        (("--server", API, "--env", "PORT"), "'PORT' is no variable: write NAME=VALUE"),
        (("--server", API, "--unix-socket", "/tmp/mine"), "write {port} in its name"),
        (("--address", "http://127.0.0.1:1/items"), "add --path /items"),
        (("--address", "ftp://127.0.0.1:1"), "write http://HOST[:PORT], https://HOST[:PORT] or tcp://HOST:PORT"),
        (("--address", "http://127.0.0.1:1", "--env", "A=1"), "--env is for a server that netdyno starts (--server)"),
        (("--tls",), "--tls is for your own servers; add --server or --address"),
    ],
)
def test_what_cannot_be_started_or_reached_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: Sequence[str], sentence: str
) -> None:
    expect_refused(["run", "web", *options], [sentence], tmp_path, capsys)
