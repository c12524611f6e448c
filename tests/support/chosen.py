"""Which contestants a suite runs over: all of a kind, or those that `--contestant` names."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import pytest

from netdyno.base.paths import build_dir
from netdyno.contestants import kernel
from netdyno.contestants.contestants import Kind, discover, select, skip_file
from netdyno.model.contestant import Contestant

NOBODY = [pytest.param(None, marks=pytest.mark.skip(reason="concerns none of the chosen contestants"))]


def chosen(config: pytest.Config, kind: Kind) -> list[Contestant]:
    """The contestants of that kind that are asked for. A name that neither a server nor a client has is an error."""
    names: list[str] = config.getoption("--contestant", default=[])
    if names:
        select((*discovered("server"), *discovered("client")), names)
    return [one for one in discovered(kind) if not names or any(fnmatchcase(one.name, name) for name in names)]


@cache
def discovered(kind: Kind) -> tuple[Contestant, ...]:
    """All of a kind, read once for all tests."""
    return tuple(discover(kind=kind))


def startable(contestant: Contestant, kind: Kind) -> Contestant:
    """The contestant; a skip that states the reason of build or kernel; or a failure when it is just not built."""
    if contestant.available:
        return contestant
    stated = skip_file(build_dir(), contestant.name, kind).is_file() or kernel.why_not(contestant.manifest.needs)
    if stated or contestant.manifest.kind == "command":
        pytest.skip(f"{contestant.name}: {contestant.why_not}")
    pytest.fail(f"{contestant.name}: neither built nor skipped: {contestant.why_not}")


def one_at_a_time(contestant: Contestant, kind: Kind) -> pytest.MarkDecorator:
    """The mark of a test with this contestant: where suites run side by side, one process has all tests of it, so that
    as many contestants run at a time as there are processes."""
    return pytest.mark.xdist_group(f"{kind} {contestant.name}")
