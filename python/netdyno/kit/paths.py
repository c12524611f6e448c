"""The paths of the project: the repository is found from the package's own place, the build directory may be moved. An
installed wheel holds a small tree instead: experiments, manifests, and the programs that load and observe."""

from __future__ import annotations

import os
from pathlib import Path

_INSTALLED = Path(__file__).resolve().parents[1] / "installed"
IS_INSTALLED = _INSTALLED.is_dir()
"""Whether this is an installed wheel (packages/wheel) and no clone."""
ROOT = _INSTALLED if IS_INSTALLED else Path(__file__).resolve().parents[3]
ENTRY = "netdyno" if IS_INSTALLED else "./netdyno"
"""How a user calls netdyno."""
RESULTS = Path("netdyno-results") if IS_INSTALLED else ROOT / "results"
"""The default folder of stored runs: the clone's, else one in the current folder."""
NEEDS_CLONE = "it needs a clone of netdyno's repository (this is an installation without sources)"


def build_dir() -> Path:
    """Return the folder of the programs to run: $NETDYNO_BUILD, else that of the preset that ./netdyno would take."""
    return Path(os.environ.get("NETDYNO_BUILD") or ROOT / "build" / (os.environ.get("NETDYNO_PRESET") or "release"))


def relay_path(build: Path) -> Path:
    """The relay of the link wan inside a build directory (it need not exist)."""
    return build / "link" / "netdyno-link"


def generator_path(build: Path) -> Path:
    """The load generator inside a build directory (it need not exist)."""
    return build / "loadgen" / "netdyno-load"


def launcher_path(build: Path) -> Path:
    """The launcher in a build directory, for servers that are not written in C++: it reads their options."""
    return build / "launch" / "netdyno-launch"


def backend_path(build: Path) -> Path:
    """The program in a build directory that is the backend of other servers: the calibration server."""
    return build / "servers" / "calibration"


def postgresql_path(build: Path) -> Path:
    """The library in a build directory that a server loads where its backend is PostgreSQL."""
    return build / "postgresql" / "netdyno-postgresql.so"


def certificate_path(build: Path) -> Path:
    """The certificate and the key of servers that speak TLS, in a build directory (lib/tls/CMakeLists.txt)."""
    return build / "tls" / "server.pem"


def tls_layer_path(build: Path) -> Path:
    """The library in a build directory that a server loads where it speaks TLS."""
    return build / "tls" / "netdyno-tls.so"


def canary_path(build: Path) -> Path:
    """The canary inside a build directory (it need not exist)."""
    return build / "canary" / "netdyno-canary"
