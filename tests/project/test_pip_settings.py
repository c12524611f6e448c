"""What uv gets of pip's configuration. Pure functions, but for one call of a program that stands for uv."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pip_settings import parse_pip_config, uv_environment, uv_flags

ROOT = Path(__file__).resolve().parents[2]


def test_a_variable_beats_the_install_section_which_beats_global() -> None:
    listing = "\n".join(
        (
            ":env:.timeout='60'",
            "global.index-url='https://one.example/simple'",
            "global.timeout='15'",
            "install.index-url='https://two.example/simple'",
            "install.timeout='30'",
            "download.index-url='https://other.example/simple'",
        )
    )
    assert parse_pip_config(listing) == {"index-url": "https://two.example/simple", "timeout": "60"}


def test_a_value_is_read_as_pip_quotes_it() -> None:
    assert parse_pip_config("""global.index-url="https://u:it's@one.example/?a=b" """) == {
        "index-url": "https://u:it's@one.example/?a=b"
    }


def test_a_folder_of_wheels_that_is_not_there_is_passed_over_as_pip_does(tmp_path: Path) -> None:
    listing = f"global.find-links='\\n{tmp_path}\\n/no/such/folder\\nhttps://wheels.example/'"
    assert parse_pip_config(listing) == {"find-links": f"{tmp_path} https://wheels.example/"}
    assert parse_pip_config("global.find-links='/no/such/folder'") == {}


@pytest.mark.parametrize(
    ("option", "value", "variable", "expected"),
    [
        ("index-url", "https://one.example/simple", "UV_DEFAULT_INDEX", "https://one.example/simple"),
        ("extra-index-url", "https://a.example\nhttps://b.example", "UV_INDEX", "https://a.example https://b.example"),
        ("find-links", "https://a.example https://b.example", "UV_FIND_LINKS", "https://a.example,https://b.example"),
        ("cert", "/etc/company.pem", "SSL_CERT_FILE", "/etc/company.pem"),
        ("proxy", "http://proxy.example:3128", "ALL_PROXY", "http://proxy.example:3128"),
        ("default-timeout", "180", "UV_HTTP_TIMEOUT", "180"),
        ("trusted-host", "one.example two.example", "UV_INSECURE_HOST", "one.example two.example"),
    ],
)
def test_pip_says_it_to_uv(option: str, value: str, variable: str, expected: str) -> None:
    assert uv_environment({option: value}, {})[variable] == expected


@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_what_is_stated_to_uv_itself_wins(variable: str) -> None:
    environment = {variable: "https://mine.example/simple", "HOME": "/h"}
    settings = uv_environment({"index-url": "https://pip.example/simple"}, environment)
    assert "https://pip.example/simple" not in settings.values()
    assert environment.items() <= settings.items()


def test_system_certificates_are_used_where_none_are_named() -> None:
    assert uv_environment({}, {})["UV_SYSTEM_CERTS"] == "true"
    assert "UV_SYSTEM_CERTS" not in uv_environment({"cert": "/c.pem"}, {})
    assert "UV_SYSTEM_CERTS" not in uv_environment({}, {"SSL_CERT_DIR": "/c"})


def test_several_indexes_are_searched_as_pip_searches_them() -> None:
    assert uv_environment({"extra-index-url": "https://a.example"}, {})["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert "UV_INDEX_STRATEGY" not in uv_environment({"index-url": "https://a.example"}, {})


@pytest.mark.parametrize(("value", "flags"), [("true", ["--no-index"]), ("1", ["--no-index"]), ("false", [])])
def test_no_index_becomes_a_flag(value: str, flags: list[str]) -> None:
    assert uv_flags({"no-index": value}) == flags


def test_the_real_pip_is_queried_and_the_command_replaces_the_process(tmp_path: Path) -> None:
    configuration = tmp_path / "pip.conf"
    configuration.write_text("[global]\nindex-url = https://mirror.example/simple\nno-index = true\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    environment |= {"PIP_CONFIG_FILE": str(configuration), "PYTHONPATH": str(ROOT / "packages")}
    shown = subprocess.run(
        [sys.executable, "-m", "pip_settings", "/bin/sh", "-c", 'echo "$UV_DEFAULT_INDEX $0"'],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert shown == "https://mirror.example/simple --no-index\n"
