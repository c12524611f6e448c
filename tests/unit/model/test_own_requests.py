"""Requests of the user's own: options, contradictions, files, and what a stored run may hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.measure.trial.command import adapt_to_server, build_load_command, find_target
from netdyno.model.contestant import Contestant, Manifest, Own
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.options import check_stored, settings
from netdyno.model.own_requests import OwnRequests, check, escape, list_options
from netdyno.model.run import Run
from netdyno.present.prose.replies import describe_requests, describe_verification
from netdyno.question import experiment
from netdyno.question.contestants import codesize, own
from netdyno.question.plan import explain_skip
from netdyno.question.request_files import insert_files
from netdyno.verbs.own_servers import OwnServers, resolve, set_requests
from netdyno.verbs.permission import Given, ask, list_further_options

MINE = own.make_contestant("mine", Own(command="python3 {port}", workload="http", env=("A=1",), directory="/tmp"))
THEIRS = Contestant(
    name="theirs",
    manifest=Manifest(kind="command", model="m", summary="s", workloads=("http",)),
    command=("x",),
    available=True,
)
POST = Scenario(name="web", workload="http", contestants=("mine",), path=("/a=2", "/b"), data="{}", verify="hash")


def ask_for(scenario: Scenario) -> Experiment:
    return Experiment(name="web", question="?", scenarios=(scenario,))


def test_the_generator_gets_them_under_the_same_names() -> None:
    command = build_load_command(("load",), "tcp://127.0.0.1:80", settings(POST, {}), 1)
    assert command[1:6] == ["http://127.0.0.1:80", "--path=/a=2", "--path=/b", "--data={}", "--verify=hash"]
    assert "--size" not in command
    sent = Scenario(name="x", workload="bytes", send=r"PING\n", reply_size=7, repeatable=True)
    command = build_load_command(("load",), "tls://127.0.0.1:80 by /a b", settings(sent, {}), 1)
    assert command[1:5] == ["tls://127.0.0.1:80", "--unix-socket", "/a b", "--insecure"]
    assert command[5:8] == [r"--send=PING\n", "--reply-size=7", "--repeatable"]


def test_a_server_is_requested_by_the_name_of_its_address() -> None:
    named = own.make_contestant(
        "n", Own(command="", workload="http", address="tcp://127.0.0.1:1", host="h:1", tls=True)
    )
    assert find_target(named, "tcp://127.0.0.1:1") == "tls://127.0.0.1:1"
    assert adapt_to_server(settings(POST, {}), named).header == ("Host: h:1",)
    assert adapt_to_server(settings(POST, {}), MINE).header == ()


def test_a_server_that_closes_each_connection_gets_none_that_is_idle() -> None:
    closing = own.make_contestant("c", Own(command="c {port}", workload="http", closes=True))
    in_time = replace(POST, arrivals="poisson", rate=5)
    assert adapt_to_server(settings(in_time, {}), closing).connect_rate == "when-due"
    assert adapt_to_server(settings(in_time, {}), MINE).connect_rate == "burst"
    assert adapt_to_server(settings(POST, {}), closing).connect_rate == "burst", "a closed loop has none"
    command = build_load_command(("load",), "tcp://h:1", adapt_to_server(settings(in_time, {}), closing), 1)
    assert command[command.index("--connect-rate") + 1] == "when-due"


def test_a_scenario_has_them_as_keys(tmp_path: Path) -> None:
    (tmp_path / "body").write_text('{"a": 1}')
    (tmp_path / "paths").write_text("# two\n/x=3\n/y\n")
    text = f"""
