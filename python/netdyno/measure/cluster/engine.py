"""Dask distributed as it is used here: the check that it is installed, and its settings that are not the defaults.
docs/adr/dask.md says why each is so."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from netdyno.kit.errors import UserError
from netdyno.measure.cluster import authority
from netdyno.measure.cluster.authority import Role

if TYPE_CHECKING:
    from netdyno.measure.cluster.secure_comm import RoleSecurity

CONNECT_S = 5.0
"""Seconds that a connection to a scheduler or a host may take."""
ANSWER_S = 10.0
"""Seconds that a host may take to answer a request between trials, the connection to it included."""
BEAT_S = 0.2
"""The interval of the signs of life from each side of a trial."""
LOST_S = 1.0
"""The silence of a host after which the trial has lost it."""
NEVER = "1000 days"
"""The interval of Dask's readings of its own loop and machine, which would wake each process of a cluster 50 times a
second."""

_SETTINGS = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.retry.count": 0,
    "distributed.comm.timeouts.connect": CONNECT_S,
    "distributed.comm.timeouts.tcp": "11s",  # the least that Dask accepts; LOST_S decides
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


def require_dask() -> None:
    """Check that Dask is installed. Raises UserError where it is not."""
    if importlib.util.find_spec("distributed") is None:
        raise UserError(
            "many machines need Dask distributed, the extra `cluster` of pyproject.toml, which is not installed here: "
            ".venv/bin/python -m pip install --require-hashes -r requirements.lock"
        )


def configure_security(folder: Path, role: Role, scheduler: str) -> RoleSecurity:
    """Return mutual TLS by the certificate of a role; the settings above hold in this process from then on. Raises
    UserError where Dask or a file is missing."""
    require_dask()
    import logging  # it locks around every fork, which measurements on one machine do not need

    import dask

    from netdyno.measure.cluster import secure_comm

    files = authority.find_files(folder, role)
    dask.config.set(_SETTINGS)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    secure_comm.install()
    return secure_comm.RoleSecurity(files, secure_comm.Identity(role, scheduler))
