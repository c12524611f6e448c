"""Programs that see names of a test's own, in a mount namespace where /etc/hosts and the name servers are others
(mount_namespaces(7)); the machine's stay as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

_MOUNT = 'for file in hosts resolv.conf nsswitch.conf; do mount --bind "$0/$file" "/etc/$file"; done; exec "$@"'
BOTH = "127.0.0.1 localhost\n::1 localhost\n"
"""As Debian has it: the system ranks ::1 first."""


def naming(folder: Path, hosts: str = BOTH) -> tuple[str, ...]:
    """What to put before a command, so that it knows these hosts, and asks 127.0.0.1 for all others. Skips the
    test where there may be no such namespace."""
    (folder / "hosts").write_text(hosts)
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    (folder / "nsswitch.conf").write_text("hosts: files dns\n")
    prefix = ("unshare", "--map-root-user", "--mount", "sh", "-ec", _MOUNT, str(folder))
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no mount namespace here: {tried.stderr.strip()}")
    return prefix
