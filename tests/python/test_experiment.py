"""An experiment is parsed once; what is not understood names the file, the key and the nearest valid key."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdyno import experiment
from netdyno.errors import UserError
from netdyno.model import Experiment
from netdyno.paths import ROOT

GOOD = """
question = "Which?"
contestants = ["*"]
blocks = 3
warmup = "250ms"
duration = "1s"

[[scenario]]
name = "echo"
workload = "echo"
generator-threads = 2
[scenario.factors]
connections = [10, 100]
threads = [1, 2]
[scenario.server]
service-time = "1ms"
"""


ECHO = 'workload = "echo"\ngenerator-threads = 2'


def parse(text: str) -> Experiment:
    return experiment.parse(text, "good", "good.toml")


def test_units_names_and_defaults() -> None:
    parsed = parse(GOOD)
    assert (parsed.name, parsed.blocks, parsed.warmup_s, parsed.duration_s) == ("good", 3, 0.25, 1.0)
    (scenario,) = parsed.scenarios
    assert scenario.generator_threads == 2
    assert scenario.factors == {"connections": (10, 100), "threads": (1, 2)}
    assert scenario.server == {"service-time": "1ms"}
    assert (scenario.arrivals, scenario.depth, scenario.connect_rate) == ("closed", 1, "burst")


def test_it_is_frozen() -> None:
    with pytest.raises(AttributeError):
        parse(GOOD).blocks = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("blocks = 3", "bloks = 3", "good.toml: unknown key 'bloks' (did you mean 'blocks'?)"),
        ("blocks = 3", "", "good.toml: the key 'blocks' is missing"),
        ("blocks = 3", "blocks = 0", "good.toml: key 'blocks': 0 is not a whole number of at least 1"),
        ("blocks = 3", 'blocks = "3"', "good.toml: key 'blocks': Expected `int`, got `str`"),
        ("blocks = 3", "blocks = 3 = 4", "good.toml: not valid TOML"),
        ('"1s"', "1", "good.toml: key 'duration': 1 is not a duration"),
        ('"1s"', '"1 sec"', "good.toml: key 'duration': '1 sec' is not a duration"),
        ('"1s"', '"0s"', "good.toml: key 'duration': must be above 0"),
        ('["*"]', "[]", "good.toml: key 'contestants': names nobody"),
        ("generator-threads", "generator-thread", "scenario 1 ('echo'): unknown key 'generator-thread' (did you mean"),
        (
            "generator-threads = 2",
            "generator-threads = 0",
            "'generator-threads': 0 is not a whole number of at least 1",
        ),
        ("generator-threads = 2", 'arrivals = "poison"', "Invalid enum value 'poison' (did you mean 'poisson'?)"),
        ("generator-threads = 2", 'arrivals = "poisson"', "arrivals = 'poisson' needs a 'rate'"),
        ("generator-threads = 2", "rate = 5", "a closed loop has no rate of its own"),
        ("generator-threads = 2", 'arrivals = "poisson"\nrate = 9\ndepth = 1', "'depth' is for a closed loop"),
        ("generator-threads = 2", "size = 28", "key 'size': 28 bytes; a message of 'echo' has at least 29"),
        ("generator-threads = 2", "generator-threads = 11", "11 threads need more connections than 10"),
        (ECHO, 'workload = "chat"\ngenerator-threads = 6', "two each, where a witness"),
        ("blocks = 3", "blocks = 3\nseed = -1", "key 'seed': -1 is not a whole number of at least 0"),
        ("connections = [10", "conections = [10", "factors: unknown key 'conections' (did you mean 'connections'?)"),
        ("[10, 100]", "10", "factors: key 'connections' must be a list of levels"),
        ("[10, 100]", "[10, 10]", "factors: key 'connections' names a level twice"),
        ("[10, 100]", "[10, true]", "factors: key 'connections': True is not a whole number"),
        ("service-time", "service_time", "server: unknown key 'service_time' (did you mean 'service-time'?)"),
        ('"1ms"', '"soon"', "server: key 'service-time': 'soon' is not a duration"),
        ('service-time = "1ms"', 'write-mode = "splt"', "'splt' is not valid (did you mean 'split'?)"),
        ('workload = "echo"', "", "scenario 1 ('echo'): the key 'workload' is missing"),
        ("[[scenario]]", "[scenario]", "'scenario' must be one or more [[scenario]] tables"),
    ],
)
def test_a_mistake_is_one_clear_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError) as error:
        parse(GOOD.replace(old, new, 1))
    assert str(error.value).startswith("good.toml: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_two_scenarios_of_one_name_are_refused() -> None:
    with pytest.raises(UserError, match="two scenarios are called 'echo'"):
        parse(GOOD + '[[scenario]]\nname = "echo"\nworkload = "echo"\n')


def test_an_experiment_is_found_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(GOOD)
    assert experiment.find("quick", tmp_path) == tmp_path / "quick.toml"
    assert experiment.find(str(tmp_path / "quick.toml"), Path("/nowhere")) == tmp_path / "quick.toml"
    with pytest.raises(UserError, match=r"unknown experiment 'quik' \(did you mean 'quick'\?\)"):
        experiment.find("quik", tmp_path)
    with pytest.raises(UserError, match="no such experiment file: x/quick"):
        experiment.find("x/quick.toml", tmp_path)


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"binary.toml: cannot be read"):
        experiment.load(tmp_path / "binary.toml")


@pytest.mark.parametrize("name", experiment.names(ROOT / "experiments"))
def test_every_experiment_of_this_repository_parses(name: str) -> None:
    assert experiment.load(ROOT / "experiments" / f"{name}.toml").name == name
