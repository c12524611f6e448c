"""The cells that run twice: as many as the share has room for, in every block, at random places."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.model.base import type_level
from netdyno.model.experiment import Experiment, Scenario
from netdyno.question import experiment as experiments
from netdyno.question.plan import CellKind, choose_twins, estimate_seconds, plan
from tests.support.builders.made_twins import asked, contestant, servers


def test_every_block_holds_each_twin_once_beside_its_first() -> None:
    chosen = choose_twins(asked(), servers())
    cells = plan(asked(), chosen)
    for block in range(1, 9):
        twins = [
            CellKind(cell.scenario, cell.contestant, cell.levels) for cell in cells if cell.block == block and cell.twin
        ]
        firsts = [
            CellKind(cell.scenario, cell.contestant, cell.levels)
            for cell in cells
            if cell.block == block and not cell.twin
        ]
        assert sorted(map(str, twins)) == sorted(map(str, chosen))
        assert all(firsts.count(kind) == 1 for kind in chosen)
        assert len(firsts) == 40
        positions = [cell.position for cell in cells if cell.block == block]
        assert positions == list(range(42))


def test_a_twin_is_as_often_before_its_first_as_after_it() -> None:
    many = asked(share=0.5, blocks=60, names="a")
    cells = plan(many, choose_twins(many, servers("a")))
    first, again = (
        {(cell.block, cell.scenario, str(cell.levels)): cell.position for cell in cells if cell.twin == twin}
        for twin in (False, True)
    )
    before = [position < first[where] for where, position in again.items()]
    assert len(before) == 480
    assert abs(sum(before) / len(before) - 0.5) < 0.1


def test_without_a_share_the_plan_is_what_it_was() -> None:
    assert choose_twins(asked(share=0), servers()) == ()
    assert not any(cell.twin for cell in plan(asked(share=0)))


@pytest.mark.parametrize(("share", "count"), [(0.02, 0), (0.05, 2), (0.2, 10), (0.5, 40)])
def test_twins_take_their_share_of_the_time_and_no_more(share: float, count: int) -> None:
    assert len(choose_twins(asked(share), servers())) == count
    once_s, with_twins_s = (estimate_seconds(asked(aa_share), servers()) for aa_share in (0, share))
    assert (with_twins_s - once_s) / with_twins_s <= share + 1e-9
    assert math.isclose(with_twins_s - once_s, once_s * count / 40)


def test_what_is_run_twice_is_drawn_from_the_seed_and_spread() -> None:
    def of_seed(seed: int) -> tuple[CellKind, ...]:
        return choose_twins(replace(asked(0.12), seed=seed), servers())

    assert of_seed(1) == of_seed(1)
    assert len({str(of_seed(seed)) for seed in range(20)}) > 15
    for seed in range(20):
        assert len({kind.scenario for kind in of_seed(seed)[:4]}) == 4
        assert len({kind.contestant for kind in of_seed(seed)}) == len(of_seed(seed)) == 5


def test_nothing_is_run_twice_that_could_show_nothing() -> None:
    assert choose_twins(asked(0.5, blocks=FEWEST_BLOCKS - 1), servers()) == ()
    wrong = servers("ab") | {"c": contestant("c", unsafe="it races"), "d": contestant("d", unranked="a tool")}
    absent = {"e": replace(contestant("e"), available=False, why_not="not found")}
    assert {kind.contestant for kind in choose_twins(asked(0.5), wrong | absent)} == {"a", "b"}


def test_of_a_capacity_all_rates_are_run_twice_or_none() -> None:
    rates: tuple[type_level, ...] = (1000, 2000, 4000)
    factors: dict[str, tuple[type_level, ...]] = {"rate": rates, "connections": (1, 10)}
    scenario = Scenario(
        name="s", workload="echo", arrivals="poisson", metric="capacity", objective="p99<5ms", factors=factors
    )
    experiment = Experiment(name="e", question="?", scenarios=(scenario,)).with_each(contestants=tuple("ab"), blocks=8)
    for share, units in ((0.19, 0), (0.21, 1), (0.35, 2), (0.5, 4)):  # of four, a fifth of the time for the first
        chosen = choose_twins(replace(experiment, aa_share=share), servers("ab"))
        units_of_kinds = Counter((kind.contestant, kind.levels["connections"]) for kind in chosen)
        assert len(units_of_kinds) == units
        assert set(units_of_kinds.values()) <= {len(rates)}
        assert len({str(kind) for kind in chosen}) == len(chosen)


def test_a_scenario_of_fewer_blocks_has_its_twins_in_those() -> None:
    few, many = (
        Scenario(name=name, workload="echo", contestants=("a",), blocks=blocks) for name, blocks in (("f", 6), ("m", 9))
    )
    experiment = Experiment(name="e", question="?", scenarios=(few, many), aa_share=0.5)
    twins = Counter(cell.scenario for cell in plan(experiment, choose_twins(experiment, servers("a"))) if cell.twin)
    assert twins == {"f": 6, "m": 9}


def test_the_share_is_stated_in_the_file_checked_and_5_percent_by_itself(tmp_path: Path) -> None:
    text = 'question = "?"\ncontestants = ["a"]\nblocks = 6\nwarmup = "0s"\nduration = "1s"\n{}\n'
    text += '[[scenario]]\nname = "s"\nworkload = "echo"\n'
    for line, share in (("", 0.05), ("aa-share = 0", 0.0), ("aa-share = 0.25", 0.25)):
        assert experiments.parse(text.format(line), "e", "e.toml").aa_share == share
    for wrong in ("0.6", "-0.1", "true", '"5%"', "nan"):
        with pytest.raises(UserError, match=r"e\.toml: key 'aa-share': .* is not a number from 0 to 0\.5"):
            experiments.parse(text.format(f"aa-share = {wrong}"), "e", "e.toml")
    (tmp_path / "part.toml").write_text(text.format("aa-share = 0.5"))
    (tmp_path / "whole.toml").write_text('question = "?"\ninclude = ["part"]\naa-share = 0.1\n')
    assert experiments.load(tmp_path / "whole.toml").aa_share == 0.1
