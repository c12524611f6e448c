"""The level of a knob that is enough is found and said, with what the others gain or cost."""

from __future__ import annotations

from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit.quantities import MINUS
from netdyno.model.contestant import About, Own
from netdyno.model.run import Run
from netdyno.present.prose.knobs import describe_knobs
from netdyno.present.prose.scaling import describe_contestants
from netdyno.present.prose.verdict import answer
from tests.support.builders.made_run import CALLBACKS, COROUTINES, EPOLL, LOCK, made_run

TEMPLATE = "app -w {workers} {port}"


def about(name: str, template: str = TEMPLATE, **knobs: str) -> About:
    return About(kind="server", name=name, own=Own(command=name, workload="echo", template=template, knobs=knobs))


def of_scenario(name: str, servers: list[About]) -> ScenarioFindings:
    run: Run = made_run()
    (findings,) = (
        found for found in analyse(replace(run, about=tuple(servers))).scenarios if found.scenario.name == name
    )
    return findings


def test_the_first_level_that_none_is_proven_better_than_is_enough() -> None:
    findings = of_scenario("http", [about(LOCK, workers="1"), about(EPOLL, workers="2"), about(CALLBACKS, workers="4")])
    (knob,) = findings.knobs
    assert (knob.enough, knob.equal, knob.worse) == (EPOLL, (CALLBACKS,), ())
    assert knob.gain
    assert (knob.gain.a, knob.gain.b) == (EPOLL, LOCK)
    (text,) = describe_knobs(findings)
    assert text.startswith("workers = 2: throughput is 48% above that of workers = 1 [+4")
    assert text.endswith("; 4 is not proven better.")
    assert text in answer(findings).sentence


def test_a_level_that_is_worse_is_called_worse() -> None:
    findings = of_scenario("echo", [about(LOCK, workers="1"), about(EPOLL, workers="2"), about(CALLBACKS, workers="4")])
    (text,) = describe_knobs(findings)
    assert text.startswith("workers = 2: throughput is 1.77 times that of workers = 1 [1.7")
    assert text.endswith(f"; 4 is worse ({MINUS}10%).")


def test_a_grid_has_a_sentence_for_each_level_of_the_other_knob() -> None:
    findings = of_scenario(
        "echo",
        [
            about(LOCK, workers="1", pool="5"),
            about(COROUTINES, workers="2", pool="5"),
            about(CALLBACKS, workers="1", pool="9"),
            about(EPOLL, workers="2", pool="9"),
        ],
    )
    texts = {(knob.knob, knob.other_levels): knob.enough for knob in findings.knobs}
    assert texts["workers", "pool = 9"] == EPOLL
    assert texts["pool", "workers = 1"] == CALLBACKS
    assert len(texts) == 4


def test_two_servers_of_different_templates_are_no_siblings() -> None:
    servers = [about(LOCK, workers="1"), about(EPOLL, template="other {workers}", workers="2")]
    assert of_scenario("echo", servers).knobs == ()


def test_a_knob_of_numbers_is_fitted_as_cores_are() -> None:
    findings = of_scenario("echo", [about(LOCK, workers="1"), about(COROUTINES, workers="2")])
    assert {(scaling.contestant, scaling.knob) for scaling in findings.scaling} == {(LOCK, "workers")}
    assert "at workers = 2, relative to one" in describe_contestants(findings)[0]
    assert of_scenario("echo", [about(LOCK, pool="a"), about(COROUTINES, pool="b")]).scaling == ()
