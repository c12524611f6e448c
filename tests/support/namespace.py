"""A network and a mount namespace of the test's own: nothing that happens in it leaves it, and it may have a hosts file
and routes as it likes. Root is not needed where users may have namespaces (user_namespaces(7))."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("unshare", "nsenter", "ip", "mount")


class NotAllowedError(Exception):
    """The system lets nobody make a namespace here."""


@dataclass(frozen=True)
class Namespace:
    """A namespace that lives as long as its process `pid`. Its loopback interface is up; `hosts` is its /etc/hosts."""

    pid: int
    hosts: Path

    @property
    def enter(self) -> tuple[str, ...]:
        """Put before a command, runs it inside."""
        user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        return ("nsenter", "--target", str(self.pid), "--net", "--mount", *user, "--")

    def run(self, *command: str) -> None:
        """Run a command inside; CalledProcessError when it fails."""
        subprocess.run([*self.enter, *command], check=True, capture_output=True, text=True)


@contextmanager
def namespace(folder: Path) -> Iterator[Namespace]:
    """Make one; `folder` takes the file that is its /etc/hosts. Raises NotAllowedError."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise NotAllowedError(f"{', '.join(missing)} not found")
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    script = 'ip link set lo up && mount --bind "$1" /etc/hosts && echo made && exec cat'
    command = ["unshare", *user, "--net", "--mount", "--", "sh", "-c", script, "sh", str(hosts)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            if process.stdout.readline() != "made\n":
                raise NotAllowedError(process.stderr.read().strip())
            yield Namespace(process.pid, hosts)
        finally:
            process.kill()
