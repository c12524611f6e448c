"""A flag is what its option declares: type, bounds, default and help, and its value is the option's."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from netdyno.kit.errors import UserError
from netdyno.model.values import DURATION, Option, whole, word
from netdyno.verbs.flags import GivenOptions, takes

WARMUP = Option(DURATION, "Load before.", "shared", "warm-up", "warm_up_s", default=0.3)
THREADS = Option(whole(2), "Threads.", "load", "threads", "threads")
SERVICE = Option(DURATION, "Of rpc.", "server", "service-time", "service-time")
KIND = Option(word("wait", "cpu"), "How.", "server", "service-kind", "service-kind")


def ask(*words: str) -> GivenOptions:
    options: dict[str, Any] = {}
    app = typer.Typer(add_completion=False)

    @app.command()
    @takes(WARMUP, THREADS, SERVICE, KIND)
    def command(*, given: GivenOptions) -> int:
        options.update(given)
        return 0

    assert app(args=list(words), standalone_mode=False) == 0
    return options


def test_what_is_not_given_is_the_default_or_left_out() -> None:
    assert ask() == {"warm-up": 0.3}


def test_a_duration_is_seconds_and_a_servers_option_stays_as_it_is_written() -> None:
    given = ask("--warm-up", "20ms", "--threads", "3", "--service-time", "2ms", "--service-kind", "cpu")
    assert given == {"warm-up": 0.02, "threads": 3, "service-time": "2ms", "service-kind": "cpu"}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--warm-up", "5"), "--warm-up: '5' is not a duration"),
        (("--service-time", "soon"), "--service-time: 'soon' is not a duration"),
        (("--service-kind", "wat"), r"--service-kind: 'wat' is not valid \(did you mean 'wait'\?\)"),
    ],
)
def test_what_is_no_value_is_refused_by_the_flags_name(words: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        ask(*words)


def test_a_bound_is_the_options() -> None:
    with pytest.raises(typer.TyperException, match="2"):
        ask("--threads", "1")
