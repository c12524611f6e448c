"""What the server's cores and threads let a comparison show, and the sentence that says it."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from netdyno.analysis.found.ground import Ground
from netdyno.analysis.ranking.cells import compute_figures
from netdyno.analysis.trials.ground import describe_ground
from netdyno.model.contestant import About, Own
from netdyno.model.experiment import Scenario
from netdyno.model.observation import Pinning
from netdyno.model.trial import Trial
from netdyno.present.prose.ground import describe_load_shares, list_caveats
from tests.support.builders.made_load import changed, load, observed

SCENARIO = Scenario(name="s", workload="echo")
Model = Literal["any", "one", "per-connection"]
MODELS: dict[str, Model] = {"asio": "any", "epoll": "one", "folly": "any", "locks": "per-connection"}
ABOUT = tuple(About(kind="server", name=name, threads=model) for name, model in MODELS.items())


def trial(contestant: str, cores: int, **more: object) -> Trial:
    fields: dict[str, object] = {"levels": {}, "added": {}} | more
    pinning = Pinning(server=tuple(range(cores)), generator=(9,) if cores else (), note="")
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
    return describe_ground(scenario, trials, ABOUT)


def together(level_ground: Ground) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    return [(group.cores, group.contestants) for group in level_ground.together]


def test_one_core_shows_no_contention_whatever_threads_run() -> None:
    result = ground(*(trial(name, 1) for name in MODELS))
    assert (result.server_cores, result.parallel) == ((1,), False)
    assert together(result) == [((1,), tuple(sorted(MODELS)))]
    (sentence,) = list_caveats(result)
    assert sentence == (
        "The server had one core: lock contention and parallel work cannot show here; asio and folly ran one "
        "thread, the default on any machine; epoll ran one thread, by design; locks ran a thread for each "
        "connection."
    )


def test_a_server_that_runs_one_thread_beside_others_on_several_cores_is_named() -> None:
    result = ground(trial("asio", 4), trial("epoll", 4), trial("folly", 4, added={"threads": 4}), trial("locks", 4))
    assert result.parallel
    assert together(result) == [((4,), ("folly", "locks")), ((1,), ("asio", "epoll"))]
    first, second = list_caveats(result)
    assert first.startswith("The server had 4 cores; asio ran one thread, the default on any machine; epoll ")
    assert "; folly ran 4 threads; " in first
    assert second == (
        "folly and locks could use 4 cores; asio and epoll could use one core: servers that could use different "
        "numbers of cores are not ranked together (server-cores = 1 gives one core to all; "
        'threads = "cores" gives asio a thread for each core).'
    )


def test_idle_connections_keep_no_core_at_work() -> None:
    trials = (trial("asio", 4, added={"threads": 4}), trial("epoll", 4))
    assert together(ground(*trials)) == [((4,), ("asio",)), ((1,), ("epoll",))]
    idle = replace(SCENARIO, busy_connections=1)
    assert together(ground(*trials, scenario=idle)) == [((1,), ("asio", "epoll"))]


def test_on_one_core_for_both_sides_the_sentence_says_that_they_share_it() -> None:
    result = describe_ground(SCENARIO, [trial("asio", 0)], ABOUT, cores_allowed=1)
    (sentence,) = list_caveats(result)
    assert sentence.startswith(
        "Server and generator shared one core: every figure of the server includes the generator's work, and "
        "lock contention and parallel work cannot show here; asio ran one thread"
    )


def test_on_shared_cores_a_server_may_use_all_of_them_and_what_the_load_took_is_reported() -> None:
    both = Pinning(server=(0, 1), generator=(0, 1), note="")
    result = describe_ground(SCENARIO, [replace(trial("locks", 1), pinning=both)], ABOUT)
    assert (result.server_cores, result.parallel, result.shared) == ((2,), True, True)
    assert together(result) == [((2,), ("locks",))]
    (sentence,) = list_caveats(result)
    assert sentence == (
        "Server and generator shared 2 cores: every figure of the server includes the generator's work; locks ran "
        "a thread for each connection."
    )
    cells = [
        compute_figures(name, level, [(trial(name, 1), changed(load(), "generator.cores_used", used))], 1)
        for name, level, used in (("locks", "few", 0.31), ("locks", "many", 0.62), ("asio", "few", 0.4))
    ]
    assert describe_load_shares(result, cells) == (
        "Of the shared cores, the generator itself used 0.31 to 0.62 with locks and 0.40 with asio.",
    )
    assert describe_load_shares(ground(trial("locks", 1)), cells) == ()


def test_a_connection_is_served_by_one_thread_at_a_time() -> None:
    """So one client alone puts all models on the same ground, whatever threads they have."""
    single = Scenario(name="s", workload="echo", connections=1)
    result = ground(trial("asio", 4, added={"threads": 4}), trial("epoll", 4), trial("locks", 4), scenario=single)
    assert together(result) == [((1,), ("asio", "epoll", "locks"))]


def test_ground_is_level_where_it_is_at_every_level_that_both_were_run_at() -> None:
    by_clients = Scenario(name="s", workload="echo", factors={"connections": (1, 100)})
    few, many = {"connections": 1}, {"connections": 100}
    result = ground(
        *(trial(name, 4, levels=levels) for name in ("epoll", "locks") for levels in (few, many)),
        trial("folly", 4, levels=many, added={"threads": 4}),
        scenario=by_clients,
    )
    assert together(result) == [((1, 4), ("folly", "locks")), ((1,), ("epoll",))]


def test_those_that_have_another_to_be_compared_with_come_first() -> None:
    result = ground(trial("asio", 4, levels={}), trial("epoll", 4), trial("locks", 4))
    assert together(result) == [((1,), ("asio", "epoll")), ((4,), ("locks",))]


def test_a_server_of_ones_own_may_use_all_its_cores_unless_it_is_one_thread() -> None:
    own = About(kind="server", name="own", own=Own(command="own", workload="echo"))

    def cores(threads: int) -> tuple[int, ...]:
        seen = trial("own", 4, server=replace(observed(), threads=threads))
        (group,) = describe_ground(SCENARIO, [seen], [own]).together
        return group.cores

    assert (cores(1), cores(9)) == ((1,), (4,))


def test_of_a_server_that_stands_already_none_knows_its_cores() -> None:
    there = About(kind="server", name="there", own=Own(command="", workload="echo", address="tcp://192.0.2.1:80"))
    result = describe_ground(SCENARIO, [trial("there", 0)], [*ABOUT, there], cores_allowed=2)
    assert list_caveats(result) == ()


def test_where_all_are_alike_they_are_ranked_together() -> None:
    assert together(ground(trial("asio", 4), trial("epoll", 4))) == [((1,), ("asio", "epoll"))]
    alike = ground(trial("folly", 4, added={"threads": 4}), trial("locks", 4))
    assert together(alike) == [((4,), ("folly", "locks"))]


def test_a_number_is_the_cells_or_what_the_harness_added() -> None:
    def counts(scenario: Scenario, sample: Trial) -> tuple[int, ...]:
        (ran,) = ground(sample, scenario=scenario).threads
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
    assert list_caveats(several) == ("The server had 4 cores; asio ran 2 or 4 threads.",)


def test_a_server_that_was_skipped_ran_nothing() -> None:
    skipped = replace(trial("folly", 4, added={"threads": 4}), status="skipped", pinning=None)
    assert [ran.contestant for ran in ground(trial("asio", 4), skipped).threads] == ["asio"]


def test_what_a_run_does_not_tell_is_not_stated() -> None:
    unpinned = trial("asio", 0)
    assert describe_ground(SCENARIO, [unpinned], ABOUT, cores_allowed=8).server_cores == (8,)
    assert describe_ground(SCENARIO, [unpinned], ABOUT).server_cores == ()
    assert list_caveats(describe_ground(SCENARIO, [unpinned], ABOUT)) == ()
    before = describe_ground(SCENARIO, [trial("asio", 1)], [About(kind="server", name="asio")])
    assert list_caveats(before) == ("The server had one core: lock contention and parallel work cannot show here.",)
