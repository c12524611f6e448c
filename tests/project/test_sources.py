"""The five studies, as a closed world: every claim that they publish has a test, and each study its experiment."""

from __future__ import annotations

from typing import cast, get_args

import msgspec
import pytest

from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Budget
from netdyno.model.levels import combinations
from netdyno.question import experiment
from netdyno.question.contestants.contestants import discover
from netdyno.question.contestants.programs import PROGRAMS
from netdyno.question.plan import estimate_seconds, explain_skip
from tests.support.studies import FOLDER, load_study

STUDIES = {
    "asio-vs-qt": "A1 A2 A3 A4 A5 A6 A8 A7",
    "chatroom-backlog": "B1 B2 B3 B4 B5 B6 B7 B8",
    "realtime-broadcast": "C1 C2 C3 C4 C5 C6 C7 C8 C9",
    "asio-vs-folly": "D1 D2 D3 D4 D5",
    "sync-vs-async": "E1 E2 E3 E4 E5 E6",
}
"""The claims of each source, as its authors number them in this project."""
ABOUT_S = {"smoke": (45, 350), "normal": (500, 1300)}
"""Around three minutes and fifteen: what a person who types --budget expects."""


def clients() -> dict[str, Contestant]:
    return {
        client.name: msgspec.structs.replace(client, available=True, why_not="") for client in discover(kind="client")
    }


@pytest.mark.parametrize(("name", "claims"), STUDIES.items())
def test_each_study_asks_all_of_its_claims_and_no_other(name: str, claims: str) -> None:
    assert [claim.id for claim in load_study(name).claims] == claims.split()


def test_no_other_experiment_claims_to_be_a_study() -> None:
    rest = [name for name in experiment.list_names(FOLDER) if name not in STUDIES]
    assert {name: load_study(name).claims for name in rest if name != "sources"} == {
        name: () for name in rest if name != "sources"
    }


@pytest.mark.parametrize("budget", get_args(Budget))
def test_sources_is_all_of_them(budget: str) -> None:
    together = load_study("sources", cast(Budget, budget))
    assert together.parts == tuple(STUDIES)
    assert [claim.id for claim in together.claims] == " ".join(STUDIES.values()).split()
    parts = [load_study(name, cast(Budget, budget)) for name in STUDIES]
    assert [scenario.blocks for scenario in together.scenarios] == [
        scenario.blocks for part in parts for scenario in part.scenarios
    ]


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("budget", ABOUT_S)
def test_each_size_takes_about_its_time(name: str, budget: str) -> None:
    """Without the programs of others, which are rarely installed."""
    least, most = ABOUT_S[budget]
    servers = {
        server.name: msgspec.structs.replace(
            server, available=not PROGRAMS.keys() & set(server.manifest.needs), why_not="x"
        )
        for server in discover()
    }
    assert least <= estimate_seconds(load_study(name, cast(Budget, budget)), servers, clients()) <= most


@pytest.mark.parametrize("name", STUDIES)
def test_no_cell_is_skipped_because_its_server_lacks_an_option(name: str) -> None:
    servers = {server.name: msgspec.structs.replace(server, available=True, why_not="") for server in discover()}
    skipped = {
        f"{scenario.name}: {reason}"
        for scenario in load_study(name).scenarios
        for levels in combinations(scenario)
        for server in scenario.contestants
        if "option" in (reason := explain_skip(servers[server], scenario, levels, clients()))
    }
    assert skipped == set()


@pytest.mark.parametrize("name", STUDIES)
def test_the_published_grid_is_the_full_one(name: str) -> None:
    normal, full = load_study(name), load_study(name, "full")
    for scenario, full_scenario in zip(normal.scenarios, full.scenarios, strict=True):
        assert full_scenario.duration_s >= scenario.duration_s
        for factor, levels in scenario.factors.items():
            assert len(full_scenario.factors[factor]) >= len(levels)


def deliveries(name: str, budget: str = "normal") -> dict[str, object]:
    """How the servers deliver in each chat of an experiment, by its scenario."""
    return {
        scenario.name: scenario.factors.get(
            "deliveries", {**scenario.where_possible, **scenario.server}.get("deliveries")
        )
        for scenario in load_study(name, cast(Budget, budget)).scenarios
        if scenario.workload == "chat" and set(scenario.contestants) != {"zeromq-coroutines"}
    }


@pytest.mark.parametrize("budget", get_args(Budget))
def test_the_sources_chats_are_delivered_as_theirs_were(budget: str) -> None:
    assert set(deliveries("chatroom-backlog", budget).values()) == {"single"}
    of_c = deliveries("realtime-broadcast", budget)
    assert of_c.pop("deliveries") == ("single", "joined")
    assert set(of_c.values()) == {"single"}


@pytest.mark.parametrize(("name", "mode"), [("realtime-smoke", "single"), ("quick", "joined"), ("modern", "joined")])
def test_an_experiment_with_a_chat_says_how_it_is_delivered(name: str, mode: str) -> None:
    assert set(deliveries(name).values()) == {mode}
