"""Every test of this folder is quick: it starts no process and never waits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # with NumPy, which few of these tests need
    from netdyno.analysis.found.run import Analysis, ScenarioFindings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    folder = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker(pytest.mark.quick)


@pytest.fixture
def analysis() -> Analysis:
    """The findings of the made run."""
    from tests.support.builders import analysed, made_run

    return analysed.analysed(made_run.made_run())


@pytest.fixture
def lossy() -> ScenarioFindings:
    """The findings of the made run over transports that lose messages."""
    from tests.support.builders import analysed, made_run

    return analysed.analysed(made_run.messages_run()).scenarios[0]
