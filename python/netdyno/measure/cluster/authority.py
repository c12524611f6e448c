"""The private certificate authority of a cluster. Its certificates carry a role in their subject, to which their
holders are bound (secure_comm.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ENTRY
from netdyno.kit.toml import read_table
from netdyno.kit.url import parse_tls_url

Role = Literal["scheduler", "server", "client", "control"]
"""The roles, each with a certificate of its own, which decides on the operations that a peer may request."""
ROLES: tuple[Role, ...] = get_args(Role)
TOPOLOGY = "cluster.toml"
DAYS = 365
SUBJECT = "netdyno "
"""The text before the role, in the common name of a certificate."""
_CONFIGURATION = """\
[req]
distinguished_name = name
prompt = no
[name]
CN = {subject}{role}
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[holder]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
"""
"""The configuration for openssl-req(1); each side of a connection shows its certificate, so every holder is server and
client of TLS."""


class Files(NamedTuple):
    """The files of the folder that a host of a role needs."""

    authority: Path
    certificate: Path
    key: Path


def create(folder: Path, scheduler: str, days: int = DAYS) -> None:
    """Make the authority and a certificate for each role. Raises UserError where the folder is not empty, or openssl(1)
    is missing or fails."""
    parse_tls_url(scheduler)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty: certificates are made once, and in a folder of their own")
    if shutil.which("openssl") is None:
        raise UserError("openssl not found: install the package openssl")
    before = os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make_certificate(folder, "ca", "authority", days)
        for role in ROLES:
            _make_certificate(folder, role, "holder", days, "-CA", "ca.pem", "-CAkey", "ca-key.pem")
        (folder / TOPOLOGY).write_text(f'scheduler = "{scheduler}"\n', encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        os.umask(before)


def find_files(folder: Path, role: Role) -> Files:
    """Return the files of a role. Raises UserError where one of them is missing, or they are not for this role."""
    paths = Files(folder / "ca.pem", folder / f"{role}.pem", folder / f"{role}-key.pem")
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path} is missing; {_ADVICE}")
    carried = read_role(_read_certificate(paths))
    if carried != role:
        raise UserError(f"{paths.certificate} is a certificate for {carried or 'no role'}, not for {role}; {_ADVICE}")
    return paths


_ADVICE = f"{ENTRY} cluster init makes such a folder (docs/many-machines.md)"


def read_role(certificate: Mapping[str, Any]) -> Role | None:
    """Return the role that a certificate carries, as ssl.SSLSocket.getpeercert() returns it; None where it is none.
    Pure."""
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return next((role for role in ROLES if names == [f"{SUBJECT}{role}"]), None)


def _read_certificate(files: Files) -> Mapping[str, Any]:
    """Read a host's own certificate, by a handshake of TLS with itself: Python reads only the certificates of peers.
    Raises UserError where a peer would not accept it."""
    import ssl  # not needed for measurements on one machine

    try:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(files.certificate, files.key)
        client = ssl.create_default_context(cafile=str(files.authority))
        client.check_hostname = False
        outgoing, incoming = ssl.MemoryBIO(), ssl.MemoryBIO()
        near, far = client.wrap_bio(incoming, outgoing), server.wrap_bio(outgoing, incoming, server_side=True)
        for side in (near, far, near, far):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        return near.getpeercert() or {}
    except OSError as error:
        raise UserError(f"{files.certificate} cannot be used: {error}; {_ADVICE}") from error


def read_scheduler(folder: Path) -> str:
    """Read the address of a cluster's scheduler. Raises UserError."""
    path = folder / TOPOLOGY
    address = read_table(path).get("scheduler")
    if not isinstance(address, str):
        raise UserError(f"{path}: key 'scheduler': must be an address such as \"tls://10.0.0.1:8786\"")
    parse_tls_url(address)
    return address


def _make_certificate(folder: Path, name: str, extensions: str, days: int, *signed_by: str) -> None:
    words = ["openssl", "req", "-x509", *signed_by, "-config", "/dev/stdin", "-extensions", extensions]
    words += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", str(days)]
    words += ["-keyout", f"{name}-key.pem", "-out", f"{name}.pem"]
    configuration = _CONFIGURATION.format(subject=SUBJECT, role=name)
    done = subprocess.run(words, cwd=folder, input=configuration, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"openssl could not make the certificate {name}.pem: {done.stderr.strip()}")
