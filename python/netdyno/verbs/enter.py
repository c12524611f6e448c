"""ENTER ends a server that a person has started in a terminal, as it ends those of source A."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

_POLL_S = 0.2


def watch() -> None:
    """Let ENTER end this process, and the program that replaces it, by SIGTERM, where it has a terminal. A process
    reads it that is no child of this one, and ends with it."""
    if not _has_terminal():
        return
    print("netdyno: ENTER ends it", file=sys.stderr, flush=True)
    watched = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        if os.fork() == 0:
            _await_enter(watched)
        os._exit(0)
    os.wait()


def _has_terminal() -> bool:
    """Whether this process may read its terminal: in the background it would be stopped (SIGTTIN)."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _await_enter(watched: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    while watched not in (readable := select.select([watched, 0], [], [])[0]):
        if not _has_terminal():  # the line is the shell's
            time.sleep(_POLL_S)
        elif readable:
            signal.pidfd_send_signal(watched, signal.SIGTERM)
            return
