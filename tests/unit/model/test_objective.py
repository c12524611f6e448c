"""Objectives: how they are written, what they are read from, and what is refused."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from netdyno.kit.errors import UserError
from netdyno.model.load_result import LoadResult, Messages
from netdyno.model.objective import parse
from tests.support.builders.made_run import SCENARIOS, load_result

OPEN = SCENARIOS[2]


def load(median_ns: float = 1e6, sigma: float = 0.5) -> LoadResult:
    return load_result(OPEN, {"rate": 10_000}, 10_000, median_ns, sigma, np.random.default_rng(1))


def losing(share: float) -> LoadResult:
    result = load()
    counts = msgspec.structs.asdict(result.messages) | {"expected": 1000, "lost": round(1000 * share)}
    return msgspec.structs.replace(result, messages=Messages(**counts))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p99<5ms", "p99 < 5 ms"),
        (" p99.9 < 20ms ", "p99.9 < 20 ms"),
        ("mean<1ms,lost<0.1%", "mean < 1 ms and lost < 0.1%"),
        ("p50<250us, p95<1s, lost<5%", "p50 < 250 µs, p95 < 1 s and lost < 5%"),
    ],
)
def test_an_objective_is_read_and_stated(text: str, shown: str) -> None:
    assert parse(text, "--objective").text == shown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "'' is no objective; write one such as 'p99<5ms'"),
        ("p99", "'p99' is no objective"),
        ("p99>5ms", "'p99>5ms' is no objective"),
        ("p99<5ms,", "'' is no objective"),
        ("p99<5", "the limit of 'p99': '5' is not a duration"),
        ("p99<0ms", "the limit of 'p99' must be above 0"),
        ("p100<5ms", "unknown figure 'p100'"),
        ("p0<5ms", "'p0' is no percentile"),
        ("meen<5ms", "unknown figure 'meen' (did you mean 'mean'?)"),
        ("lost<0.001", "the limit of 'lost' is a percentage above 0, such as 0.1%, and not '0.001'"),
        ("lost<0%", "the limit of 'lost' is a percentage above 0"),
        ("p99<5ms,p99<6ms", "'p99' has two limits"),
    ],
)
def test_what_is_no_objective_is_one_clear_line(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(text, "--objective")
    assert str(caught.value).startswith("--objective: ")
    assert complaint in str(caught.value)


@pytest.mark.parametrize("name", ["mean", "p50", "p90", "p99", "p99.9", "p95"])
def test_each_figure_is_compared_with_its_own_value(name: str) -> None:
    result = load()
    value = parse(f"{name}<1s", "").terms[0].value(result)
    assert parse(f"{name}<{value * 1.001:.0f}ns", "").broken(result) == ()
    ((term, figure),) = parse(f"{name}<{value * 0.999:.0f}ns", "").broken(result)
    assert (term.name, figure) == (name, value)


def test_percentiles_that_are_not_stored_lie_between_those_that_are() -> None:
    result = load()
    p90, p95, p99 = (parse(f"{name}<1s", "").terms[0].value(result) for name in ("p90", "p95", "p99"))
    assert p90 < p95 < p99


def test_loss_is_a_share_of_the_messages_that_should_have_come() -> None:
    objective = parse("p99<10s,lost<1%", "")
    assert objective.broken(losing(0.009)) == ()
    ((term, share),) = objective.broken(losing(0.011))
    assert term == objective.terms[1]
    assert share == pytest.approx(0.011)


def test_what_is_at_its_limit_is_not_below_it() -> None:
    objective = parse("lost<1%", "")
    assert objective.broken(losing(0.01)) == ((objective.terms[0], 0.01),)


def test_a_trial_without_an_answer_meets_nothing() -> None:
    result = load()
    empty = msgspec.structs.replace(result.latency.response_ns, count=0, mean=0.0, p99=0)
    silent = msgspec.structs.replace(result, latency=msgspec.structs.replace(result.latency, response_ns=empty))
    assert len(parse("mean<1s,p99<1s", "").broken(silent)) == 2


def test_a_percentile_needs_messages_beyond_it() -> None:
    assert parse("p99<5ms", "").least_messages() == 100
    assert parse("p50<5ms,p99.9<9ms", "").least_messages() == 1000
    assert parse("mean<5ms", "").least_messages() == 10
