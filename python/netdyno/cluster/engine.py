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
    from netdyno.cluster.secure_comm import RoleSecurity

CONNECT_S = 5.0
"""How long a scheduler or a host may take to be connected to."""
ANSWER_S = 10.0
"""How long a host may take to answer what it is asked between trials, the connection to it included."""
BEAT_S = 0.2
"""How often each side of a trial says that it is there."""
LOST_S = 1.0
"""How long nothing may be heard of a host before the trial has lost it."""
NEVER = "1000 days"
"""How often Dask reads its own loop and machine, which would wake each process of a cluster 50 times a second."""

_SETTINGS = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.retry.count": 0,
    "distributed.comm.timeouts.connect": CONNECT_S,
    "distributed.comm.timeouts.tcp": "11s",  # the least that it takes; what counts is LOST_S
    "distributed.scheduler.worker-ttl": "5s",
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.interval": NEVER,
    "distributed.admin.tick.cycle": NEVER,
    "distributed.admin.tick.interval": NEVER,
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


def security(folder: Path, role: Role, scheduler: str) -> RoleSecurity:
    """Mutual TLS by the certificate of a role; the settings above hold in this process from then on. Raises UserError
    where Dask or a file is missing."""
    need()
    import logging  # it locks around every fork, which nobody needs who measures on one machine

    import dask

    from netdyno.cluster import secure_comm

    files = authority.files(folder, role)
    dask.config.set(_SETTINGS)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    secure_comm.install()
    return secure_comm.RoleSecurity(files, secure_comm.Identity(role, scheduler))
