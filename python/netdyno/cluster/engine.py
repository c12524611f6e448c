"""Dask distributed as it is used here: which of its settings are not its defaults, and that it is there at all.
docs/adr/dask.md says why each is so."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from netdyno.base.errors import UserError
from netdyno.cluster import authority
from netdyno.cluster.authority import Role

if TYPE_CHECKING:
    from distributed import Security

CONNECT_S = 5.0
"""How long a scheduler or a host may take to be connected to."""
ANSWER_S = 10.0
"""How long a host may take to answer what it is asked between trials, the connection to it included."""
BEAT_S = 0.2
"""How often each side of a trial says that it is there."""
LOST_S = 1.0
"""How long nothing may be heard of a host before the trial has lost it."""
SUBMIT = {"pure": False, "retries": 0, "allow_other_workers": False}
"""How every task is submitted: with `pure`, Dask would hand back the result of the last trial that was asked alike."""

_SETTINGS = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.retry.count": 0,
    "distributed.comm.timeouts.connect": CONNECT_S,
    "distributed.comm.timeouts.tcp": "11s",  # the least that it takes; what counts is LOST_S
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.no-workers-timeout": "2s",
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "5s",
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


class GoneError(Exception):
    """A run cannot go on where it was; the text says why."""


def need() -> None:
    """Raises UserError where it is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise UserError(
            "many machines need Dask distributed, the extra `cluster` of pyproject.toml, which is not installed here: "
            ".venv/bin/python -m pip install --require-hashes -r requirements.lock"
        )


def security(folder: Path, role: Role) -> Security:
    """Mutual TLS by the certificate of a role; the settings above hold in this process from then on. Raises UserError
    where Dask or a file is missing."""
    need()
    import logging  # it locks around every fork, which nobody needs who measures on one machine

    import dask
    from distributed import Security

    files = authority.files(folder, role)
    dask.config.set(_SETTINGS)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    # Of a scheduler that is gone a run tells itself; its client would add how it failed to connect again.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    # Dask tells apart as what a process speaks; it has one certificate.
    each = {
        f"tls_{side}_{part}": str(path)
        for side in ("scheduler", "worker", "client")
        for part, path in (("cert", files.certificate), ("key", files.key))
    }
    return Security(tls_ca_file=str(files.authority), require_encryption=True, **each)
