"""A `[[claim]]` table is read whole, and a mistake in it is one clear line that names the nearest valid word."""

from __future__ import annotations

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.model import metrics
from netdyno.model.claim import Bound, Cells, Claim, Flat, Order, Ratio, Trend
from netdyno.model.experiment import Experiment
from netdyno.question import claims, experiment
from tests.support.chosen import discover_once

GOOD = """
question = "Which?"
contestants = ["asio-*", "folly-async"]
blocks = 6
warmup = "0s"
duration = "1s"
[[scenario]]
name = "echo"
workload = "echo"
[scenario.factors]
client = ["asio-*"]
connections = [10, 100, 1000]
both.nodelay = ["on", "off"]
[[scenario]]
name = "rpc"
workload = "rpc"
[scenario.factors]
threads = [1, 2]
[[claim]]
id = "A1"
text = "Off is slow"
needs = ["folly", "cores >= 4", "second host"]
why = "delayed-acks"
[claim.published]
"NODELAY on, requests in 10 s" = 191_174.2
[[claim.test]]
kind = "ratio"
metric = "throughput"
cells = { scenario = "echo", contestant = "asio-callbacks", client = "asio-callbacks" }
a = { both.nodelay = "on" }
b = { both.nodelay = "off" }
above = 90
every = true
[[claim.test]]
kind = "order"
metric = "p50"
cells = { scenario = "rpc" }
along = "contestant"
rising = ["folly-async", ["asio-callbacks", "asio-coroutines"]]
[[claim.test]]
kind = "trend"
metric = "lost"
cells = { scenario = "echo", connections = [10, 1000] }
along = "connections"
direction = "rises"
[[claim.test]]
kind = "flat"
metric = "connected"
cells = { scenario = "rpc" }
along = "threads"
within = 0.05
[[claim.test]]
kind = "bound"
metric = "p99"
cells = { scenario = "rpc", threads = 2 }
below = "40ms"
"""
CLIENT = {"contestant": ("asio-callbacks",), "client": ("asio-callbacks",)}


def read(text: str) -> Experiment:
    return experiment.parse(text, "good", "good.toml")


def test_a_claim_is_parsed_into_frozen_words() -> None:
    assert read(GOOD).claims == (
        Claim(
            id="A1",
            text="Off is slow",
            needs=("folly", "cores >= 4", "second host"),
            why="delayed-acks",
            published={"NODELAY on, requests in 10 s": 191174.2},
            tests=(
                Ratio(
                    metric="throughput",
                    a=Cells(scenario="echo", at={**CLIENT, "both.nodelay": ("on",)}),
                    b=Cells(scenario="echo", at={**CLIENT, "both.nodelay": ("off",)}),
                    side="above",
                    threshold=90,
                    every=True,
                ),
                Order(
                    metric="p50",
                    cells=Cells(scenario="rpc"),
                    along="contestant",
                    direction="rising",
                    groups=(("folly-async",), ("asio-callbacks", "asio-coroutines")),
                ),
                Trend(
                    metric="lost",
                    cells=Cells(scenario="echo", at={"connections": (10, 1000)}),
                    along="connections",
                    direction="rises",
                ),
                Flat(metric="connected", cells=Cells(scenario="rpc"), along="threads", within=0.05),
                Bound(
                    metric="p99",
                    cells=Cells(scenario="rpc", at={"threads": (2,)}),
                    side="below",
                    threshold=40e6,
                ),
            ),
        ),
    )


def test_a_test_may_only_refute_and_not_all_of_a_claim() -> None:
    first, *further = read(GOOD.replace("above = 90", "above = 90\nonly-refutes = true")).claims[0].tests
    assert (first.only_refutes, {test.only_refutes for test in further}) == (True, {False})
    single = GOOD[: GOOD.index("[[claim.test]]")] + (
        '[claim.test]\nkind = "bound"\nmetric = "p99"\ncells = { scenario = "rpc" }\nbelow = "40ms"\n'
        "only-refutes = true\n"
    )
    with pytest.raises(UserError, match="key 'test': every test has 'only-refutes', so that nothing could confirm"):
        read(single)


def test_an_experiment_without_claims_makes_none() -> None:
    assert read(GOOD[: GOOD.index("[[claim]]")]).claims == ()


