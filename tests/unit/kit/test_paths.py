"""The choice of the build that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT, build_dir


@pytest.mark.parametrize(
    ("build", "preset", "expected"),
    [
        ("", "", ROOT / "build" / "release"),
        ("", "asan", ROOT / "build" / "asan"),
        ("/elsewhere", "asan", Path("/elsewhere")),
    ],
)
def test_the_build_is_that_of_the_preset(
    build: str, preset: str, expected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETDYNO_BUILD", build)
    monkeypatch.setenv("NETDYNO_PRESET", preset)
    assert build_dir() == expected
