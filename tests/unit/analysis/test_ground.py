"""What the server's cores and threads let a comparison show, and the sentence that says it."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from netdyno.analysis.ground import Ground, ground_of
from netdyno.model.contestant import About, Own
from netdyno.model.experiment import Scenario
from netdyno.model.observation import Pinning
from netdyno.model.trial import Trial
from netdyno.present.prose.ground import sentences

SCENARIO = Scenario(name="s", workload="echo")
Model = Literal["any", "one", "per-connection"]
MODELS: dict[str, Model] = {"asio": "any", "epoll": "one", "folly": "any", "locks": "per-connection"}
ABOUT = tuple(About(kind="server", name=name, threads=model) for name, model in MODELS.items())


def trial(contestant: str, cores: int, **more: object) -> Trial:
    fields: dict[str, object] = {"levels": {}, "added": {}} | more
    pinning = Pinning(server=tuple(range(cores)), generator=(), note="")
    return Trial(
        block=1,
        position=0,
        scenario="s",
        contestant=contestant,
        status="valid",
        reason="",
        started_at="",
        seconds=1.0,
        pinning=pinning,
        **fields,  # type: ignore[arg-type]
    )


def ground(*trials: Trial, scenario: Scenario = SCENARIO) -> Ground:
    return ground_of(scenario, trials, ABOUT)


def test_one_core_shows_no_contention_whatever_threads_run() -> None:
    found = ground(*(trial(name, 1) for name in MODELS))
    assert (found.server_cores, found.parallel, found.held_to_one_core) == ((1,), False, ())
    (sentence,) = sentences(found)
    assert sentence == (
        "The server had one core: lock contention and parallel work cannot show here; asio and folly ran one thread, "
        "which is the default on any machine; epoll ran one thread, which is the model; locks ran a thread for each "
        "connection."
    )


def test_who_runs_one_thread_beside_others_on_several_cores_is_named() -> None:
    found = ground(trial("asio", 4), trial("epoll", 4), trial("folly", 4, added={"threads": 4}), trial("locks", 4))
    assert found.parallel
    assert [ran.contestant for ran in found.held_to_one_core] == ["asio", "epoll"]
    first, second = sentences(found)
    assert first.startswith("The server had 4 cores; asio ran one thread, which is the default on any machine; epoll ")
    assert "; folly ran 4 threads; " in first
    assert second == (
        "asio and epoll had the use of one core and folly and locks of several: what they differ by there is more than "
        'the model (threads = "cores" gives asio a thread for each core).'
    )


def test_of_a_server_that_stands_already_nobody_knows_its_cores() -> None:
    there = About(kind="server", name="there", own=Own(command="", workload="echo", address="tcp://192.0.2.1:80"))
    found = ground_of(SCENARIO, [trial("there", 0)], [*ABOUT, there], cores_allowed=2)
    assert sentences(found) == ()


def test_where_all_are_alike_nobody_is_held() -> None:
    assert ground(trial("asio", 4), trial("epoll", 4)).held_to_one_core == ()
    assert ground(trial("folly", 4, added={"threads": 4}), trial("locks", 4)).held_to_one_core == ()


def test_a_number_is_the_cells_or_what_the_harness_added() -> None:
    def counts(scenario: Scenario, one: Trial) -> tuple[int, ...]:
        (ran,) = ground(one, scenario=scenario).threads
        assert not ran.by_default
        return ran.counts

    varied = Scenario(name="s", workload="echo", factors={"threads": (2, "cores")})
    assert counts(varied, trial("asio", 4, levels={"threads": 2})) == (2,)
    assert counts(varied, trial("asio", 4, levels={"threads": "cores"}, added={"threads": 4})) == (4,)
    assert counts(varied, trial("epoll", 4, levels={"threads": "cores"})) == (1,)
    assert counts(Scenario(name="s", workload="echo", server={"threads": 1}), trial("asio", 4)) == (1,)
    several = ground(
        trial("asio", 4, levels={"threads": 2}),
        trial("asio", 4, levels={"threads": "cores"}, added={"threads": 4}),
        scenario=varied,
    )
    assert sentences(several) == ("The server had 4 cores; asio ran 2 or 4 threads.",)


def test_who_was_skipped_ran_nothing() -> None:
    skipped = replace(trial("folly", 4, added={"threads": 4}), status="skipped", pinning=None)
    assert [ran.contestant for ran in ground(trial("asio", 4), skipped).threads] == ["asio"]


def test_what_a_run_does_not_tell_is_not_said() -> None:
    unpinned = trial("asio", 0)
    assert ground_of(SCENARIO, [unpinned], ABOUT, cores_allowed=8).server_cores == (8,)
    assert ground_of(SCENARIO, [unpinned], ABOUT).server_cores == ()
    assert sentences(ground_of(SCENARIO, [unpinned], ABOUT)) == ()
    before = ground_of(SCENARIO, [trial("asio", 1)], [About(kind="server", name="asio")])
    assert sentences(before) == ("The server had one core: lock contention and parallel work cannot show here.",)
