"""Each attack has seeds: one is tried with every test run, all of them with `--attack`."""

from __future__ import annotations

import pytest

SEEDS = 40


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(SEEDS if metafunc.config.getoption("--attack") else 1))
