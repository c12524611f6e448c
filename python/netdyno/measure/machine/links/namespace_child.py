"""The script that runs inside a private network namespace. It brings up the loopback interface of a namespace that
unshare(1) has just made, and then keeps that for other programs, or becomes a program; from an existing namespace it
hands out a socket. `namespace` starts it as a separate script, so it imports Python's own modules only."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

MARK = "NETDYNO_PRIVATE_NETWORK"
"""The variable with the inode of the namespace in which a program was started (docs/adr/private-network.md)."""

# ioctl numbers and flags of linux/sockios.h and linux/if.h.
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 0x1
_REQUEST = "16sh22x"  # struct ifreq with ifr_flags, 40 bytes


def read_network(pid: int | str) -> int:
    """Return the inode of the network namespace of a process ("self": of this one). It names one namespace among all
    that exist (namespaces(7)). Raises OSError when there is no such process, or it is another user's."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def bring_up(interface: str) -> None:
    """Bring an interface up (netdevice(7)); OSError when there is none, or without the right to do so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack(_REQUEST, interface.encode(), 0)
        _, flags = struct.unpack(_REQUEST, fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack(_REQUEST, interface.encode(), flags | _IFF_UP))


def end_everybody_here() -> None:
    """Kill every process in this network namespace but this one."""
    here = read_network("self")
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        try:
            if pid != os.getpid() and read_network(pid) == here:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue  # gone meanwhile, or another user's, which cannot be in here


def adopt(setting: str) -> None:
    """Write FILE=VALUE to /proc/sys where the namespace has such a setting of its own, with another value."""
    file, _, value = setting.partition("=")
    path = Path(file)
    if path.exists() and path.read_text().strip() != value:
        path.write_text(value)


def keep(hosts: str, *settings: str) -> None:
    """Keep the namespace until stdin ends, also because the process at the other end of that pipe was killed; no
    process in the namespace outlives that. `hosts`, unless it is empty, becomes /etc/hosts, in a mount namespace."""
    if hosts:
        subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    for setting in settings:
        adopt(setting)
    print("made", flush=True)
    while os.read(0, 4096):
        pass
    end_everybody_here()


def send_socket(address: str) -> None:
    """Bind a UDP socket to an address of the namespace, and send it through stdin, a socket of unix(7). It stays one of
    this namespace, whichever process holds it (network_namespaces(7))."""
    with socket.socket(fileno=os.dup(0)) as channel, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind((address, 0))
        socket.send_fds(channel, [b"made"], [datagrams.fileno()])


def main(arguments: list[str]) -> None:
    """Run `keep HOSTS SETTING…`, `become COMMAND…` or `hand-out ADDRESS`."""
    action, *rest = arguments
    if action == "hand-out":
        send_socket(*rest)
        return
    bring_up("lo")
    if action == "keep":
        keep(*rest)
    else:
        os.environ[MARK] = str(read_network("self"))
        os.execvp(rest[0], rest)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"netdyno: {problem}")