question = "?"
contestants = ["*"]
blocks = 1
warmup = "0s"
duration = "1s"
[[scenario]]
name = "web"
workload = "http"
path = ["/a", "@{tmp_path}/paths"]
method = "PUT"
header = ["A: b"]
data = "@{tmp_path}/body"
expect-status = 201
"""
    (scenario,) = experiment.parse(text, "e", "e.toml").scenarios
    assert scenario.path == ("/a", "/x=3", "/y")
    assert (scenario.method, scenario.header, scenario.data) == ("PUT", ("A: b",), '{"a": 1}')
    assert scenario.expect_status == "201"
    with pytest.raises(UserError, match="method is for http, and send is not"):
        experiment.parse(text.replace("path = [", "send = 'a' #"), "e", "e.toml")
    with pytest.raises(UserError, match="key 'path': is for the workloads http and web, and not 'echo'"):
        experiment.parse(text.replace('"http"', '"echo"'), "e", "e.toml")


@pytest.mark.parametrize(
    ("requests", "fault"),
    [
        (OwnRequests(path=("/",), send="a"), "--path is for http, and --send is not; leave one of them out"),
        (OwnRequests(expect="a"), "--expect goes with --send"),
        (OwnRequests(send="a", reply_size=1, reply_until="b"), "--reply-until and --reply-size both say where"),
        (OwnRequests(verify="echo", path=("/",)), "--verify echo: each request has a URL of its own; leave --path out"),
        (OwnRequests(path=("/" + "a" * 70_000,)), "--path: all requests together have at most 64 KiB"),
        (OwnRequests(path=("/",), header=("A: b",), verify="status"), ""),
    ],
)
def test_contradictions_are_sentences(requests: OwnRequests, fault: str) -> None:
    assert check(requests, "--").startswith(fault)
    assert bool(check(requests, "--")) == bool(fault)


def test_bytes_of_a_file_are_written_on_one_line(tmp_path: Path) -> None:
    assert escape(b"a\r\n\0\\\xff@") == r"a\r\n\0\\\xff\x40"
    (tmp_path / "bytes").write_bytes(b"\x01A\n")
    assert insert_files({"send": f"@{tmp_path}/bytes"}, "--") == {"send": r"\x01A\n"}
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"--data: .*bytes is not UTF-8"):
        insert_files({"data": f"@{tmp_path}/bytes"}, "--")


def test_alone_they_get_a_path_and_beside_others_the_rule_of_all() -> None:
    plain = ask_for(Scenario(name="web", workload="http", contestants=("mine",)))
    both = ask_for(Scenario(name="web", workload="http", contestants=("mine", "theirs")))
    assert set_requests(plain, {}, [MINE]).scenarios[0].path == ("/",)
    assert set_requests(plain, {"verify": "echo"}, [MINE]).scenarios[0].path == ()
    assert set_requests(both, {}, [MINE, THEIRS]).scenarios[0].path == ()
    assert set_requests(plain, {"send": "a"}, [MINE]).scenarios[0].workload == "bytes"
    with pytest.raises(UserError, match="--path: theirs can only repeat the URL of a request"):
        set_requests(both, {"path": ("/a",)}, [MINE, THEIRS])
    rpc = ask_for(Scenario(name="rpc", workload="rpc", contestants=("mine",)))
    with pytest.raises(UserError, match="--path: experiment 'web' has no scenario of http"):
        set_requests(rpc, {"path": ("/a",)}, [MINE])


def test_others_skip_what_they_cannot_answer() -> None:
    assert explain_skip(MINE, POST, {}) == ""
    assert explain_skip(THEIRS, POST, {}).startswith("theirs can only repeat the URL of a request")


def test_a_stored_run_names_no_file_and_permission_covers_all_that_it_sends_and_sets() -> None:
    run = make_run(POST)
    check_stored("here", POST)
    with pytest.raises(UserError, match="a request that names a file"):
        check_stored("here", Scenario(name="web", workload="http", path=("/",), data="@/etc/passwd"))
    with pytest.raises(ValueError, match="is no variable"):
        own.check_stored(Own(command="a {port}", workload="http", env=("LD PRELOAD=x",)))
    words = ["--path=/a=2", "--path=/b", "--data={}", "--env=A=1", "--directory=/tmp"]
    assert list_further_options(run) == words
    command = ("python3 {port}",)
    ask(run, Given(command, further=tuple(words)), ())
    for word in words:
        with pytest.raises(UserError, match="the run also has this option, which is not named"):
            ask(run, Given(command, further=tuple(other for other in words if other != word)), ())


def make_run(scenario: Scenario) -> Run:
    about = codesize.describe([MINE], [])
    return Run(
        run_id="1",
        experiment=ask_for(scenario),
        started_at="",
        finished_at=None,
        environment={},
        trials=(),
        about=about,
    )


def test_the_report_says_what_was_sent_and_verified() -> None:
    assert describe_requests(POST) == "POST /a=2 and /b with a body of 2 bytes"
    assert (
        describe_verification(POST)
        == "Verified: status 2xx, that each reply is whole, and that equal URLs have equal replies."
    )
    assert describe_requests(Scenario(name="a", workload="echo")) == "31-byte messages"
    assert describe_verification(Scenario(name="a", workload="echo")) == ""
    sent = Scenario(name="a", workload="bytes", send=r"PING\n", expect="+PONG")
    assert describe_requests(sent) == r"messages PING\n"
    assert describe_verification(sent) == "Verified: a reply begins with +PONG, and ends as it should."


def test_settings_belong_to_servers_of_ones_own() -> None:
    with pytest.raises(UserError, match="--env is for your own servers"):
        resolve(OwnServers(settings={"env": ("A=1",)}), [])
    (mine,) = resolve(OwnServers(commands=("python3 {port}",), settings={"env": ("A=1",), "ready-timeout": 2.0}), [])
    assert mine.own is not None
    assert (mine.own.env, mine.own.ready_timeout_s) == (("A=1",), 2.0)
    assert list_options(OwnRequests()) == []
