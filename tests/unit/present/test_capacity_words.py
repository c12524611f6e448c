"""The result of a search for a capacity, in words."""

from __future__ import annotations

import pytest

from netdyno.analysis.found.capacity import Answer, At, FailedAudits, Incomplete, Missed, NoAnswer, Overload, Reason
from netdyno.model import objective
from netdyno.model.load_result import Audit
from netdyno.present.prose import capacity
from netdyno.verbs.capacity import is_answered

ASKED = objective.parse("p99<5ms,lost<0.1%", "")
P99, LOST = ASKED.terms


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (None, ""),
        (Incomplete("it died"), "it died"),
        (NoAnswer(), "nothing was answered"),
        (Overload(9_000, 10_000), "overload: 9.00k/s answered of 10.0k/s offered"),
        (
            FailedAudits(tuple(Audit(name=name, passed=False, detail="so it was") for name in ("steal", "canary"))),
            "steal: so it was; canary: so it was",
        ),
        (
            Missed(((P99, 6.125e6), (LOST, 0.011)), None, 0.001),
            "p99 6.12 ms, not below 5 ms; lost 1.1%, not below 0.1%",
        ),
        (Missed((), 0.02, 0.001), "lost 2%, more than 0.1%"),
        (Missed(((P99, 6e6),), 0.02, 0.001), "p99 6.00 ms, not below 5 ms; lost 2%, more than 0.1%"),
    ],
)
def test_a_reason_is_one_line_with_its_figures(why: Reason | None, words: str) -> None:
    assert capacity.explain_failure(why) == words


def test_of_several_reasons_the_most_frequent_line_is_reported() -> None:
    """Figures with the same text are one line."""
    reasons: list[Reason] = [NoAnswer(), Overload(9_001, 10_000), Overload(9_002, 10_000), Overload(8_000, 10_000)]
    assert capacity.find_main_reason(reasons) == "overload: 9.00k/s answered of 10.0k/s offered"
    assert capacity.find_main_reason(()) == ""


@pytest.mark.parametrize(
    ("answer", "start"),
    [
        (Answer("capacity", At(400, 3, 0), At(410, 0, 3)), "a meets p99 < 5 ms and lost < 0.1% up to 400 messages/s"),
        (Answer("none", None, At(50, 0, 2)), "a does not meet p99 < 5 ms and lost < 0.1% at 50 messages/s"),
        (
            Answer("disturbed", At(400, 2, 0), None, 800.0),
            "no answer, because the machine was disturbed in every trial at 800 messages/s (it died): a meets",
        ),
        (
            Answer("broken", None, None, 800.0),
            "no answer, because no trial was completed at 800 messages/s (it died): it is unknown whether a",
        ),
    ],
)
def test_an_answer_names_the_trials_that_it_stands_on(answer: Answer, start: str) -> None:
    assert capacity.describe_answer("a", ASKED, answer, Incomplete("it died")).startswith(start)


def test_a_generator_at_its_limit_is_an_answer_only_above_a_rate_that_holds() -> None:
    assert is_answered(Answer("generator", At(400, 3, 0), None))
    assert not is_answered(Answer("generator", None, None, stopped_at=100.0))
    assert is_answered(Answer("none", None, At(100, 0, 3)))
