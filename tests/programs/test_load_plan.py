"""What a scenario may say the generator takes, over tcp and from one host: it refuses nothing in the middle of a run
that was read before it (question/scenarios.py, loadgen/plan/plan.cpp)."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Mapping

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.trial.command import build_load_command
from netdyno.model.levels import combinations
from netdyno.model.options import LOAD, SCENARIO, settings
from netdyno.model.values import Option
from netdyno.question import scenarios

LOOPS: tuple[Mapping[str, object], ...] = (
    {},
    {"arrivals": "poisson", "rate": 500},
    {"arrivals": "constant", "rate-per-connection": 5},
)
BASES: tuple[Mapping[str, object], ...] = (
    {"name": "s", "workload": "web", "size": 64, "chunks": 4},
    *(
        {"name": "s", "workload": workload, "size": 64, **loop}
        for workload in ("echo", "rpc", "chat", "http", "web", "grpc", "lines")
        for loop in LOOPS
    ),
)
KEYS = sorted({*LOAD, "warmup", "duration", "timeout"} - {"client"})
OTHERS: Mapping[str, tuple[object, ...]] = {
    "connect-rate": ("burst", "when-due", 0.01, 100, 2e7),
    "generator-threads": (1, 2, 50, 2000, "cores"),
}
"""Values of options that take numbers and words."""
WHOLE, NUMBERS = (1, 2, 28, 50, 1000, 70_000, 2_000_000, 2**27, 2**40), (0.001, 0.01, 0.5, 1, 100, 1e6, 2e7)
DURATIONS = ("0s", "1us", "5ms", "1s", "11s", "61m", "1441m", "500ns")


def name_base(base: Mapping[str, object]) -> str:
    return f"{base['workload']}-{base.get('arrivals', 'stream' if 'chunks' in base else 'closed')}"


def list_values(option: Option) -> tuple[object, ...]:
    """Return values of an option, ordinary ones and those beyond what one can mean."""
    takes = option.takes
    by_type = WHOLE if takes.typed is int else NUMBERS
    return OTHERS.get(option.name) or takes.words or (DURATIONS if takes.metavar == "DUR" else by_type)


def ask_generator(tables: Iterable[Mapping[str, object]]) -> tuple[int, list[str]]:
    """Return how many cells of scenarios that could be read the generator was asked for, and what it says against."""
    count, refusals = 0, []
    for table in tables:
        try:
            scenario = scenarios.parse(dict(table), {}, "a scenario")
        except UserError:
            continue
        for levels in combinations(scenario):
            cell = settings(scenario, levels)
            if cell.client_processes > 1 or cell.client_hosts > 1:
                continue  # a client contestant, or a program for each host, which get more options
            command = build_load_command((str(generator_path(build_dir())),), "tcp://127.0.0.1:7", cell, 1, cores=2)
            checked = subprocess.run([*command, "--check-plan"], capture_output=True, text=True, check=False)
            count += 1
            if checked.returncode != 0:
                refusals.append(f"{table}: {checked.stderr.strip()}")
    return count, refusals


@pytest.mark.parametrize("base", BASES, ids=name_base)
def test_no_value_of_a_key_is_refused_by_the_generator_alone(base: Mapping[str, object]) -> None:
    tables = [{**base, key: value} for key in KEYS for value in list_values(SCENARIO[key])]
    count, refusals = ask_generator(tables)
    assert refusals == []
    assert count > len(KEYS), "hardly any could be read"


@pytest.mark.parametrize("base", BASES, ids=name_base)
def test_nor_are_values_together(base: Mapping[str, object]) -> None:
    draw = random.Random(str(base))
    tables = []
    for _ in range(100):
        keys = draw.sample(KEYS, 3)
        tables.append({**base, **{key: draw.choice(list_values(SCENARIO[key])) for key in keys}})
    count, refusals = ask_generator(tables)
    assert refusals == []
    assert count > 0, "none could be read"
