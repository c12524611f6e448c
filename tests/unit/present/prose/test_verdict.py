"""The answer to a scenario in words, of runs whose truth is known."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.exclusions import Fault
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial
from netdyno.present.prose import ground
from netdyno.present.prose.caveats import list_caveats
from netdyno.present.prose.loads import describe_load
from netdyno.present.prose.verdict import answer, list_evidence
from netdyno.present.report import render_html
from tests.support.builders.analysed import analysed, findings_of
from tests.support.builders.made_run import (
    EPOLL,
    FOLLY,
    LOCK,
    REUSEPORT,
    UDP,
    ZMQ,
    made_run,
    messages_run,
    paired_run,
    troubled_run,
)
from tests.support.undrawn import undrawn


def test_a_clients_own_part_is_stated_before_it_is_quoted() -> None:
    assert any(
        "The load came from client contestants" in text for text in list_caveats(analysed(paired_run()).scenarios[0])
    )
    assert not any(
        "client contestants" in text for findings in analysed(made_run()).scenarios for text in list_caveats(findings)
    )


def test_the_figures_of_a_load_program_of_others_are_called_its_own() -> None:
    run = made_run()
    first = replace(run.experiment.scenarios[0], client="tcpkali", arrivals="constant", rate_per_connection=1000)
    trials = tuple(
        replace(
            trial,
            load=replace(trial.load, instrument="tcpkali", send_lag_ns=replace(trial.load.send_lag_ns, p99=0, max=0)),
        )
        for trial in run.trials
        if trial.scenario == first.name and trial.load is not None
    )
    texts = list_caveats(
        analyse(replace(run, experiment=replace(run.experiment, scenarios=(first,)), trials=trials)).scenarios[0]
    )
    assert any(text.startswith("The figures of tcpkali are those of an external load program") for text in texts)
    assert not any("end lag" in text or "client contestants" in text for text in texts)


def test_valid_trials_without_the_metric_are_not_called_invalid() -> None:
    """For example those of a server with an unknown process, where CPU is ranked."""
    run = made_run()
    first = replace(run.experiment.scenarios[0], metric="cpu")
    experiment = replace(run.experiment, scenarios=(first,))
    trials = [trial for trial in run.trials if trial.scenario == first.name and trial.status == "valid"]
    unseen = {trial.contestant for trial in trials} - {EPOLL}
    for all_unseen, headline in ((False, EPOLL), (True, "No figure")):
        changed = tuple(
            replace(trial, server=None) if all_unseen or trial.contestant in unseen else trial for trial in trials
        )
        findings = analyse(replace(run, experiment=experiment, trials=changed)).scenarios[0]
        assert answer(findings).headline == headline
        invalid = [text for text in list_caveats(findings) if text.startswith("Not ranked, without a valid trial")]
        assert not any(name in text for name in unseen for text in invalid)
        (text,) = [
            caveat
            for caveat in list_caveats(findings)
            if caveat.startswith("Not ranked, without a figure for server CPU")
        ]
        assert all(name in text for name in unseen)
        assert "No trial of this workload was valid" not in answer(findings).sentence
        assert "only contestant with valid trials" not in answer(findings).sentence


def test_a_load_that_connects_again_says_so() -> None:
    plain = made_run().experiment.scenarios[0]
    single, ten = (msgspec.structs.replace(plain, requests_per_connection=count) for count in (1, 10))
    assert describe_load(single) == f"{describe_load(plain)}, a new connection for each request"
    assert describe_load(ten).endswith(", a new connection for each 10 requests")


def test_a_load_with_idle_connections_says_how_many_send() -> None:
    plain = made_run().experiment.scenarios[0]
    idle = msgspec.structs.replace(plain, connections=1000, busy_connections=10)
    assert describe_load(idle) == f"{describe_load(plain)}, on 10 connections, the others idle"
    varied = msgspec.structs.replace(idle, factors={"busy-connections": (10, 100)})
    assert "idle" not in describe_load(varied)


def test_a_chat_says_how_its_servers_deliver() -> None:
    chat = msgspec.structs.replace(made_run().experiment.scenarios[0], workload="chat", server={})
    for fields in ({"server": {"deliveries": "single"}}, {"where_possible": {"deliveries": "single"}}):
        single = msgspec.structs.replace(chat, **fields)
        assert describe_load(single) == f"{describe_load(chat)}, deliveries single"
        assert "deliveries" not in describe_load(msgspec.structs.replace(single, workload="rpc"))
    varied = msgspec.structs.replace(chat, factors={"deliveries": ("single", "joined")})
    assert "deliveries" not in describe_load(varied)


def test_polls_of_an_open_loop_are_stated_with_what_they_cost() -> None:
    plain = replace(made_run().experiment.scenarios[0], arrivals="constant", rate=100.0)
    polling = replace(plain, look_every_s=0.02, write_due="joined")
    ends = ", sent and read every 20ms (times up to 40ms too long), all messages due on a connection in one write"
    assert describe_load(polling) == describe_load(plain) + ends


def test_a_generator_at_its_limit_is_stated_with_what_would_help() -> None:
    (findings,) = (found for found in analysed(troubled_run()).scenarios if found.censored)
    (caveat,) = (text for text in list_caveats(findings) if "was at its limit with" in text)
    assert caveat.endswith(" More cores for the generator, or more of its threads, would show more.")


def test_switches_that_none_counted_are_unknown() -> None:
    """Threads that end with their clients take their count of switches along."""
    run = made_run()
    gone = tuple(
        replace(trial, server=replace(trial.server, threads_unread=3)) if trial.server else trial
        for trial in run.trials
    )
    emptied = analyse(replace(run, trials=gone))
    echo = findings_of(emptied, "echo")
    assert gone[0].load is not None
    assert METRICS["switches"].value(gone[0], gone[0].load) is None
    assert any("Context switches per message: an unknown number against" in text for text in list_evidence(echo))
    with undrawn():
        assert "unknown" in render_html(replace(emptied, scenarios=(echo,)))
    assert "an unknown number" not in " ".join(list_evidence(findings_of(analysed(run), "echo")))


def test_rounds_are_a_closed_loop_that_has_a_send_lag() -> None:
    """The generator can miss the moment of a round, so its error bar stands with the figures."""
    run = messages_run()
    (plain,) = run.experiment.scenarios
    in_rounds = msgspec.structs.replace(plain, round_s=0.1)
    experiment = msgspec.structs.replace(run.experiment, scenarios=(in_rounds,))
    findings = analyse(msgspec.structs.replace(run, experiment=experiment)).scenarios[0]
    assert "closed loop in rounds of 100ms" in answer(findings).sentence
    (loop,) = [text for text in list_caveats(findings) if text.startswith("Closed loop")]
    assert "In a round, all connections that have their replies send at the same moment" in loop
    assert any(text.startswith("Send lag, the error bar") for text in list_caveats(findings))

    assert not plain.scheduled
    assert in_rounds.scheduled
    assert msgspec.structs.replace(plain, factors={"round": ("0s", "1s")}).scheduled
    assert not any("Send lag" in text for text in list_caveats(analyse(run).scenarios[0]))


def test_caveats_name_the_loop_the_lag_and_which_lost_cells(analysis: Analysis) -> None:
    echo, rpc = findings_of(analysis, "echo"), findings_of(analysis, "rpc-open")
    assert any(text.startswith("Closed loop") for text in list_caveats(echo))
    assert any("trials excluded" in text and f"{LOCK} (1)" in text for text in list_caveats(echo))
    assert any(text.startswith("Send lag, the error bar") for text in list_caveats(rpc))
    assert all(any(FOLLY in text for text in list_caveats(findings)) for findings in analysis.scenarios)


def test_a_contestant_that_was_given_threads_is_named_with_those_it_ran(analysis: Analysis) -> None:
    def with_threads(trial: Trial) -> Trial:
        return replace(trial, added={"threads": trial.levels.get("connections", 50)})

    run = made_run()
    trials = tuple(with_threads(trial) if trial.contestant == LOCK else trial for trial in run.trials)
    echo = findings_of(analyse(replace(run, trials=trials)), "echo")
    note = [text for text in list_caveats(echo) if "serves one client per thread" in text]
    assert len(note) == 1
    assert note[0].startswith(LOCK)
    assert "for each connection: 11, 101 and 1001 threads in all" in note[0]
    assert not any(
        "serves one client per thread" in text for findings in analysis.scenarios for text in list_caveats(findings)
    )


@pytest.mark.parametrize(("ratio", "gap"), [(1.99, "99% above"), (2.0, "2.00 times that of")])
def test_from_double_upwards_a_gap_is_a_multiple(analysis: Analysis, ratio: float, gap: str) -> None:
    """In these comparisons the leader is `b`."""
    echo = findings_of(analysis, "echo")
    family = tuple(replace(comparison, ratio=1 / ratio) for comparison in echo.comparisons)
    assert f", {gap} asio-coroutines, the next" in answer(replace(echo, comparisons=family)).sentence


def test_no_answer_names_a_contestant_of_such_a_transport_without_its_loss(lossy: ScenarioFindings) -> None:
    assert lossy.verdict == "winner"
    assert answer(lossy).headline == f"{UDP} (0.02% lost)"
    assert answer(lossy).sentence.startswith(
        f"Take {UDP} (0.02% lost): it has the lowest mean response time over 2 loads of those that lost at most 0.1% "
        f"of their messages (closed loop), "
    )
    assert f"below {EPOLL}, the next" in answer(lossy).sentence
    assert answer(lossy).sentence.endswith(
        f" Ranked separately, as they lost more than 0.1% of the messages in some trial: {REUSEPORT} (12% lost)."
    )
    texts = (answer(lossy).sentence, *list_evidence(lossy))
    for name in (UDP, REUSEPORT):
        assert all(f"{name} (" in text or f"{name}: lost" in text for text in texts if name in text)


def test_a_server_that_is_faulty_is_not_reported_again_among_those_that_lost_too_much(lossy: ScenarioFindings) -> None:
    fault = (Fault("died", 1, 5, "it was gone"),)
    faulty = tuple(
        replace(standing, faults=fault if standing.contestant == REUSEPORT else ()) for standing in lossy.standings
    )
    assert "Ranked separately, as they lost" not in answer(replace(lossy, standings=faulty)).sentence


def test_where_everybody_lost_too_much_the_sentence_that_names_the_first_says_so() -> None:
    (findings,) = analysed(messages_run(5, everybody=True)).scenarios
    assert findings.verdict == "winner"
    assert all(standing.kind > 0 for standing in findings.standings)
    assert [standing.rank for standing in findings.standings] == [1, 2]
    first, *_ = answer(findings).sentence.split(". ")
    assert f"{REUSEPORT} (25% lost)" in first
    assert "though all of them lost more than 0.1% of their messages" in first
    run = messages_run(5, everybody=True)
    alone = analyse(replace(run, trials=tuple(trial for trial in run.trials if trial.contestant == UDP))).scenarios[0]
    assert alone.verdict == "unopposed"
    assert "(25% lost) is the only contestant with valid trials, though it lost more" in answer(alone).sentence


def test_a_loss_is_reported_with_its_shares_and_its_places(lossy: ScenarioFindings) -> None:
    (text,) = [text for text in list_evidence(lossy) if f"{REUSEPORT}: lost" in text]
    cell = lossy.cell(REUSEPORT, "connections=1000")
    assert cell is not None
    assert cell.loss is not None
    drops, lost = cell.loss.drops, cell.loss.messages
    assert f"{REUSEPORT}: lost 12%, late 0.0997%, duplicated 0.02%, reordered 0.5%. Dropped: " in text
    assert f"{drops.generator:,} datagrams at the generator's sockets" in text
    assert (
        f"{drops.server:,} datagrams at the server's sockets, whose buffers were full (each request costs 1,000 "
        in text
    )
    assert drops.server is not None
    assert drops.generator is not None
    uncounted = lost - 1000 * drops.server - drops.generator
    assert f"the other {uncounted:,} of {lost:,} lost messages were counted nowhere" in text
    assert not any(ZMQ + ":" in text for text in list_evidence(lossy))  # it lost nothing
    assert any(
        "are marked in every figure: more than 0.1% of the messages lost" in text for text in list_caveats(lossy)
    )
    assert any("loss makes them look better" in text for text in list_caveats(lossy))


def test_what_a_server_had_and_did_not_serve_is_lost_to_everybody() -> None:
    run = messages_run()

    def refused(trial: Trial) -> Trial:
        assert trial.server is not None
        totals = {**trial.server.totals, "receive_dropped": 2}
        return replace(trial, kernel={}, server=replace(trial.server, totals=totals))

    findings = analyse(replace(run, trials=tuple(map(refused, run.trials)))).scenarios[0]
    (text,) = [text for text in list_evidence(findings) if f"{REUSEPORT}: lost" in text]
    cell = findings.cell(REUSEPORT, "connections=1000")
    assert cell is not None
    assert cell.loss is not None
    assert "Dropped: 10 requests by the server, which had too many waiting (each request costs 1,000 messages)" in text
    assert f"the other {cell.loss.messages - 10_000:,} of" in text


def test_over_lan_the_kernel_at_the_server_does_not_count_what_the_generator_drops() -> None:
    """The same counters mean more there: what the server's sockets did not drop was dropped elsewhere."""
    run = messages_run()
    lan = analyse(replace(run, experiment=run.experiment.with_each(link="lan"))).scenarios[0]
    for findings, elsewhere in ((analyse(run).scenarios[0], lambda _: 0), (lan, lambda drops: drops.generator)):
        cell = findings.cell(REUSEPORT, "connections=1000")
        assert cell is not None
        assert cell.loss is not None
        assert cell.loss.drops.generator
        assert cell.loss.drops.elsewhere == elsewhere(cell.loss.drops)


