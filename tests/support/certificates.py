"""Certificates that are made for a test, by the program openssl."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"


@dataclass(frozen=True)
class Authority:
    """Signs certificates; `file` is its own."""

    folder: Path
    file: Path

    def sign(self, name: str, alternatives: str = NAMES, days: int = 2) -> ssl.SSLContext:
        """Make the certificate of a server of this name. Of 0 days: it has expired."""
        key, request, certificate = (self.folder / f"{name}.{kind}" for kind in ("key", "request", "pem"))
        extensions = self.folder / f"{name}.extensions"
        extensions.write_text(alternatives)
        _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        signed_by = ("-CA", self.file, "-CAkey", self.folder / "trusted.key", "-CAcreateserial")
        options = ("-in", request, "-out", certificate, "-extfile", extensions, "-days", str(days))
        _openssl("x509", "-req", *signed_by, *options)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def make_authority(folder: Path) -> Authority | None:
    """None where there is no openssl."""
    if shutil.which("openssl") is None:
        return None
    file = folder / "trusted.pem"
    _openssl("req", "-x509", *_NEW_KEY, "-keyout", folder / "trusted.key", "-out", file, "-subj", "/CN=trusted")
    return Authority(folder, file)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
