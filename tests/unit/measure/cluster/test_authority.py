"""The address of a cluster's scheduler, read from a file that a person may have edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdyno.kit.errors import UserError
from netdyno.measure.cluster import authority
from netdyno.verbs.cluster import parse_cores


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('scheduler = "tcp://10.0.0.1:8786"', "transport 'tcp' is not supported, only tls"),
        ('scheduler = "10.0.0.1"', "is no URL; want e.g. tls://10.0.0.1:8786"),
        ("scheduler = 8786", "must be an address"),
        ("", "must be an address"),
        ("scheduler =", "not valid TOML"),
    ],
)
def test_an_address_that_is_none_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / authority.TOPOLOGY).write_text(text)
    with pytest.raises(UserError, match=complaint):
        authority.read_scheduler(tmp_path)


def test_a_folder_that_has_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ca-key.pem").write_text("of another cluster")
    with pytest.raises(UserError, match="is not empty"):
        authority.create(tmp_path, "tls://127.0.0.1:8786")
    assert (tmp_path / "ca-key.pem").read_text() == "of another cluster"


def test_a_role_without_its_files_reads_which(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    with pytest.raises(UserError, match=r"server\.pem is missing"):
        authority.find_files(tmp_path, "server")


def test_cores_are_read_as_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3, 7})
    assert parse_cores("7,1-3") == (1, 2, 3, 7)
    with pytest.raises(UserError, match="there is no core 4"):
        parse_cores("3-4")
    with pytest.raises(UserError, match="there is no core 4"):
        parse_cores("1-99999999999999")
    with pytest.raises(UserError, match="'3-1' ends before it begins"):
        parse_cores("3-1")
    with pytest.raises(UserError, match="must be cores such as"):
        parse_cores("1,")
