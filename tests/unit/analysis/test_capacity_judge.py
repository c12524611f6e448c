"""What a trial says of an objective: the cause of a failure decides whether the trial counts."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from netdyno.analysis.capacity.judge_capacity import Verdict, judge_capacity
from netdyno.analysis.found.capacity import FailedAudits, Incomplete, Missed, NoAnswer, Overload
from netdyno.model import objective
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.observation import MachineObservation
from netdyno.model.trial import Status, Trial
from tests.support.builders.made_run import SCENARIOS, load_result

OPEN = SCENARIOS[2]
OBJECTIVE = objective.parse("p99<5ms", "")
RATE = 10_000


def load(completed_share: float = 1.0, median_ns: float = 1e6) -> LoadResult:
    return load_result(OPEN, {"rate": RATE}, RATE * completed_share, median_ns, 0.5, np.random.default_rng(1))


def trial(result: LoadResult | None, *failed: str, status: Status = "valid", reason: str = "") -> Trial:
    return Trial(
        block=1,
        position=0,
        scenario=OPEN.name,
        contestant="one",
        levels={"rate": RATE},
        status="struck_out" if failed else status,
        reason=reason,
        started_at="",
        seconds=1.0,
        load=result,
        audits=tuple(Audit(name=name, passed=False, detail="so it was") for name in failed),
    )


def outcome(attempt: Trial) -> Verdict:
    return judge_capacity(attempt, OBJECTIVE, OPEN)


def so_it_was(audit: str) -> FailedAudits:
    return FailedAudits((Audit(name=audit, passed=False, detail="so it was"),))


def test_a_trial_below_the_limit_holds_and_one_above_says_by_how_much() -> None:
    assert outcome(trial(load())) == ("held", None)
    kind, why = outcome(trial(load(median_ns=4e6)))
    assert kind == "failed"
    assert isinstance(why, Missed)
    ((term, value),) = why.terms
    assert (term.name, term.limit, why.lost) == ("p99", 5e6, None)
    assert 10e6 < value < 20e6


def test_an_overload_fails_even_where_the_latency_holds() -> None:
    kind, why = outcome(trial(load(completed_share=0.9)))
    assert kind == "failed"
    assert isinstance(why, Overload)
    assert why.answered_hz == pytest.approx(9_000, rel=0.01)
    assert why.offered_hz == RATE


def test_what_chance_leaves_out_is_no_overload() -> None:
    assert outcome(trial(load(completed_share=0.985)))[0] == "held"


@pytest.mark.parametrize("audit", ["verification", "bytes", "connections", "server_alive", "died", "stalled"])
def test_a_wrong_answer_is_no_answer(audit: str) -> None:
    assert outcome(trial(load(), audit)) == ("failed", so_it_was(audit))


@pytest.mark.parametrize("audit", ["steal", "foreign_load", "harness_quiet", "observation", "link", "canary"])
def test_what_the_machine_did_is_no_fault_of_the_server(audit: str) -> None:
    assert outcome(trial(load(), audit)) == ("disturbed", so_it_was(audit))
    assert outcome(trial(load(completed_share=0.5), audit))[0] == "disturbed"


@pytest.mark.parametrize("audit", ["generator", "achieved_rate"])
def test_what_the_generator_did_is_no_fault_of_the_server(audit: str) -> None:
    assert outcome(trial(load(completed_share=0.5), audit)) == ("generator", so_it_was(audit))


def test_a_generator_that_others_keep_from_its_core_is_late_and_not_at_its_limit() -> None:
    """With --foreign-load count no audit of the machine fails. Its lag is in the times: what holds with it holds."""
    busy = MachineObservation(cores=2, window_s=1.0, steal_s=0.0, own_s=0.5, foreign_s=1.2, switches=0)

    def judge_beside(result: LoadResult) -> Verdict:
        return outcome(msgspec.structs.replace(trial(result, "generator"), machine=busy))

    assert judge_beside(load()) == ("held", None)
    assert judge_beside(load(median_ns=4e6)) == ("disturbed", so_it_was("generator"))
    assert judge_beside(load(completed_share=0.5))[0] == "failed", "the messages were sent, and not answered"
    spent = msgspec.structs.replace(load().generator.threads[0], cpu_user_s=0.95 * load().plan.duration_s, spun_s=0.0)
    full = msgspec.structs.replace(load(), generator=msgspec.structs.replace(load().generator, threads=(spent,)))
    assert judge_beside(full)[0] == "generator"


def test_answers_that_were_held_up_in_the_warm_up_are_not_the_generators_fault() -> None:
    result = load()
    late = msgspec.structs.replace(result, requests=msgspec.structs.replace(result.requests, completed=RATE * 2 + 500))
    assert outcome(trial(late, "achieved_rate"))[0] == "disturbed"


def test_a_server_that_answers_nothing_is_not_blamed_on_the_generator() -> None:
    result = load()
    no_responses = msgspec.structs.replace(
        result.latency.response_ns, count=0, mean=0.0, p50=0, p90=0, p99=0, p999=0, max=0
    )
    requests = msgspec.structs.replace(result.requests, completed=0, per_second=0.0)
    mute = msgspec.structs.replace(
        result, requests=requests, latency=msgspec.structs.replace(result.latency, response_ns=no_responses)
    )
    assert outcome(trial(mute, "generator")) == ("failed", Overload(0, RATE))
    few = msgspec.structs.replace(mute, plan=msgspec.structs.replace(mute.plan, rate_hz=5.0))
    assert outcome(trial(few, "generator")) == ("failed", NoAnswer())


def test_a_server_that_closes_every_connection_fails_and_no_generator() -> None:
    result = load(completed_share=0.1)
    closed = msgspec.structs.replace(
        result, errors=result.errors | {"closed_by_server": result.connections.established}
    )
    assert outcome(trial(closed, "achieved_rate", "connections")) == ("failed", so_it_was("connections"))


def test_a_trial_with_an_audit_that_is_not_known_here_does_not_count() -> None:
    assert outcome(trial(load(), "something_new"))[0] == "disturbed"


def test_a_trial_that_the_machine_ended_early_does_not_count() -> None:
    lost = msgspec.structs.replace(trial(load(), "steal"), load=None, status="struck_out")
    assert outcome(lost) == ("disturbed", so_it_was("steal"))


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_a_trial_without_figures_does_not_count_and_says_why(status: Status) -> None:
    assert outcome(trial(None, status=status, reason="it died")) == ("broken", Incomplete("it died"))


def over_udp(share: float) -> LoadResult:
    result = load()
    counts = msgspec.structs.replace(result.messages, expected=20_000, lost=round(20_000 * share))
    plan = msgspec.structs.replace(result.plan, url="udp://127.0.0.1:7000")
    return msgspec.structs.replace(result, messages=counts, plan=plan)


def test_loss_that_none_speaks_of_has_the_bound_of_the_scenario() -> None:
    assert outcome(trial(over_udp(OPEN.loss_bound)))[0] == "held"
    assert outcome(trial(over_udp(0.02))) == ("failed", Missed((), 0.02, OPEN.loss_bound))
    allowing = objective.parse("p99<5ms,lost<5%", "")
    assert judge_capacity(trial(over_udp(0.02)), allowing, OPEN).outcome == "held"
