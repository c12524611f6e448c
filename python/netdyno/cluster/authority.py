"""The private certificate authority of a cluster: whoever holds a certificate of it may run programs on its hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from netdyno.base.errors import UserError
from netdyno.base.url import parse_tls_url

Role = Literal["scheduler", "server", "client", "control"]
"""Each has a certificate of its own, so that one host's can be told from another's in a log."""
ROLES: tuple[Role, ...] = get_args(Role)
TOPOLOGY = "cluster.toml"
DAYS = 365
_CONFIGURATION = """\
[req]
distinguished_name = name
prompt = no
[name]
CN = netdyno {who}
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[holder]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
"""
"""Of openssl-req(1); each side of a connection shows its certificate, so every holder is server and client of TLS."""


class Files(NamedTuple):
    """What a host of a role needs of the folder."""

    authority: Path
    certificate: Path
    key: Path


def init(folder: Path, scheduler: str, days: int = DAYS) -> None:
    """Make the authority and a certificate for each role. Raises UserError where the folder has something already, or
    openssl(1) is missing or fails."""
    parse_tls_url(scheduler)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty: certificates are made once, and in a folder of their own")
    if shutil.which("openssl") is None:
        raise UserError("openssl not found: install the package openssl")
    before = os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _certificate(folder, "ca", "authority", days)
        for role in ROLES:
            _certificate(folder, role, "holder", days, "-CA", "ca.pem", "-CAkey", "ca-key.pem")
        (folder / TOPOLOGY).write_text(f'scheduler = "{scheduler}"\n', encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        os.umask(before)


def files(folder: Path, role: Role) -> Files:
    """Raises UserError where one of them is missing."""
    found = Files(folder / "ca.pem", folder / f"{role}.pem", folder / f"{role}-key.pem")
    for path in found:
        if not path.is_file():
            raise UserError(f"{path} is missing; ./netdyno cluster init makes such a folder (docs/many-machines.md)")
    return found


def scheduler_of(folder: Path) -> str:
    """Where the scheduler of a cluster listens. Raises UserError."""
    path = folder / TOPOLOGY
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8")).get("scheduler")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    if not isinstance(said, str):
        raise UserError(f"{path}: key 'scheduler': must be an address such as \"tls://10.0.0.1:8786\"")
    parse_tls_url(said)
    return said


def _certificate(folder: Path, name: str, extensions: str, days: int, *signed_by: str) -> None:
    words = ["openssl", "req", "-x509", *signed_by, "-config", "/dev/stdin", "-extensions", extensions]
    words += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", str(days)]
    words += ["-keyout", f"{name}-key.pem", "-out", f"{name}.pem"]
    given = _CONFIGURATION.format(who=name)
    done = subprocess.run(words, cwd=folder, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"openssl could not make the certificate {name}.pem: {done.stderr.strip()}")
