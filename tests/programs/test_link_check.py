"""The measurements of a link are compared with what was requested, and a run prints both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdyno.measure.machine.links import lan, link_check, wan
from netdyno.measure.machine.links.link_check import (
    ATTEMPTS,
    LinkMeasurement,
    choose_rate_hz,
    describe_measurement,
    find_faults,
    judge_link,
    round_trip_s,
)
from netdyno.measure.machine.links.namespace import NotAllowedError
from netdyno.measure.machine.links.wan import Terms, Way
from netdyno.model.experiment import Experiment
from netdyno.model.observation import Pinning

FAR = Terms(delay_s=0.02, loss=0.01)
UNPINNED = Pinning(server=(), generator=(), note="")


def measured(trip_s: float | None = 0.0402, lost_there: float = 0.01, lost_back: float = 0.01) -> LinkMeasurement:
    arrived = round(4000 * (1 - lost_there))
    return LinkMeasurement(4000, arrived, round(arrived * (1 - lost_back)), trip_s, trip_s)


def test_a_link_that_gives_what_was_requested_has_no_fault() -> None:
    assert find_faults(FAR, measured()) == []
    assert find_faults(FAR, measured(trip_s=0.0439)) == []  # a tenth more
    assert find_faults(FAR, measured(lost_there=0.013, lost_back=0.006)) == []  # chance
    assert (
        find_faults(Terms(delay_s=0.001), measured(trip_s=0.0029, lost_there=0, lost_back=0)) == []
    )  # a millisecond more


@pytest.mark.parametrize(
    ("measurement", "fault"),
    [
        (measured(trip_s=0.0399), "a round trip should take 40.0 ms and it took 39.9 ms"),
        (measured(trip_s=0.0441), "a round trip should take 40.0 ms and it took 44.1 ms"),
        (measured(trip_s=None), "a round trip should take 40.0 ms and none came back"),
        (measured(lost_there=0.02), "on the way there the link should lose 1% and it lost 2%"),
        (measured(lost_back=0.0), "on the way back the link should lose 1% and it lost 0%"),
    ],
)
def test_each_way_to_be_wrong_is_reported_with_its_figures(measurement: LinkMeasurement, fault: str) -> None:
    assert find_faults(FAR, measurement) == [fault]


def test_where_nothing_is_to_be_lost_little_may_be() -> None:
    still = Terms(delay_s=0.02)
    assert find_faults(still, measured(lost_there=0.0005, lost_back=0)) == []
    assert find_faults(still, measured(lost_there=0.002, lost_back=0)) == [
        "on the way there the link should lose 0% and it lost 0.2%"
    ]


@given(st.floats(0, 10), st.one_of(st.none(), st.integers(1000, 10**10)))
def test_a_link_is_probed_no_faster_than_it_and_its_ends_can_take(delay_s: float, limit_hz: int | None) -> None:
    terms = Terms(delay_s=delay_s, rate_hz=limit_hz)
    assert 0 < choose_rate_hz(terms) <= 8000
    assert choose_rate_hz(terms) * 2 * delay_s <= 400.001
    if limit_hz:
        assert choose_rate_hz(terms) * 54 * 8 <= limit_hz
        assert round_trip_s(terms) > 2 * delay_s


def test_a_link_gets_several_chances_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wan, "choose_way", lambda: Way("netem"))
    attempts = iter([measured(trip_s=0.09), measured(lost_back=0.3), measured()])
    line, fault = judge_link("wan", FAR, lambda: next(attempts))
    assert fault == ""
    assert "measured 40.2 ms round trip (99% within 40.2 ms), 1% lost there and 1.01% back, of 4000" in line
    tries: list[int] = []

    def slow() -> LinkMeasurement:
        tries.append(1)
        return measured(trip_s=0.09)

    line, fault = judge_link("wan with 20ms each way, 1% lost", FAR, slow)
    assert len(tries) == ATTEMPTS
    assert fault.startswith(
        "the link wan with 20ms each way, 1% lost is not as requested, in 3 tries: a round trip should take 40.0 ms "
        "and it took 90.0 ms; measured 90.0 ms round trip"
    )
    assert "measured 90.0 ms" in line


def test_the_maker_of_the_link_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wan, "choose_way", lambda: Way("netem"))
    assert judge_link("wan", FAR, measured)[0].startswith("wan, by netem: measured")
    monkeypatch.setattr(wan, "choose_way", lambda: Way("relay", "tc: no"))
    assert judge_link("wan", FAR, measured)[0].startswith(
        "wan, by the project's relay, because there is no netem (tc: no): "
    )


def test_a_link_that_cannot_be_had_is_bad_with_its_reason() -> None:
    def refuse() -> LinkMeasurement:
        raise NotAllowedError("no namespaces (run it as root)")

    assert judge_link("wan", FAR, refuse) == (
        "wan: not available here",
        "the link wan is not available here: no namespaces (run it as root)",
    )


def test_a_link_over_which_nothing_came_back_is_reported() -> None:
    assert describe_measurement(LinkMeasurement(20, 0, 0, None, None)) == "measured no round trip, of 20 datagrams"
    assert len(find_faults(FAR, LinkMeasurement(20, 0, 0, None, None))) == 2


# --- of a whole experiment ------------------------------------------------------------------------------------------


def test_without_a_wan_nothing_is_measured(experiment: Experiment, tmp_path: Path) -> None:
    assert link_check.check(experiment.with_each(link="lan"), UNPINNED, tmp_path) == ({}, {})
    assert list(tmp_path.iterdir()) == []


def test_each_different_wan_is_measured_once(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed: list[Terms] = []

    def probe(terms: Terms, *_: object) -> LinkMeasurement:
        probed.append(terms)
        return measured(trip_s=2 * terms.delay_s, lost_there=terms.loss, lost_back=terms.loss)

    monkeypatch.setattr(link_check, "probe", probe)
    monkeypatch.setattr(wan, "choose_way", lambda: Way("netem"))
    factors = {"link": ("loopback", "wan"), "link-delay": ("20ms", "5ms"), "connections": (1, 2)}
    checked = link_check.check(experiment.with_each(factors=factors, link_loss=0.01), UNPINNED, tmp_path)
    assert [(terms.delay_s, terms.loss) for terms in probed] == [(0.02, 0.01), (0.005, 0.01)]
    assert checked.bad == {}
    lines = checked.environment["link.wan"]
    assert isinstance(lines, list)
    assert [line.partition(", by netem: measured ")[0] for line in lines] == [
        "wan with 20ms each way, 1% lost",
        "wan with 5ms each way, 1% lost",
    ]
    assert "pinning.relay" not in checked.environment


def test_where_no_link_can_be_made_none_is_measured_and_the_reason_is_kept(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Way:
        raise NotAllowedError("no namespaces here")

    monkeypatch.setattr(wan, "choose_way", refuse)
    monkeypatch.setattr(link_check, "probe", lambda *_: refuse())
    checked = link_check.check(experiment.with_each(link="wan", link_delay_s=0.005), UNPINNED, tmp_path)
    assert list(checked.bad.values()) == ["the link wan with 5ms each way is not available here: no namespaces here"]
    assert "pinning.relay" not in checked.environment


@pytest.mark.parametrize("way", [Way("netem"), Way("relay", "no netem here")])
def test_the_core_of_a_relay_is_recorded_where_one_runs(
    way: Way, experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_check, "probe", lambda *_: measured(trip_s=0.01))
    monkeypatch.setattr(wan, "choose_way", lambda: way)
    checked = link_check.check(experiment.with_each(link="wan", link_delay_s=0.005, link_loss=0.01), UNPINNED, tmp_path)
    assert checked.bad == {}
    assert checked.environment.get("pinning.relay") == ("not pinned" if way.by == "relay" else None)


@pytest.mark.calm
@pytest.mark.needs_build
def test_a_real_link_is_measured_and_its_log_kept(experiment: Experiment, tmp_path: Path) -> None:
    try:
        with lan.make_ends():
            pass
    except NotAllowedError as error:
        pytest.skip(str(error))
    checked = link_check.check(experiment.with_each(link="wan", link_delay_s=0.005), UNPINNED, tmp_path)
    if "/dev/net/tun" in json.dumps(checked.bad):
        pytest.skip(json.dumps(checked.bad))
    (line,) = json.loads(json.dumps(checked.environment["link.wan"]))
    # On a busy machine it may be slower than it should; that is then said.
    assert line.startswith("wan with 5ms each way, by ")
    assert " ms round trip " in line
    assert (tmp_path / "logs" / "link-1.log").is_file()
