"""A link that is made inside one machine cannot connect two; what lies between them is their lan."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from netdyno.measure.machine.links.network import MACHINE, Network, NoNetworkError, make_network
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.model.experiment import Scenario
from netdyno.model.observation import Pinning
from netdyno.model.options import Settings, settings
from netdyno.model.transports import TRANSPORTS

BETWEEN = Network((), ("elsewhere",), Path("/proc/net"), "10.0.0.2")
PLAIN = Scenario(name="echo", workload="echo")


def place(
    requested: Settings, run_network: Network, tmp_path: Path, transport: str = "tcp"
) -> AbstractContextManager[Network]:
    pinning, log = Pinning(server=(), generator=(), note=""), TrialLog(tmp_path / "log")
    return make_network(TRANSPORTS[transport], requested, pinning, log, seed=1, given=run_network)


@pytest.mark.parametrize("run_network", [MACHINE, BETWEEN])
def test_a_trial_is_placed_where_the_run_is(run_network: Network, tmp_path: Path) -> None:
    with place(settings(PLAIN, {}), run_network, tmp_path) as network:
        assert network is run_network


@pytest.mark.parametrize(
    ("run_network", "has"), [(MACHINE, "one"), (msgspec.structs.replace(BETWEEN, load_hosts=2), "2")]
)
def test_a_load_of_more_hosts_than_there_are_is_skipped(run_network: Network, has: str, tmp_path: Path) -> None:
    requested = settings(PLAIN, {"client-hosts": 3})
    with (
        pytest.raises(NoNetworkError, match=f"3 client hosts make this load, and this run has {has}$"),
        place(requested, run_network, tmp_path),
    ):
        pytest.fail("placed")


def test_what_lies_between_machines_is_their_lan(tmp_path: Path) -> None:
    cable = msgspec.structs.replace(BETWEEN, is_lan=True)
    with place(settings(PLAIN, {"link": "lan"}), cable, tmp_path) as network:
        assert network is cable


@pytest.mark.parametrize(
    ("transport", "levels", "what"),
    [
        ("tcp", {"link": "lan"}, "the link lan"),
        ("tcp", {"link": "wan", "link-delay": "20ms"}, "the link wan with 20ms each way"),
        ("multicast", {}, "the private network that multicast needs"),
    ],
)
def test_a_link_of_one_machine_is_skipped(transport: str, levels: dict[str, str], what: str, tmp_path: Path) -> None:
    requested = settings(PLAIN, dict(levels))
    with (
        pytest.raises(NoNetworkError, match=f"{what} lies within one machine"),
        place(requested, BETWEEN, tmp_path, transport),
    ):
        pytest.fail("placed")


def test_a_lan_of_a_rate_is_made_within_one_machine(tmp_path: Path) -> None:
    requested = settings(PLAIN, {"link": "lan", "link-rate": "100mbit"})
    with (
        pytest.raises(NoNetworkError, match="the link lan at 100mbit lies within one machine"),
        place(requested, msgspec.structs.replace(BETWEEN, is_lan=True), tmp_path),
    ):
        pytest.fail("placed")


def test_a_backend_needs_the_load_on_the_server_s_machine(tmp_path: Path) -> None:
    requested = settings(PLAIN, {"service-kind": "backend"})
    with (
        pytest.raises(NoNetworkError, match="a backend runs beside the load program on the server's machine"),
        place(requested, BETWEEN, tmp_path),
    ):
        pytest.fail("placed")


def test_cores_of_one_machine_cannot_be_shared_between_several(tmp_path: Path) -> None:
    requested = settings(PLAIN, {"placement": "shared"})
    with (
        pytest.raises(NoNetworkError, match="server and generator share cores of one machine, and this run has"),
        place(requested, BETWEEN, tmp_path),
    ):
        pytest.fail("placed")
    with place(requested, MACHINE, tmp_path) as network:
        assert network is MACHINE
