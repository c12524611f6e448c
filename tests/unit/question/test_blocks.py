"""The smallest number of blocks of a scenario that requests a precision."""

from __future__ import annotations

import pytest

from netdyno.kit.statistics.block_counts import EARLIEST_END
from netdyno.model.experiment import Scenario
from netdyno.question.blocks import find_fewest


@pytest.mark.parametrize(("blocks", "most_blocks", "fewest"), [(6, 10, 10), (6, 60, EARLIEST_END), (20, 30, 20)])
def test_the_first_possible_end_is_waited_for_as_far_as_there_may_be_blocks(
    blocks: int, most_blocks: int, fewest: int
) -> None:
    scenario = Scenario(
        name="s", workload="echo", contestants=("a", "b"), precision=0.05, blocks=blocks, most_blocks=most_blocks
    )
    assert find_fewest(scenario) == fewest
    assert find_fewest(Scenario(name="s", workload="echo", contestants=("a",), precision=0.05, blocks=blocks)) == blocks