def test_within_two_bounds_is_both_of_them() -> None:
    first, second, *further = read(GOOD.replace("above = 90", "within = [80, 100]")).claims[0].tests
    assert isinstance(first, Ratio)
    assert isinstance(second, Ratio)
    assert ((first.side, first.threshold), (second.side, second.threshold)) == (("above", 80), ("below", 100))
    assert (first.a, first.b, first.every) == (second.a, second.b, second.every)
    assert len(further) == len(read(GOOD).claims[0].tests) - 1


def test_what_a_side_is_divided_by_is_its_own_cells_but_for_what_over_says() -> None:
    text = GOOD.replace("every = true", "over = { connections = 10 }")
    ratio = read(text.replace("a = {", "a = { connections = 1000,").replace("b = {", "b = { connections = 1000,"))
    first = ratio.claims[0].tests[0]
    assert isinstance(first, Ratio)
    assert first.over is not None
    for side, base in zip((first.a, first.b), first.over, strict=True):
        assert side.at["connections"] == (1000,)
        assert base == Cells(scenario=side.scenario, at={**side.at, "connections": (10,)})


def test_needs_may_be_those_of_one_test_and_of_one_verdict() -> None:
    keys = 'every = true\nneeds = ["folly"]\nneeds-to-confirm = ["cores >= 4"]\nneeds-to-refute = ["second host"]'
    first, *further = read(GOOD.replace("every = true", keys)).claims[0].tests
    assert (first.needs, first.needs_to_confirm, first.needs_to_refute) == (
        ("folly",),
        ("cores >= 4",),
        ("second host",),
    )
    assert all(not (test.needs or test.needs_to_confirm or test.needs_to_refute) for test in further)
    claim = read(GOOD.replace("needs = [", "needs-to-refute = [")).claims[0]
    assert (claim.needs, claim.needs_to_refute) == ((), ("folly", "cores >= 4", "second host"))


def test_an_order_of_differences_subtracts_the_same_cells_but_for_what_minus_says() -> None:
    of_two = GOOD.replace('cells = { scenario = "rpc" }\nalong = "contestant"', OF_TWO_THREADS)
    order = read(of_two.replace("rising = [", "minus.threads = 1\nrising = [")).claims[0].tests[1]
    assert isinstance(order, Order)
    assert (order.over, order.minus) == (None, Cells(scenario="rpc", at={"threads": (1,)}))


OF_TWO_THREADS = 'cells = { scenario = "rpc", threads = 2 }\nalong = "contestant"'


