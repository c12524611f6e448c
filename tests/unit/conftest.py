"""Every test of this folder is quick: it starts no process and never waits."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    folder = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker(pytest.mark.quick)
