"""What an option's value means to servers in Python, where the contract suite only sees whether it is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from netdyno.base.paths import ROOT
from netdyno_server.options import UsageError, parse


@pytest.mark.parametrize(
    ("argument", "key", "value"),
    [
        ("--listen=tcp://[::1%lo]:7", "listen", ("::1%lo", 7)),
        ("--listen=tcp://a-b.example:65535?x", "listen", ("a-b.example", 65535)),
        ("--read-buffer=7", "read_buffer", 7),
        ("--read-buffer=16KiB", "read_buffer", 16384),
        ("--outbox-limit=1024GiB", "outbox_limit", 1 << 40),
        ("--service-time=250us", "service_time", 250_000),
        ("--service-time=1.5s", "service_time", 1_500_000_000),
        ("--service-time=.5m", "service_time", 30_000_000_000),
        ("--service-time=0", "service_time", 0),
        ("--service-kind=cpu", "service_kind", "burn"),
        ("--nodelay=off", "nodelay", False),
        ("--audience=all", "to_all", True),
    ],
)
def test_a_value(argument: str, key: str, value: object) -> None:
    assert getattr(parse("server", [argument]), key) == value


@pytest.mark.parametrize(
    "arguments", [["--backlog=1", "--backlog=1"], ["--service-time=1e3s"], ["--listen=tcp://a b:1"], ["--backlog=²"]]
)
def test_what_cannot_be_meant(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match=r"^--"):
        parse("server", arguments)


def test_refusing_an_option_imports_nothing_that_takes_time() -> None:
    code = "import sys; import netdyno_server.options; print('re' in sys.modules, 'asyncio' in sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(ROOT / 'python')!r}); {code}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "False False\n"
