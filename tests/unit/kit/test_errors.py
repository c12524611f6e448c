"""An error is a line that a person can read, however long the value is that it is about."""

from __future__ import annotations

import pytest

from netdyno.kit.errors import MOST_SHOWN, UserError, did_you_mean
from netdyno.verbs import cli


def test_the_middle_of_a_long_value_is_left_out() -> None:
    shown = str(UserError(f"x.toml: key 'size': {'1' * 1_000_000} is above 9: take less"))
    assert len(shown) == MOST_SHOWN
    assert shown.startswith("x.toml: key 'size': 111")
    assert f"[... {1_000_042 - MOST_SHOWN} characters ...]" in shown
    assert shown.endswith("111 is above 9: take less")


def test_a_long_word_is_near_to_none() -> None:
    assert did_you_mean("x" * 1_000_000, ["echo"]) == " (there are: echo)"


def test_a_long_argument_is_not_repeated_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", f"--{'x' * 100_000}"]) == 2
    assert len(capsys.readouterr().err) < 2 * MOST_SHOWN
