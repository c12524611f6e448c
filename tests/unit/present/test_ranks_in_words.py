"""Sentences, tables, report and JSON say of two contestants what their ranks say."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.ranking import Axis
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.kit import quantities
from netdyno.kit.statistics import stats
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.present.findings_json import make_document
from netdyno.present.prose import associations, caveats, ranking, verdict
from netdyno.present.report import scoreboard
from tests.support.builders.made_claims import made_trial
from tests.support.builders.made_run import made_run, messages_run, paired_run
from tests.support.printed import print_table

NAMES = ("ant", "bee", "cat", "dog", "eel")
BASE = {"throughput": 1e4, "p50": 1e6, "p99": 5e6, "cpu": 2e4, "memory": 8e6}
QUESTION = Scenario(name="question", workload="rpc", size=64)
CHANGE = rf"([a-zA-Z][\w ]*?) \(([+{quantities.TIMES}{quantities.MINUS}<>][\d.<>]+%?)\)"
"""An axis and how far it is: "memory (+11%)"."""


def drawn(seed: int, steps: float, spread: float, blocks: int, lost: float, metric: str = "throughput") -> Run:
    """Return a run of five contestants that differ by up to `steps` on each axis; some trials are lost."""
    random = np.random.default_rng(seed)
    levels = {name: {axis: random.uniform(-steps, steps) for axis in BASE} for name in NAMES}
    scenario = replace(QUESTION, metric=metric, contestants=NAMES, blocks=blocks)
    trials = []
    for block, name in itertools.product(range(1, blocks + 1), NAMES):
        figures = {axis: base * math.exp(levels[name][axis] + random.normal(0, spread)) for axis, base in BASE.items()}
        if random.random() >= lost:
            trials.append(made_trial(scenario, block, name, {}, figures))
    experiment = Experiment(name="drawn", question="Which?", scenarios=(scenario,))
    return Run(
        run_id="20250101-120000-drawn",
        experiment=experiment,
        started_at="2025-01-01T12:00:00Z",
        finished_at="2025-01-01T12:05:00Z",
        environment={"cores_allowed": 2},
        trials=tuple(trials),
    )


runs: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    seed=st.integers(0, 10_000),
    steps=st.sampled_from((0.0, 0.02, 0.1, 0.5)),
    spread=st.sampled_from((0.002, 0.02, 0.1)),
    blocks=st.integers(5, 8),
    lost=st.sampled_from((0.0, 0.1, 0.3)),
    metric=st.sampled_from(("throughput", "p99", "cpu")),
)
MADE: Mapping[str, Callable[[], Run]] = {"made": made_run, "messages": messages_run, "pairs": paired_run}


@lru_cache
def analyse_made(name: str) -> Analysis:
    return analyse(MADE[name]())


def stored(metric: str) -> list[Run]:
    """Return runs of the figures of a disturbed machine, question by question ."""
    of_question: dict[str, dict[tuple[int, str], dict[str, float]]] = {}
    with (Path(__file__).parent / "disturbed_blocks.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            logs = {"throughput": row["rate"], "p50": row["p50"], "p99": row["p99"]}
            figures = {axis: math.exp(float(log)) for axis, log in logs.items()}
            figures["cpu"] = 1e9 * math.exp(float(row["cpu"]))
            of_question.setdefault(row["question"], {})[int(row["turn"]), row["contestant"]] = figures
    runs_of_questions = []
    for turns in of_question.values():
        blocks = {turn: block for block, turn in enumerate(sorted({turn for turn, _ in turns}), 1)}
        names = tuple(sorted({name for _, name in turns}))
        scenario = replace(QUESTION, metric=metric, contestants=names, blocks=len(blocks))
        trials = [made_trial(scenario, blocks[turn], name, {}, figures) for (turn, name), figures in turns.items()]
        experiment = Experiment(name="stored", question="Which?", scenarios=(scenario,))
        runs_of_questions.append(replace(drawn(0, 0.0, 0.1, 5, 0.0), experiment=experiment, trials=tuple(trials)))
    return runs_of_questions


# --- ranks -------------------------------------------------------------------------------------------------------


def rank(axis: Axis, name: str) -> int:
    score = axis.score(name)
    assert score is not None
    assert score.rank is not None, (axis.metric, name)
    return score.rank


def axis_of(findings: ScenarioFindings, metric: str) -> Axis:
    return next(axis for axis in findings.axes if metric in (axis.metric, METRICS[axis.metric].short))


def assert_ranks_are_what_is_proven(findings: ScenarioFindings) -> None:
    """A rank is 1, how many are ranked before its group, and how many of the group are proven better, directly or by
    way of others."""
    for axis in findings.axes:
        better = {
            (comparison.a, comparison.b)
            if (comparison.ratio > 1) == (axis.better == "higher")
            else (comparison.b, comparison.a)
            for comparison in axis.comparisons
            if comparison.different
        }
        names = [score.contestant for score in axis.scores if score.rank is not None]
        for _ in names:
            better |= {(above, below) for above, middle in better for start, below in better if middle == start}
        for above, below in better:
            assert rank(axis, above) < rank(axis, below)
        if len({standing.peers for standing in findings.standings}) == 1:
            for name in names:
                assert rank(axis, name) == 1 + sum((better_name, name) in better for better_name in names)
        for score in axis.scores:
            alike = [
                entry
                for entry in axis.scores
                if entry.rank == score.rank
                and findings.ground.group_of(entry.contestant) == findings.ground.group_of(score.contestant)
            ]
            assert score.rank is None or score.shared == (len(alike) > 1)


# --- sentences ---------------------------------------------------------------------------------------------------


def names_in(text: str) -> list[str]:
    return re.split(r", | and ", text)


def assert_differences_are_of_different_ranks(findings: ScenarioFindings) -> int:
    """Each difference that the answer states; returns how many there were."""
    if findings.decision.verdict not in ("winner", "equal", "undecided"):
        return 0
    text, stated = verdict.answer(findings).sentence, 0
    first = (findings.decision.recommended or findings.decision.front)[0]
    own = findings.axes[0]
    won = re.match(r"Take (\S+)(?: \([^)]*lost\))?: it has the .*?(?:above|below|that of) (\S+), the next", text)
    assert bool(won) == (findings.decision.verdict == "winner"), text
    if won:
        assert rank(own, won[1]) < rank(own, won[2])
        assert [name for name in findings.decision.eligible if rank(own, name) == rank(own, won[1])] == [won[1]]
        stated += 1
    for heading, sign in (("Worse", 1), ("Better", -1)):
        for part in re.findall(rf"{heading} than [^:]+: (.*?)\.(?= [A-Z]|$)", text):
            for clause in part.split("; "):
                named, changes = clause.split(" in ", 1)
                name = named.split()[0]  # without its loss
                for short, _ in re.findall(CHANGE, changes):
                    axis = axis_of(findings, short.removeprefix("and "))
                    assert sign * (rank(axis, name) - rank(axis, first)) > 0, (clause, short)
                    stated += 1
    return stated


def assert_equals_are_of_one_rank(findings: ScenarioFindings) -> int:
    """Each statement that contestants are equal, or not proven different; returns how many there were."""
    text, stated = verdict.answer(findings).sentence, 0
    for equals in re.findall(
        r"(?:^|among )([^.:;]*?)(?:, which)? (?:are equal|are at most|are not proven different in)", text
    ):
        assert len({rank(findings.axes[0], name) for name in names_in(equals)}) == 1, equals
        stated += 1
    assert stated or findings.verdict != "undecided", text
    return stated


def assert_bound_holds_what_is_proven(findings: ScenarioFindings) -> int:
    """No rival is proven better than the first by more than the bound that the answer states; returns 1 where it
    states any."""
    text = verdict.answer(findings).sentence
    bound = re.search(r"(?:no rival is better|at most ([\d.]+)% behind the best) in", text)
    if bound is None:
        return 0
    first = (findings.decision.recommended or findings.decision.front)[0]
    for comparison in findings.axes[0].comparisons:
        if first in (comparison.a, comparison.b) and comparison.different:
            against = 1 / comparison.ratio if comparison.a == first else comparison.ratio
            loss = against if findings.axes[0].better == "higher" else 1 / against
            assert loss < 1 + float(bound[1] or 0) / 100
    return 1


def assert_what_goes_along_has_ranks_of_its_own(findings: ScenarioFindings) -> int:
    """Return how many state a difference of server CPU."""
    stated = 0
    for why in findings.whys:
        text = associations.summarise_pair(why, findings.scenario)
        worse, better = re.match(r"(\S+) against (\S+) \(", text).groups()  # type: ignore[union-attr]
        assert rank(findings.axes[0], worse) != rank(findings.axes[0], better)
        if "of server CPU per message against" in text:
            assert rank(axis_of(findings, "cpu"), worse) != rank(axis_of(findings, "cpu"), better)
            stated += 1
    return stated


def assert_all_say_the_same(analysis: Analysis) -> None:
    """Table, report and JSON have the ranks that the axes have."""
    table = print_table(analysis, 300)
    questions = make_document(analysis)["questions"]
    assert isinstance(questions, list)
    for findings, question in zip(analysis.scenarios, questions, strict=True):
        decidable = any(comparison.decidable for comparison in findings.comparisons)
        of_axes = {axis.metric: {score.contestant: score for score in axis.scores} for axis in findings.axes}
        for axis in question["axes"]:
            for score in axis["scores"]:
                mine = of_axes[axis["metric"]][score["contestant"]]
                assert (score["rank"], score["shared"]) == (mine.rank, mine.shared)
        for standing, contestant in zip(findings.standings, question["contestants"], strict=True):
            mine = of_axes[findings.axes[0].metric][standing.contestant]
            assert contestant["rank"] == standing.rank == mine.rank
            assert contestant["shared"] == standing.shared == mine.shared
            if decidable and standing.rank is not None:
                shown = f"{standing.rank}{'=' if standing.shared else ''}"
                assert re.search(rf"^ *{shown} +{standing.contestant} ", table, re.MULTILINE)
        board = scoreboard.make_view(findings)
        if board is None or findings.may_lose:  # there a column of losses stands between the axes
            continue
        for row in itertools.chain.from_iterable(group.rows for group in board.groups):
            for cell, axis in zip(row.cells, findings.axes, strict=True):
                assert not cell.rank or cell.rank.rstrip("=") == str(rank(axis, row.contestant))


def check(analysis: Analysis) -> int:
    stated = 0
    for findings in analysis.scenarios:
        if findings.axes and not any(score.rank is None for axis in findings.axes for score in axis.scores):
            assert_ranks_are_what_is_proven(findings)
            stated += assert_differences_are_of_different_ranks(findings) + assert_equals_are_of_one_rank(findings)
            stated += assert_bound_holds_what_is_proven(findings)
            assert_what_goes_along_has_ranks_of_its_own(findings)
    assert_all_say_the_same(analysis)
    return stated


@settings(max_examples=20, deadline=None)
@given(runs)
@example({"seed": 1, "steps": 0.1, "spread": 0.1, "blocks": 6, "lost": 0.0})
@example({"seed": 2, "steps": 0.5, "spread": 0.02, "blocks": 6, "lost": 0.3})
def test_no_sentence_states_a_difference_of_one_rank_or_equality_of_two(run: dict[str, Any]) -> None:
    check(analyse(drawn(**run)))


@pytest.mark.parametrize("name", MADE)
def test_nor_does_one_of_a_whole_run(name: str) -> None:
    check(analyse_made(name))


@pytest.mark.parametrize("metric", ["throughput", "p50", "p99", "cpu"])
def test_nor_does_one_about_figures_of_stored_runs(metric: str) -> None:
    assert sum(check(analyse(run)) for run in stored(metric)) >= 4


def test_the_sentences_that_are_looked_for_are_there() -> None:
    """The checks above read printed text; this test shows that they find it."""
    assert check(analyse_made("made")) >= 10
    runs_of_p99 = [analyse(drawn(seed, 0.1, 0.02, 8, 0.0, "p99")) for seed in range(5)]
    assert sum(map(check, runs_of_p99)) >= 10
    findings_of_p99 = [findings for analysis in runs_of_p99 for findings in analysis.scenarios]
    assert sum(map(assert_bound_holds_what_is_proven, findings_of_p99)) >= 1
    made = analyse_made("made").scenarios
    assert sum(map(assert_what_goes_along_has_ranks_of_its_own, made)) >= 1


# --- verdicts ----------------------------------------------------------------------------------------------------


def answered(effects: Mapping[str, Mapping[str, float]], spread: float = 0.01, **fields: object) -> ScenarioFindings:
    """Return the findings of a run with these factors, contestant by contestant and axis by axis."""
    random = np.random.default_rng(3)
    scenario = replace(QUESTION, contestants=tuple(effects), blocks=8, **fields)
    trials = []
    for block, (name, factors) in itertools.product(range(1, 9), effects.items()):
        figures = {
            axis: base * factors.get(axis, 1.0) * math.exp(random.normal(0, factors.get("spread", spread)))
            for axis, base in BASE.items()
        }
        trials.append(made_trial(scenario, block, name, {}, figures))
    run = drawn(0, 0.0, 0.1, 5, 0.0)
    experiment = Experiment(name="answered", question="Which?", scenarios=(scenario,))
    return analyse(replace(run, experiment=experiment, trials=tuple(trials))).scenarios[0]


def test_one_uncertain_pair_does_not_hide_what_is_proven() -> None:
    """The second scatters so far that nothing is proven of it; the third is proven worse than the first by 30%."""
    findings = answered({"ant": {"throughput": 1.3}, "bee": {"throughput": 1.15, "spread": 0.3}, "cat": {}})
    own = findings.axes[0]
    assert (rank(own, "ant"), rank(own, "bee"), rank(own, "cat")) == (1, 1, 2)


def test_a_small_bound_is_an_answer() -> None:
    findings = answered({"ant": {}, "bee": {}, "cat": {"throughput": 0.7}})
    assert findings.verdict == "equal"
    assert findings.decision.within is not None
    assert verdict.make_badge(findings) in ("ant or bee", "bee or ant")
    assert verdict.answer(findings).headline == verdict.make_badge(findings)
    assert re.match(
        r"(ant and bee|bee and ant) are equal within \d\.\d% in throughput", verdict.answer(findings).sentence
    )


@pytest.mark.parametrize(
    ("count", "badge"), [(2, r"\w+ or \w+"), (5, r"(\w+, ){3}\w+ or \w+"), (6, r"Any of 6, equal within \d\.\d+%")]
)
def test_a_badge_names_up_to_five_equals(count: int, badge: str) -> None:
    names = ("ant", "bee", "cat", "dog", "elk", "fox")[:count]
    findings = answered({name: {} for name in names} | {"eel": {"throughput": 0.7}}, spread=0.001)
    assert len(findings.decision.recommended) == count
    assert re.fullmatch(badge, verdict.make_badge(findings))
    assert all(name in verdict.answer(findings).short for name in names)


def test_an_undecided_lead_still_excludes_those_proven_worse() -> None:
    findings = answered({"ant": {}, "bee": {"throughput": 1.1}, "cat": {"throughput": 0.02}}, spread=0.2)
    assert (findings.verdict, set(findings.decision.front)) == ("undecided", {"ant", "bee"})
    answer = verdict.answer(findings)
    assert re.fullmatch(r"Undecided among 2 of 3: the difference is at most \d+%", answer.headline)
    changed = rf"Worse than {findings.decision.front[0]}: cat in throughput \(\N{{MINUS SIGN}}9\d%\)"
    assert re.search(changed, answer.rest)


def test_of_many_undecided_four_are_named_and_those_proven_worse() -> None:
    names = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")
    slow = {f"slow-{name}": {"throughput": 0.02} for name in names}
    alike: dict[str, dict[str, float]] = {name: {} for name in names}
    few = verdict.answer(answered(alike | {"slow-ant": {"throughput": 0.02}}, spread=0.3))
    assert re.match(r"(\w{3}, ){3}\w{3} and 4 more \(all but slow-ant\) are not proven different in ", few.short)
    many = verdict.answer(answered(alike | slow, spread=0.3))
    assert re.match(r"(\w{3}, ){3}\w{3} and 4 more are not proven different in ", many.short)
    assert many.rest.count("slow-") == 5
    assert many.rest.endswith("; and 3 more.")


def test_a_large_one_is_undecided_and_says_how_much_longer_it_takes() -> None:
    findings = answered({"ant": {"memory": 0.8}, "bee": {}}, spread=0.2)
    assert findings.verdict == "undecided"
    assert findings.decision.recommended == (), "memory says nothing of a throughput that nobody knows"
    assert re.fullmatch(r"Undecided: the difference is at most \d+%", verdict.make_badge(findings))
    estimate = re.search(
        r"are not proven different in throughput \(closed loop\): the difference is at most \d+%\. "
        r"About ([\d,]+) more blocks? of this scenario \(([\d,]+) minutes?\) would show whether "
        r"(ant and bee|bee and ant) are equal within 5%\.",
        verdict.answer(findings).sentence,
    )
    assert estimate is not None
    blocks, seconds = findings.decision.blocks_to_settle, findings.decision.seconds_to_settle
    assert blocks is not None
    assert seconds == pytest.approx(blocks * 2 * (2.6 + 0.03)), "with the canary after each trial"


def test_more_blocks_decide_between_those_that_are_open() -> None:
    """The bee is as good as the ant; whether the cat is, is open, as it scatters."""
    effects = {"ant": {"throughput": 1.01}, "bee": {}, "cat": {"spread": 0.12}}
    findings = answered(effects, spread=0.001, margin=0.05)
    assert findings.decision.open == ("ant", "cat")
    assert " would show whether ant and cat are equal within 5%." in verdict.answer(findings).sentence


def test_so_many_more_blocks_do_tell() -> None:
    """With the spread of the data, by the same method."""
    few = answered({"ant": {}, "bee": {"throughput": 1.05}}, spread=0.08).comparisons[0]
    count = stats.blocks_to_settle(few, math.log(1.05), 0.05, 1)
    assert count is not None
    for blocks, settled in ((count, True), (count - 1, False)):
        error = few.error * math.sqrt(few.blocks / blocks)
        half, above = stats.student(blocks - 1, 0.05) * error, stats.student(blocks - 1, 0.1) * error
        assert settled == (abs(few.mean) > half or abs(few.mean) + above <= math.log(1.05))


def test_among_equals_the_others_count_in_the_order_that_the_question_states() -> None:
    effects = {"ant": {"memory": 0.8, "cpu": 1.2}, "bee": {}}
    assert answered(effects).decision.recommended == ("bee",)
    assert answered(effects).decision.by == ("cpu",)
    stated = answered(effects, then_by=("memory", "cpu"))
    assert [axis.metric for axis in stated.axes] == ["throughput", "memory", "cpu", "p50", "p99"]
    assert (stated.decision.recommended, stated.decision.by) == (("ant",), ("memory",))
    sentence = verdict.answer(stated).sentence
    assert re.match(
        r"Take ant: memory decides among (ant and bee|bee and ant), which are equal within \d\.\d% in ", sentence
    )
    assert "between them no difference" not in sentence


def test_axes_that_leave_the_choice_to_a_later_one_are_named() -> None:
    sentence = verdict.answer(answered({"ant": {"memory": 0.8}, "bee": {}})).sentence
    assert "; between them no difference of 5% in p50, p99 or CPU is proven." in sentence


def test_a_server_that_has_too_few_blocks_does_not_make_the_others_unknown() -> None:
    run = drawn(0, 0.0, 0.002, 8, 0.0)
    fewer = tuple(trial for trial in run.trials if trial.contestant != "eel" or trial.block <= 4)
    findings = analyse(replace(run, trials=fewer)).scenarios[0]
    assert findings.verdict == "equal"
    assert findings.decision.undecided == ("eel",)
    assert set(findings.decision.near) == {"ant", "bee", "cat", "dog"}
    assert "There are too few blocks to decide about eel." in verdict.answer(findings).sentence


def test_only_what_matters_counts() -> None:
    effects = {"ant": {"cpu": 0.93}, "bee": {}}
    assert answered(effects, spread=0.005).decision.recommended == ("ant",)
    assert set(answered(effects, spread=0.005, margin=0.1).decision.recommended) == {"ant", "bee"}


@pytest.mark.parametrize(
    ("ant", "bee", "matters"),
    [(6.61, 7.21, False), (6.0, 6.9, False), (60.0, 64.0, False), (60.0, 68.0, True), (6.0, 7.2, True)],
)
def test_memory_decides_from_a_tenth_and_a_mebibyte_on(ant: float, bee: float, matters: bool) -> None:
    """In MiB; smaller differences are those of two programs of one model."""
    memory = {name: {"memory": size * 2**20 / BASE["memory"]} for name, size in (("ant", ant), ("bee", bee))}
    equal = answered(memory, spread=0.001)
    assert [comparison.different for comparison in axis_of(equal, "memory").comparisons] == [True]
    assert equal.decision.recommended == (("ant",) if matters else equal.decision.front)
    slower = answered({"ant": memory["ant"] | {"throughput": 1.2}, "bee": memory["bee"]}, spread=0.001)
    assert slower.verdict == "winner"
    assert ("memory" in verdict.answer(slower).rest) is matters


def test_memory_that_decides_nothing_is_named_with_its_own_least_change() -> None:
    effects = {"ant": {"memory": 0.96, "cpu": 0.8}, "bee": {}}
    sentence = verdict.answer(answered(effects, spread=0.001, then_by=("memory", "p50", "cpu"))).sentence
    assert "; between them no difference of 10% and 1 MiB in memory, or 5% in p50 is proven." in sentence


# --- ranks and figures -------------------------------------------------------------------------------------------


def test_a_smaller_figure_with_a_worse_rank_is_explained_by_its_blocks() -> None:
    """A message costs 1% more CPU in the bee than in the ant, in each block; but the bee lacks three slow blocks."""
    scenario = replace(QUESTION, metric="cpu", contestants=("ant", "bee"), blocks=12)
    costs = {
        (name, block): cost * (2 if block <= 6 else 1) * (1 + 0.001 * (-1) ** block)
        for name, cost in (("ant", 20_000.0), ("bee", 20_200.0 * 1.0005))
        for block in range(1, 13)
        if name == "ant" or block > 3
    }
    trials = tuple(
        made_trial(scenario, block, name, {}, BASE | {"cpu": cost * (1.0004 if (name, block % 3) == ("bee", 0) else 1)})
        for (name, block), cost in costs.items()
    )
    experiment = Experiment(name="paired", question="Which?", scenarios=(scenario,))
    run = replace(drawn(0, 0.0, 0.1, 5, 0.0), experiment=experiment, trials=trials)
    findings = analyse(run).scenarios[0]
    sentences = ranking.explain_ranks(findings)
    assert len(sentences) == 1
    assert re.fullmatch(
        r"In CPU, bee \(27\.\d us\) is ranked below ant \(30\.\d us\): ranks compare within blocks, where bee is at "
        r"\+1\.1% against ant \(95% interval \+1\.0% to \+1\.1%\)\.",
        sentences[0].replace("µ", "u"),
    ), sentences
    assert sentences[0] in caveats.list_caveats(findings)
    assert sentences[0] in print_table(analyse(run), 400)


def test_a_worse_rank_by_way_of_a_third_names_it() -> None:
    """The ant scatters so far that nothing is proven of it; the bee is proven worse than the cat."""
    effects = {"ant": {"cpu": 1.05, "spread": 0.1}, "bee": {"cpu": 1.06}, "cat": {}, "dog": {"cpu": 1.001}}
    findings = answered(effects, spread=0.002, metric="cpu")
    assert [rank(findings.axes[0], name) for name in effects] == [1, 3, 1, 1]
    assert re.fullmatch(
        r"In CPU, bee \(21\.2 us\) is ranked below ant \(21\.3 us\): ranks compare within blocks, where bee is at "
        r".0\.2% against ant \(95% interval .* to .*\); cat is proven better than bee\.",
        ranking.explain_ranks(findings)[0].replace("µ", "u"),
    )


def test_ranks_that_agree_with_the_figures_need_no_word() -> None:
    findings = answered({"ant": {}, "bee": {"throughput": 0.8, "p50": 1.3, "p99": 1.3, "cpu": 1.3}}, spread=0.001)
    assert ranking.explain_ranks(findings) == ()


def test_no_badge_says_tie() -> None:
    for name in MADE:
        for findings in analyse_made(name).scenarios:
            assert "tie" not in re.split(
                r"\W", f"{verdict.make_badge(findings)} {verdict.answer(findings).headline}".lower()
            )
