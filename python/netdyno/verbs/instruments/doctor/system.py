"""The system as checks see it: its files, its limits, and its rights. Tests replace it."""

from __future__ import annotations

import os
import resource
import shutil
import time
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from netdyno.kit.files import read_if_there
from netdyno.measure.machine import cpu_share as machine
from netdyno.measure.machine import pinning
from netdyno.measure.machine.links import lan, wan
from netdyno.measure.machine.links.namespace import NotAllowedError, make_namespace
from netdyno.model.observation import Pinning
from netdyno.question.contestants import kernel

WATCHED_S = 0.5
"""The time over which the machine is watched for steal, foreign load and interrupts."""
_ROOTS_TOOLS = "/usr/sbin:/sbin"


class Moment(NamedTuple):
    """The machine as it is used, and /proc/interrupts."""

    machine: machine.MachineSnapshot
    interrupts: str


class System:
    """The system that this process runs on."""

    def text(self, path: str) -> str:
        """Read a small file, stripped; empty where it is missing or may not be read."""
        return read_if_there(path)

    def paths(self, folder: str, pattern: str) -> list[str]:
        """The files of a folder that match, sorted; none where there is no such folder."""
        return sorted(str(path) for path in Path(folder).glob(pattern))

    @cached_property
    def cores(self) -> frozenset[int]:
        """The cores that this process may use."""
        return frozenset(os.sched_getaffinity(0))

    @cached_property
    def pinning(self) -> Pinning:
        """The cores as trials would use them."""
        return pinning.choose()

    @cached_property
    def watched(self) -> tuple[Moment, Moment]:
        """The machine at both ends of WATCHED_S, during which this process rests."""
        own = machine.find_own_processes()
        before = self._read_moment(own)
        time.sleep(WATCHED_S)
        return before, self._read_moment(own)

    @property
    def is_root(self) -> bool:
        return os.geteuid() == 0

    @property
    def hard_descriptors(self) -> float:
        """The limit up to which the harness raises its own; infinite where there is none."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return float("inf") if hard == resource.RLIM_INFINITY else hard

    def has_program(self, name: str) -> bool:
        return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_ROOTS_TOOLS}") is not None

    def why_no_namespace(self) -> str:
        """Try to make a private network namespace; return the reason where that fails, else an empty text."""
        try:
            with make_namespace():
                return ""
        except NotAllowedError as error:
            return str(error)

    def why_no_lan(self) -> str:
        """Try to make the link `lan` with a rate; return the reason where that fails, else an empty text."""
        try:
            with lan.make_link(rate_hz=10**9):
                return ""
        except NotAllowedError as error:
            return str(error)

    def why_no_netem(self) -> str:
        """Try a netem on the loopback of a private network; return the reason where that fails, else an empty text.
        Raises NotAllowedError where no such network can be made."""
        return wan.choose_way().why

    def why_no_uring(self) -> str:
        """Ask the kernel for an io_uring; return the reason where it gives none, else an empty text."""
        return kernel.explain_missing(("uring",))

    def _read_moment(self, own: tuple[int, ...]) -> Moment:
        return Moment(machine.take(own), self.text("/proc/interrupts"))