def test_a_loss_that_none_counted_is_called_unknown() -> None:
    run = messages_run()

    def uncounted(trial: Trial) -> Trial:
        return replace(trial, kernel={})

    (findings,) = analyse(replace(run, trials=tuple(map(uncounted, run.trials)))).scenarios
    (text,) = [text for text in list_evidence(findings) if f"{REUSEPORT}: lost" in text]
    assert text.endswith("Where they were lost is unknown: no drop was counted.")


def test_over_streams_nothing_is_stated_of_loss(analysis: Analysis) -> None:
    for findings in analysis.scenarios:
        assert not findings.may_lose
        assert not any("% lost" in text for text in (answer(findings).sentence, *list_evidence(findings)))
        assert not any("look better" in text for text in list_caveats(findings))


def test_what_a_server_was_given_where_possible_is_stated(lossy: ScenarioFindings) -> None:
    assert f"Options set only where supported: threads 2 ({REUSEPORT})." in list_caveats(lossy)


def test_what_one_core_of_the_server_cannot_show_stands_with_the_answer() -> None:
    run = made_run()
    known = tuple(
        replace(contestant, threads="any") if contestant.kind == "server" else contestant for contestant in run.about
    )
    for findings in analyse(replace(run, about=known)).scenarios:
        sentences = ground.list_caveats(findings.ground)
        assert sentences[0].startswith("The server had one core: lock contention and parallel work cannot show here")
        assert set(sentences) <= set(list_caveats(findings))
