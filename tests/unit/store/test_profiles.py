"""Profiles in a run's folder are read back as written; a damaged one is named in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.model.profile import Profile, Profiled
from netdyno.store import profiles

MADE = Profiled(
    question="../echo",
    load="echo, connections 20, 1 s",
    profiles=(
        Profile(server="s", sort="on-cpu", window_s=1.0, stacks={("main", "a b"): 11.0, ("main",): 3.0}, samples=4),
        Profile(server="s", sort="off-cpu", stacks={("main", "wait"): 9.0}, every=3, unnamed=("libz.so",)),
        Profile(server="gone", sort="on-cpu", missing="Folly not found"),
    ),
)
FOLDED = "profile-.._echo.s.on-cpu.folded"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    profiles.write(MADE, tmp_path, f"profile-{MADE.question}")
    return tmp_path


def test_what_is_written_is_read_back(folder: Path) -> None:
    assert profiles.read(folder) == profiles.StoredProfiles((MADE,))
    assert (folder / FOLDED).read_text() == "main 3\nmain;a b 11\n"
    assert {path.name for path in folder.iterdir()} == {
        "profile-.._echo.json",
        "profile-.._echo.s.off-cpu.folded",
        FOLDED,
    }


def test_what_cannot_be_seen_is_escaped_and_what_looks_alike_adds_up(tmp_path: Path) -> None:
    odd = Profile(server="s", sort="on-cpu", stacks={("x\ny\x1b",): 3.6, ("x\\ny\\x1b",): 2.0})
    profiles.write(Profiled(load="echo", profiles=(odd,)), tmp_path, "profile-x")
    (stored,) = profiles.read(tmp_path).questions
    assert stored.profiles[0].stacks == {("x\\ny\\x1b",): 6.0}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"main 3\nmain;a b", "is damaged: line 2 is no stack"),
        (b"main 3\nmain -1\n", "is damaged: line 2 is no stack"),
        (b"main 1" + 20 * b"0", "is damaged: line 1 is no stack"),
        (b"\xff\xfe", "is damaged: 'utf-8' codec"),
        (b"", "is empty"),
    ],
)
def test_a_damaged_file_takes_only_its_own_profile(folder: Path, content: bytes | None, complaint: str) -> None:
    if content is None:
        (folder / FOLDED).unlink()
    else:
        (folder / FOLDED).write_bytes(content)
    contents = profiles.read(folder)
    (question,) = contents.questions
    (text,) = contents.damaged
    assert text.startswith(f"{FOLDED} {complaint}")
    assert question.profiles == (replace(MADE.profiles[0], stacks={}, missing=text), *MADE.profiles[1:])


@pytest.mark.parametrize("content", [b"", b"[]", b'{"question": 3}', b"[" * 100_000, b"\x00"])
def test_where_the_list_is_damaged_the_other_questions_are_there(folder: Path, content: bytes) -> None:
    (folder / "profile-a.json").write_bytes(content)
    (folder / "profile-b.json").mkdir()
    contents = profiles.read(folder)
    assert contents.questions == (MADE,)
    assert [text.partition(":")[0] for text in contents.damaged] == [
        "profile-a.json is damaged",
        "profile-b.json cannot be read",
    ]


def test_stacks_are_read_from_the_runs_own_folder_only(folder: Path) -> None:
    (folder.parent / "secret").write_text("main 1\n")
    path = folder / "profile-.._echo.json"
    path.write_text(path.read_text().replace(FOLDED, "../secret"))
    assert profiles.read(folder).damaged == ("secret cannot be read: No such file or directory",)


@pytest.mark.parametrize("name", [FOLDED, "profile-.._echo.json"])
@pytest.mark.parametrize("kind", ["a symbolic link", "a pipe"])
def test_a_file_that_leads_elsewhere_or_would_be_waited_for_is_not_read(folder: Path, name: str, kind: str) -> None:
    elsewhere = folder / "elsewhere"
    (folder / name).rename(elsewhere)
    if kind == "a pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(elsewhere)
    assert f"{name} cannot be read: it is {kind} and no file" in profiles.read(folder).damaged


def test_a_file_that_is_larger_than_any_that_is_written_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "MOST_BYTES", 20)
    assert profiles.read(folder) == profiles.StoredProfiles(
        (), ("profile-.._echo.json is damaged: it has more than 20.0 B",)
    )