@pytest.mark.parametrize("need", ["cores >= 4", "server-cores >= 2", "second platform", "one host", "folly"])
def test_a_need_is_kept_as_it_is_written(need: str) -> None:
    assert read(GOOD.replace('"folly", "cores >= 4", "second host"', f'"{need}"')).claims[0].needs == (need,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id = "A1"', "", "claim 1: key 'id': must be a text"),
        ('text = "Off is slow"', "txt = 'x'", "claim 1 ('A1'): unknown key 'txt' (did you mean 'text'?)"),
        ("191_174.2", '"many"', "published: key 'NODELAY on, requests in 10 s': 'many' is not a number"),
        ('"second host"', '"secnd host"', "key 'needs': 'secnd host' is no need"),
        ('"second host"', '"secnd host"', "(did you mean 'second host'?)"),
        ('"cores >= 4"', '"cores > 4"', "(did you mean 'cores >= 4'?)"),
        ('"delayed-acks"', '"delayed-ack"', "key 'why': 'delayed-ack' is not valid (did you mean 'delayed-acks'?)"),
        ('kind = "ratio"', 'kind = "ration"', "test 1: key 'kind': 'ration' is not valid (did you mean 'ratio'?)"),
        ('kind = "ratio"', "", "test 1: the key 'kind' is missing (there are: bound, flat, order, ratio, trend)"),
        ('metric = "p50"', 'metric = "p55"', "test 2: key 'metric': 'p55' is not valid (did you mean 'p50'?)"),
        ("above = 90", "abov = 90", "test 1: unknown key 'abov' (did you mean 'above'?)"),
        ("above = 90", "above = 90\nbelow = 100", "test 1: needs either 'above', 'below' or 'within'"),
        ("above = 90", "within = 90", "test 1: key 'within': 90 is no list of two bounds, such as [0.9, 1.1]"),
        ("above = 90", "within = [90, 80]", "test 1: key 'within': 90 is not below 80"),
        ("above = 90", "above = 0", "test 1: key 'above': 0 is not a number above 0"),
        ("every = true", "every = 1", "test 1: key 'every': 1 is neither true nor false"),
        ('"throughput"', '"connected"', "key 'metric': 'connected' is a share and may be 0; compare it by order"),
        ('a = { both.nodelay = "on" }', 'a = { both.nodelay = "no" }', "a: key 'both.nodelay': 'no' is not a level of"),
        (
            'a = { both.nodelay = "on" }',
            'a = { nodelay = "on" }',
            "a: unknown key 'nodelay' (did you mean 'both.nodela",
        ),
        ('a = { both.nodelay = "on" }', 'a = "on"', "test 1: key 'a': must be a table"),
        ('a = { both.nodelay = "on" }', 'a = { both = "on" }', "a: key 'both': must be a table"),
        ('a = { both.nodelay = "on" }', 'a = { both.nodelay = "off" }', "'a' and 'b' are the same cells"),
        ('a = { both.nodelay = "on" }', 'a = { client = "asio-x" }', "a: key 'client': 'cells' names it already"),
        (
            'a = { both.nodelay = "on" }',
            "a = { }",
            "a: key 'both.nodelay': 'a' and 'b' differ in it, so each must name",
        ),
        (
            'contestant = "asio-callbacks"',
            'contestant = "folly-asink"',
            "'folly-asink' is not a contestant in this exp",
        ),
        ('client = "asio-callbacks" }', 'client = "qt-signals" }', "'qt-signals' is not a level of 'client' in this"),
        ("connections = [10, 1000]", "connections = [10, 10]", "key 'connections': names a value twice"),
        ("connections = [10, 1000]", "connections = [10, 50]", "key 'connections': 50 is not a level of 'connections'"),
        ("connections = [10, 1000]", "connections = [10]", "key 'along': 'connections' has a single level there"),
        ('along = "connections"', 'along = "contestant"', "a trend is across a factor; contestants have an order"),
        ('along = "connections"', 'along = "client"', "name each client in 'cells': a pattern has no order"),
        ('along = "threads"', 'along = "thread"', "key 'along': 'thread' is not valid (did you mean 'threads'?)"),
        ('direction = "rises"', 'direction = "rise"', "key 'direction': 'rise' is not valid (did you mean 'rises'?)"),
        ("rising = [", "risin = [", "unknown key 'risin' (did you mean 'rising'?)"),
        ('["asio-callbacks", "asio-coroutines"]', '"folly-async"', "key 'rising': names something twice"),
        ('"folly-async", [', "[", "key 'rising': must be a list of two or more"),
        ("every = true", 'over = { both.nodelay = "no" }', "test 1: over: key 'both.nodelay': 'no' is not a level"),
        ("every = true", "over = { }", "test 1: key 'over': names nothing that differs"),
        ("every = true", "every = true\nover.connections = 10", "key 'every': 'over' divides all cells of a side"),
        ("every = true", "over.connections = 10", "side: key 'connections': 'side' and 'over' differ in it, so each"),
        (
            'kind = "order"',
            'kind = "order"\nover.contestant = "folly-async"',
            "over: key 'contestant': it is the factor of the order",
        ),
        ('metric = "p50"', 'metric = "lost"\nover.threads = 1', "key 'over': 'lost' is a share and may be 0"),
        (
            'kind = "order"',
            'kind = "order"\nminus.contestant = "folly-async"',
            "minus: key 'contestant': it is the factor of the order",
        ),
        ('kind = "order"', 'kind = "order"\nminus.threads = 1\nover.threads = 1', "key 'minus': 'over' is there, too"),
        (
            "above = 90",
            "above = 90\nleast-published = 80",
            "key 'least-published': 80 is not above 90, as the claim has",
        ),
        (
            "above = 90",
            "within = [80, 90]\nleast-published = 80",
            "key 'least-published': 'within' has a bound on this",
        ),
        ("above = 90", 'above = 90\nneeds-to-refute = ["cors >= 4"]', "key 'needs-to-refute': 'cors >= 4' is no need"),
        ('why = "delayed-acks"', "differs = 1", "key 'differs': must be a text"),
        ('why = "delayed-acks"', "published-on = 1", "key 'published-on': must be a text"),
        ("within = 0.05", "within = 0", "key 'within': 0 is not a number above 0"),
        ('metric = "connected"', 'metric = "mean"', "key 'within': 0.05 is no factor above 1, such as 1.25"),
        ('metric = "connected"', 'metric = "connected"\n[claim.published]', "good.toml: not valid TOML"),
        ('"40ms"', "40", "key 'below': 40 is not a duration: write a text with a unit"),
        ('"40ms"', '"40 ms"', "key 'below': '40 ms' is not a duration"),
        ('{ scenario = "rpc", threads = 2 }', "{ threads = 2 }", "cells: the key 'scenario' is missing"),
        ('{ scenario = "rpc", threads = 2 }', '{ scenario = "rcp" }', "unknown scenario 'rcp' (did you mean 'rpc'?)"),
        ("threads = 2 }", "connections = 2 }", "cells: unknown key 'connections'"),
        ('metric = "p99"', 'metric = "lines"', "cells: key 'threads': code belongs to a contestant or a client, and"),
    ],
)
def test_a_mistake_is_one_clear_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError) as error:
        read(GOOD.replace(old, new, 1))
    assert str(error.value).startswith("good.toml: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_two_claims_of_one_id_are_refused() -> None:
    again = GOOD[GOOD.index("[[claim]]") :]
    with pytest.raises(UserError, match="claim 2: key 'id': another claim is called 'A1'"):
        read(GOOD + again)


def test_cells_of_two_scenarios_are_paired_only_where_both_have_the_factor() -> None:
    apart = GOOD[: GOOD.index("[[claim]]")] + (
        '[[claim]]\nid = "B"\ntext = "t"\n[claim.test]\nkind = "ratio"\nmetric = "p50"\nbelow = 1\n'
        'a = { scenario = "echo", client = "asio-callbacks", connections = 10, both.nodelay = "on" }\n'
        'b = { scenario = "rpc", threads = 1 }\n'
    )
    assert len(read(apart).claims) == 1
    with pytest.raises(UserError, match="b: key 'threads': 'a' and 'b' differ in it, so each must name one value"):
        read(apart.replace(", threads = 1", ""))


def test_cells_name_a_thread_for_each_core_as_the_factor_does() -> None:
    as_level = GOOD.replace("threads = [1, 2]", 'threads = [1, "cores"]').replace("threads = 2", 'threads = "cores"')
    bound = read(as_level).claims[0].tests[-1]
    assert isinstance(bound, Bound)
    assert bound.cells == Cells(scenario="rpc", at={"threads": ("cores",)})
    with pytest.raises(UserError, match="key 'threads': 'cores' is not a level of 'threads'"):
        read(as_level.replace('[1, "cores"]', "[1, 2]"))


def test_every_kind_has_its_keys_and_every_metric_its_way_to_be_read() -> None:
    kinds = {kind.__struct_config__.tag for kind in (Ratio, Order, Trend, Flat, Bound)}
    assert set(claims.TEST_KEYS) == kinds
    claimed = [metrics.METRICS[name] for name in metrics.CLAIMED]
    assert all((metric.amount is None) != (metric.of_code is None) for metric in claimed)
    assert all(metrics.METRICS[name].amount is not None for name in (*metrics.WHYS.values(), *metrics.COUNTERS))


@pytest.mark.parametrize("name", experiment.list_names(ROOT / "experiments"))
def test_claims_of_this_repository_name_contestants_and_libraries_that_exist(name: str) -> None:
    loaded = experiment.load(ROOT / "experiments" / f"{name}.toml")
    servers, clients = (discover_once(kind) for kind in ("server", "client"))
    libraries = {need for contestant in (*servers, *clients) for need in contestant.manifest.needs}
    for claim in loaded.claims:
        with_needs = [*claim.tests, claim]
        everywhere = {
            need for part in with_needs for need in (*part.needs, *part.needs_to_confirm, *part.needs_to_refute)
        }
        needs = {need for need in everywhere if claims.LIBRARY.fullmatch(need)}
        assert needs <= libraries
        for cells in named(claim):
            assert set(cells.at.get("contestant", ())) <= {
                server.name for server in servers if not server.manifest.apart
            }
            assert set(cells.at.get("client", ())) <= {"netdyno-load", *(client.name for client in clients)}


def named(claim: Claim) -> list[Cells]:
    """Return every selection of a claim."""
    selections: list[Cells] = []
    for test in claim.tests:
        selections += [test.a, test.b, *(test.over or ())] if isinstance(test, Ratio) else [test.cells]
        if isinstance(test, Order):
            selections += [base for base in (test.over, test.minus) if base is not None]
            selections += [Cells(scenario=test.cells.scenario, at={test.along: group}) for group in test.groups]
    return selections
