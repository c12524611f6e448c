"""The cases of the audits: for each a trial that it strikes out, and one that it lets pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from netdyno.model.load_result import Audit


class AuditCase(NamedTuple):
    """The audit of both trials, each made when it is called."""

    fails: Callable[[], Audit]
    passes: Callable[[], Audit]
