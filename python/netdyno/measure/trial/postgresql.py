"""A PostgreSQL of a trial's own, as a program. With `--listen tcp://127.0.0.1:0` it prints a ready line when it
accepts, and after SIGTERM a line of totals, as a server of netdyno's does (protocol/WIRE.md, Backend). It asks for no
password, and its files are gone with it."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("initdb", "postgres", "psql")
WAY_OUT = "PostgreSQL (initdb, postgres, psql) not found: install postgresql"
MOST_CONNECTIONS = 500
USER = "netdyno"
COUNT = "SELECT sum(xact_commit) FROM pg_stat_database"
"""Every statement is a transaction of its own. A connection adds its count when it is closed, if not before."""


def find_programs() -> Path | None:
    """Return the folder of the newest PostgreSQL that is installed; Debian keeps it off PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    on_path = shutil.which("initdb")
    folders = [*([Path(on_path).parent] if on_path else []), *installed]
    return next((folder for folder in reversed(folders) if all((folder / name).exists() for name in PROGRAMS)), None)


def become_user(folder: Path) -> list[str]:
    """Return the words before a command that keep it from being root's, which PostgreSQL refuses to be, and end it with
    this program; `folder` becomes that user's."""
    ends_with_this = ["setpriv", "--pdeathsig", "INT"]
    if os.geteuid() != 0:
        return ends_with_this
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return [*ends_with_this, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def find_free_port(host: str) -> int:
    """Return a port that was free a moment ago: PostgreSQL chooses none itself."""
    with socket.create_server((host, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def run_cluster(programs: Path, host: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a new cluster that keeps nothing (no fsync), at an address."""
    with tempfile.TemporaryDirectory(prefix="netdyno-postgresql-") as name:
        folder = Path(name)
        as_user = become_user(folder)
        data = folder / "data"
        made = subprocess.run(
            [*as_user, programs / "initdb", "-D", data, "-U", USER, "-A", "trust", "--no-sync", "--locale=C"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, check=False,
        )  # fmt: skip
        if made.returncode != 0:
            sys.exit(made.stdout.decode(errors="replace"))
        settings = {
            "listen_addresses": host,
            "port": port,
            "unix_socket_directories": "",
            "max_connections": MOST_CONNECTIONS,
            "fsync": "off",
            "autovacuum": "off",
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with subprocess.Popen(
            [*as_user, programs / "postgres", "-D", data, *options], cwd=folder, stderr=subprocess.DEVNULL
        ) as server:
            try:
                yield server
            finally:
                server.send_signal(signal.SIGINT)  # "fast": it ends its connections
                server.wait()


def ask(programs: Path, host: str, port: int, query: str) -> str | None:
    """Return the answer to a query; None where the server does not answer."""
    command = [str(programs / "psql"), "-h", host, "-p", str(port), "-U", USER, "-d", "postgres", "-tAc", query]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def count_transactions(programs: Path, host: str, port: int) -> int:
    """Return how many transactions there were so far. Raises RuntimeError where the server does not say so."""
    count = ask(programs, host, port, COUNT)
    if not count:
        raise RuntimeError("PostgreSQL does not count its transactions")
    return int(count)


def main() -> None:
    """Run PostgreSQL until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="tcp://127.0.0.1:0")
    parser.add_argument("--workload", default="rpc")
    host, _, requested_port = parser.parse_args().listen.removeprefix("tcp://").rpartition(":")
    programs = find_programs()
    if programs is None:
        sys.exit(WAY_OUT)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    port = int(requested_port) or find_free_port(host)
    with run_cluster(programs, host, port) as server:
        while ask(programs, host, port, "SELECT 1") is None:
            if server.poll() is not None:
                sys.exit(f"postgres ended with {server.returncode}")
            time.sleep(0.02)
        before = count_transactions(programs, host, port)
        print(json.dumps({"ready": True, "endpoint": f"postgresql://{host}:{port}", "pid": os.getpid()}), flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
        print(json.dumps({"requests": count_transactions(programs, host, port) - before}), flush=True)


if __name__ == "__main__":
    main()
