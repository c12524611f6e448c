"""The simulation of many hosts goes the way of a real load, and says what each number of them costs."""

from __future__ import annotations

import asyncio

import msgspec

from netdyno.cluster.trial_helper import decoded
from netdyno.model.load_result import LoadResult
from tests.support import bench_script
from tests.support.builders.made_load import distribution, load

cluster_size = bench_script.load("cluster_size")


def result() -> LoadResult:
    made = load((100,) * 20)
    histograms = (distribution(100, 10).histogram,) * 20
    return msgspec.structs.replace(made, timeseries=msgspec.structs.replace(made.timeseries, histograms=histograms))


def test_what_many_fake_hosts_hand_in_is_one_load() -> None:
    _, ended = asyncio.run(cluster_size.follow(30, msgspec.json.encode(result()).decode()))
    assert ended.code == 0
    whole = decoded(ended.result.encode())
    assert isinstance(whole.parts, tuple)
    assert len(whole.parts) == 30
    assert whole.requests.completed == 30 * 2000


def test_each_number_of_hosts_has_its_line() -> None:
    told = cluster_size.table([cluster_size.Cost(10, 0.25, 0.5, 1.0, 3.0, 250, 0.002, 0.5)]).splitlines()
    figures = ("10", "0.250 s", "0.500 s", "1.000 s", "4000 us", "3.00 MiB", "2.0 ms", "512 KiB")
    assert told[1].split() == " ".join(figures).split()


def test_what_the_controller_is_told_of_many_hosts_is_counted_too() -> None:
    one = cluster_size.cost(30, msgspec.json.encode(result()).decode())
    assert one.histograms == 30 * cluster_size.histograms(msgspec.json.encode(result()).decode())
    assert one.histograms > 30 * 20
    assert 0 < one.told_mib < one.mib
