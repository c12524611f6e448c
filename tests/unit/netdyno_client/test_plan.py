"""The command line of a client in Python: the options of protocol/client.md, and nothing else."""

from __future__ import annotations

import pytest

from netdyno.kit.url import TcpUrl
from netdyno_client.plan import parse_client_plan
from tests.contract.clients.bad_values import BAD_URLS, BAD_VALUES, NOT_FOR_CLIENTS

URL = "tcp://127.0.0.1:9"


def test_defaults_are_those_of_the_contract() -> None:
    plan = parse_client_plan("client", [URL])
    assert (plan.url, plan.connections, plan.size) == (TcpUrl("127.0.0.1", 9), 1, 31)
    assert (plan.duration_ns, plan.warmup_ns) == (10**10, 10**9)
    assert (plan.connect_timeout_ns, plan.timeout_ns, plan.retry_delay_ns) == (5 * 10**9, 5 * 10**9, 10**8)
    assert (plan.linger_ns, plan.service_us, plan.nodelay, plan.split, plan.seed) == (0, 0, True, False, 1)
    assert (plan.json_file, plan.events_fd) == ("", -1)


def test_every_option_is_taken() -> None:
    words = (
        "--workload rpc -c 7 --size 1KiB --duration 250ms --warmup 0 --connect-timeout 2s --timeout 3s --seed 9 "
        "--retry-delay 1us --linger 50ms --service-time 4ms --nodelay off --write-mode split --json - --events-fd 1"
    )
    plan = parse_client_plan("client", [*words.split(), URL])
    assert (plan.connections, plan.size, plan.duration_ns, plan.warmup_ns) == (7, 1024, 250_000_000, 0)
    assert (plan.connect_timeout_ns, plan.timeout_ns, plan.retry_delay_ns) == (2 * 10**9, 3 * 10**9, 1000)
    assert (plan.linger_ns, plan.service_us) == (50_000_000, 4000)
    assert (plan.nodelay, plan.split, plan.seed) == (False, True, 9)
    assert (plan.json_file, plan.events_fd) == ("-", 1)
    assert parse_client_plan("client", [URL, "--connections", "3"]).connections == 3
    assert parse_client_plan("client", [URL, "--service-time", "10s"]).service_us == 10_000_000  # the longest


def test_a_workload_is_one_that_the_client_speaks(capsys: pytest.CaptureFixture[str]) -> None:
    chat = [URL, "--workload", "chat"]
    assert parse_client_plan("client", [URL]).workload == "rpc"
    assert parse_client_plan("client", chat, ("rpc", "chat")).workload == "chat"
    with pytest.raises(SystemExit):
        parse_client_plan("client", [*chat, "--service-time", "1ms"], ("rpc", "chat"))
    assert "--service-time is for rpc" in capsys.readouterr().err
    assert parse_client_plan("client", chat, ("rpc", "chat")).depth == 1
    assert parse_client_plan("client", [*chat, "--depth", "4"], ("rpc", "chat")).depth == 4
    with pytest.raises(SystemExit):
        parse_client_plan("client", [URL, "--depth", "4"], ("rpc", "chat"))
    assert "--depth is for chat" in capsys.readouterr().err
    assert parse_client_plan("client", [*chat, "--start", "at-once"], ("rpc", "chat")).speaks_at_once
    with pytest.raises(SystemExit):
        parse_client_plan("client", [URL, "--start", "at-once"], ("rpc", "chat"))
    assert "--start at-once is for chat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "required: url"),
        (["nonsense"], "is no URL"),
        ([URL, "again"], "unrecognized arguments: again"),
        ([URL, "--depth", "2"], "unrecognized arguments: --depth"),
        ([URL, "--dur", "1s"], "unrecognized arguments: --dur"),
        ([URL, "--workload", "chat"], "--workload: 'chat' is not one of rpc"),
        ([URL, "-c", "0"], "'0' is not a whole number from 1 to 1000000"),
        ([URL, "-c", "1_0"], "is not a whole number"),
        ([URL, "--size", "27"], "a message that identifies itself has 28 to 67108864 bytes"),
        ([URL, "--size", "1GiB"], "a message that identifies itself"),
        ([URL, "--size", "1kb"], "is no size"),
        ([URL, "--duration", "0"], "--duration must be longer than 0"),
        ([URL, "--duration", "5"], "is not a duration"),
        ([URL, "--timeout", "0s"], "--timeout must be longer than 0"),
        ([URL, "--connect-timeout", "0s"], "--connect-timeout must be longer than 0"),
        ([URL, "--service-time", "11s"], "--service-time is at most 10s"),
        ([URL, "--events-fd", "999"], "--events-fd: descriptor 999 is not open"),
        ([URL, "--nodelay", "\x1b[2J"], "--nodelay"),
        ([URL, "--\x1b[2J\nevil"], "unrecognized arguments"),
    ],
)
def test_what_cannot_be_meant_is_one_harmless_line_and_exit_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_client_plan("client", words)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.startswith("client: ")
    assert message in err
    assert err.count("\n") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *((option, value) for option in BAD_VALUES for value in BAD_VALUES[option]),
        *((option, "2") for option in NOT_FOR_CLIENTS),
    ],
)
def test_what_no_client_takes_is_one_line_that_names_its_option(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_client_plan("client", [URL, option, value])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert option.lstrip("-") in err


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_bad_url_is_one_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_client_plan("client", [url])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)


def test_help_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_client_plan("client", ["--help"])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert all(option in out for option in ("--retry-delay", "--events-fd", "--write-mode", "-c X"))
