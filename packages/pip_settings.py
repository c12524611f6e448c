"""Runs uv with the settings of the user's pip: index, certificates, proxy, time limit.

uv reads neither pip's configuration files nor its PIP_* variables (uv's manual, "Compatibility with pip"), so on a
machine whose way to a package index is written there, uv alone would not find it. Settings of uv itself win. Runs
before anything is installed, so it, and the package's __init__, may import the standard library only.

    python -m pip_settings UV ARGUMENT...
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# pip's own order, weakest first: [global], then the section of the command, then the PIP_* variables.
SECTIONS = ("global", "install", ":env:")

# pip option, the variable that sets the same for uv.
VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}

# pip's lists are separated by white space; so are uv's, but for this one.
SEPARATORS = {"UV_FIND_LINKS": ","}

# A user who names an index in an older way has named one: pip's must not be added to it.
ALREADY_SAID_BY = {"UV_DEFAULT_INDEX": ("UV_INDEX_URL",), "UV_INDEX": ("UV_EXTRA_INDEX_URL",)}


def parse_pip_config(listing: str) -> dict[str, str]:
    """Return the options in force, from the output of `pip config list` (`section.option='value'` a line)."""
    options_of: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.strip().rpartition(".")
        if section in options_of:
            options_of[section][option] = str(ast.literal_eval(value))
    options = {option: value for section in SECTIONS for option, value in options_of[section].items()}
    if "find-links" in options:
        options["find-links"] = " ".join(filter(is_a_place, options["find-links"].split()))
    return {option: value for option, value in options.items() if value}


def is_a_place(link: str) -> bool:
    """Whether pip would look there: it skips a folder that does not exist, where uv would stop."""
    return "://" in link or link.startswith("file:") or Path(link).exists()


def uv_environment(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with pip's options under uv's names, where it does not set the same already."""
    added: dict[str, str] = {}
    for option, variable in VARIABLES.items():
        is_set = any(name in environment for name in (variable, *ALREADY_SAID_BY.get(variable, ())))
        if option in options and not is_set:
            added[variable] = SEPARATORS.get(variable, " ").join(options[option].split())
    if "UV_INDEX" in added:
        # pip looks in all its indexes at once; uv stops at the first that knows the name. The hashes make that safe.
        added.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    if not {"SSL_CERT_FILE", "SSL_CERT_DIR"} & {*environment, *added}:
        added["UV_SYSTEM_CERTS"] = "true"
    return {**added, **environment}


def uv_flags(options: Mapping[str, str]) -> list[str]:
    """Return the options that uv takes as a flag only."""
    return ["--no-index"] if options.get("no-index", "").lower() in {"1", "true", "yes", "on"} else []


def main(command: list[str]) -> None:
    """Replace this process by `command` with pip's settings. Raises CalledProcessError where pip cannot list them."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    options = parse_pip_config(listing)
    os.execve(command[0], [*command, *uv_flags(options)], uv_environment(options, os.environ))


if __name__ == "__main__":
    main(sys.argv[1:])
