"""A framework is a contestant with an HTTP stack of its own: it is started as a server of the user's own is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import build_dir, certificate_path
from netdyno.measure.run import needed
from netdyno.measure.trial.command import build_load_command, build_server_command, may_reconnect
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.options import Settings, settings
from netdyno.question import scenarios
from netdyno.question.contestants import building, contestants, own, stand_in
from netdyno.question.plan import explain_skip

MANIFEST = {
    "kind": "framework",
    "model": "m",
    "summary": "s",
    "workloads": ["web"],
    "threads": "any",
    "settings": "its defaults (https://example.org/manual)",
    "run": ["{folder}/serve", "{address}:{port}", "-w{threads}"],
    "version": [sys.executable, "-c", "print('Fast 1.2')"],
}


def discover(tmp_path: Path, **changes: object) -> Contestant:
    folder = tmp_path / "servers" / "fast"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.json").write_text(json.dumps(MANIFEST | changes))
    (framework,) = contestants.discover(tmp_path, tmp_path / "build")
    return framework


def make_scenario(**keys: object) -> Scenario:
    return scenarios.parse({"name": "x", "workload": "web", **keys}, {}, "file")


def format_load(scenario: Scenario) -> list[str]:
    return build_load_command(("load",), "tcp://127.0.0.1:81", settings(scenario, {}), 1)


@pytest.mark.parametrize("key", ["run", "version", "settings"])
def test_its_manifest_says_how_it_is_started_and_set_and_what_it_is(tmp_path: Path, key: str) -> None:
    with pytest.raises(UserError, match=f"kind 'framework' needs the key '{key}'"):
        discover(tmp_path, **{key: "" if key == "settings" else []})


def test_a_stand_in_starts_it_with_address_port_and_threads(tmp_path: Path) -> None:
    framework = discover(tmp_path)
    assert (framework.available, framework.has_stand_in, framework.own) == (True, True, None)
    command = build_server_command(framework, settings(make_scenario(), {}), cores=3)
    request = stand_in.parse(command[command.index(str(own.STAND_IN)) + 1 :])
    words = stand_in.fill_in(request.command, request.address, 81, request.threads)
    assert words == [f"{tmp_path}/servers/fast/serve", "127.0.0.1:81", "-w3"]


def test_what_is_not_on_the_machine_is_a_stated_skip(tmp_path: Path) -> None:
    framework = discover(tmp_path, tools={"sh": "-", "no-such-tool": "install it"})
    assert (framework.available, framework.why_not) == (False, "no-such-tool not found: install it")


def test_what_the_build_lacks_is_a_stated_skip(tmp_path: Path) -> None:
    reason = contestants.skip_file(tmp_path / "build", "fast")
    reason.parent.mkdir(parents=True)
    reason.write_text("libnghttp2 not found: install libnghttp2-dev\n")
    assert discover(tmp_path, needs=["http2"]).why_not == "libnghttp2 not found: install libnghttp2-dev"


def test_its_version_and_its_settings_are_recorded(tmp_path: Path) -> None:
    framework = discover(tmp_path)
    lines = contestants.describe_frameworks([framework], tmp_path / "build", tmp_path)
    assert lines == ["fast: Fast 1.2; its defaults (https://example.org/manual)"]


def test_it_is_chosen_by_its_kind(tmp_path: Path) -> None:
    framework = discover(tmp_path)
    assert contestants.select([framework], ["framework:*"]) == (framework,)
    with pytest.raises(UserError):
        contestants.select([framework], ["cmake:*"])


def test_a_pattern_means_those_that_speak_a_workload_of_the_experiment(tmp_path: Path) -> None:
    framework = discover(tmp_path)
    other = msgspec.structs.replace(
        framework, name="calls", manifest=msgspec.structs.replace(framework.manifest, workloads=("grpc",))
    )
    both = [framework, other]
    assert contestants.select_able(both, ["framework:*"], {"grpc"}) == (other,)
    assert contestants.select_able(both, ["framework:*", "fast"], {"grpc"}) == (other, framework)
    assert contestants.select_able(both, ["*"], {"chat"}) == (other, framework)
    with pytest.raises(UserError, match="'fa\\*' matches only servers that speak none of grpc"):
        contestants.select_able(both, ["calls", "fa*"], {"grpc"})


def test_it_is_built_only_for_an_experiment_that_it_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []

    def prepare(contestant: Contestant, **_: object) -> Contestant:
        prepared.append(contestant.name)
        return contestant

    monkeypatch.setattr(contestants, "prepare", prepare)
    monkeypatch.setattr(building, "make", lambda *_: None)
    framework = discover(tmp_path)
    for workload in ("rpc", "web"):
        scenario = Scenario(name="x", workload=workload, contestants=("fast",))
        needed.make(Experiment(name="e", question="?", scenarios=(scenario,)), [framework], [], tmp_path)
    assert prepared == ["fast"]


def test_its_step_of_building_is_run_where_it_is_needed(tmp_path: Path) -> None:
    framework = discover(tmp_path, build=["touch", "{build}/frameworks/fast"])
    assert not (tmp_path / "build/frameworks").exists()
    assert contestants.prepare(framework, tmp_path, tmp_path / "build").available
    assert (tmp_path / "build/frameworks/fast").exists()
    failing = discover(tmp_path, build=["sh", "-c", "echo let npm reach its registry >&2; exit 1"])
    assert contestants.prepare(failing, tmp_path, tmp_path / "build").why_not.endswith("let npm reach its registry")


def test_it_gets_threads_and_no_other_option(tmp_path: Path) -> None:
    framework = discover(tmp_path)
    threads, backlog = (make_scenario(factors={name: [1, 2]}) for name in ("threads", "backlog"))
    assert explain_skip(framework, threads, {"threads": 2}) == ""
    reason = explain_skip(framework, backlog, {"backlog": 1})
    assert reason == "fast is a framework, which does not get the options backlog"


def test_one_that_cannot_spend_time_skips_such_cells(tmp_path: Path) -> None:
    floor = discover(tmp_path, spends_time=False)
    assert explain_skip(floor, make_scenario(), {}) == ""
    assert explain_skip(floor, make_scenario(**{"service-time": "1ms"}), {}) == "fast cannot spend a service time"


def test_one_without_streams_skips_such_cells(tmp_path: Path) -> None:
    streams = make_scenario(chunks=5, size=64)
    assert explain_skip(discover(tmp_path), streams, {}).startswith("fast answers with no stream")
    assert explain_skip(discover(tmp_path, streams=True), streams, {}) == ""


@pytest.mark.parametrize(("declared", "skip"), [(None, ""), (False, "fast answers with no stream")])
def test_another_server_has_streams_unless_it_says_so(tmp_path: Path, declared: bool | None, skip: str) -> None:
    framework = discover(tmp_path)
    manifest = msgspec.structs.replace(framework.manifest, kind="command", streams=declared)
    server = msgspec.structs.replace(framework, manifest=manifest)
    assert explain_skip(server, make_scenario(chunks=5, size=64), {}).startswith(skip)
    assert manifest.has_streams == (skip == "")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"workload": "rpc"}, "replies of 'web' can be streams"),
        ({"size": 31}, "at least 32 bytes"),
        ({"chunks": 9000}, "at most 1 MiB"),
        ({"every": "11s"}, "'every' is 1us to 10 s"),
        ({"service-time": "1ms"}, "leave 'service-time'"),
    ],
)
def test_what_cannot_be_a_stream_says_why(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_scenario(**{"chunks": 5, "size": 64, **wrong})


def test_a_framework_gets_the_certificate_where_its_command_has_a_place_for_it(tmp_path: Path) -> None:
    speaks_tls = {"run": ["{folder}/serve", "{tls}"], "workloads": ["grpc"], "options": ["tls"]}
    framework = discover(tmp_path, **speaks_tls)
    for tls, expected in (("on", str(certificate_path(build_dir()))), ("off", "")):
        scenario = make_scenario(workload="grpc", server={"tls": tls})
        assert explain_skip(framework, scenario, {}) == ""
        command = build_server_command(framework, settings(scenario, {}), cores=1)
        request = stand_in.parse(command[command.index(str(own.STAND_IN)) + 1 :])
        words = stand_in.fill_in(request.command, request.address, 81, request.threads, request.tls)
        assert words == [f"{tmp_path}/servers/fast/serve", expected]
    plain = discover(tmp_path, workloads=["grpc"])
    reason = explain_skip(plain, make_scenario(workload="grpc", server={"tls": "on"}), {})
    assert reason == "fast is a framework, which does not get the options tls"


@pytest.mark.parametrize("workload", ["web", "grpc"])
def test_each_request_asks_for_its_time_and_its_kind(workload: str) -> None:
    waiting = make_scenario(workload=workload, **{"service-time": "1ms"})
    computing = make_scenario(workload=workload, **{"service-time": "1ms"}, server={"service-kind": "cpu"})
    for scenario, kind in ((waiting, "wait"), (computing, "cpu")):
        words = format_load(scenario)
        assert words[words.index("--service-kind") + 1] == kind
        assert words[words.index("--service-time") + 1] == "1ms"


def test_a_time_of_the_server_is_none_of_web() -> None:
    with pytest.raises(UserError, match="'service-time': in 'web' each request asks for it"):
        make_scenario(server={"service-time": "1ms"})


def test_a_request_of_the_users_asks_for_no_time() -> None:
    with pytest.raises(UserError, match="a request of your own \\('path'\\) asks for none"):
        make_scenario(path=["/items"], **{"service-time": "1ms"})


def test_servers_of_web_answer_a_path_of_the_users(tmp_path: Path) -> None:
    items = make_scenario(path=["/items"])
    assert explain_skip(discover(tmp_path), items, {}) == ""
    assert "--service-kind" not in format_load(items)


def test_it_may_close_a_connection_after_a_reply(tmp_path: Path) -> None:
    framework = discover(tmp_path)
    plain: Settings = settings(make_scenario(), {})
    assert may_reconnect(framework, plain)
    own_manifest = msgspec.structs.replace(framework.manifest, kind="cmake")
    assert not may_reconnect(msgspec.structs.replace(framework, manifest=own_manifest), plain)
