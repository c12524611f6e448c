"""A run without what is nobody's business: where on a machine it was made, by whom, and on which host. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from netdyno.model.run import OF_CLUSTER, OF_LOAD, Run

_PATH = re.compile(
    r"""(?:(?<![\w./~…-])|(?<=-[BIL])|(?<=-isystem)|(?<=file://))/(?!(?:usr|proc|sys|dev|etc|bin|lib)/)[\w.~@+-]+(?:/[^\s/"'`:,;()<>|]*)+"""
)
"""Of two parts and more; where a system has its own files is the same everywhere. A shorter one may be what a request
asks for."""
_LEFT = "…/"
_HOST = re.compile(r"(\S+) at (?:\w+://)?(\S+?)(?::\d+)?, kernel ")
"""As a run on a cluster says it of each of its hosts."""
_FREE_TEXTS = frozenset({"log", "reason", "detail", "environment", "note", "summary", "command", "host"})
"""Keys under which a name of a user or a host is no name of anything else."""
_ENCODED = frozenset({"histogram"})
"""Keys whose values are no text: base64 has slashes."""


class Private(NamedTuple):
    """What this machine is known to have: folders, and names of users and hosts."""

    folders: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def without(run: Run, private: Private) -> Run:
    """The run as it may be passed on."""
    folders = sorted((one for one in private.folders if one.strip("/")), key=len, reverse=True)
    known = re.compile("|".join(rf"{re.escape(one.rstrip('/'))}(?![\w.-])" for one in folders)) if folders else None
    hosts = [_HOST.findall(str(said)) for key, said in run.environment.items() if key.startswith((OF_CLUSTER, OF_LOAD))]
    own = (*private.names, *(name for found in hosts for pair in found for name in pair))
    names = [one for one in own if len(one) > 2 and one not in ("root", "localhost", "127.0.0.1")]
    called = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])") if names else None

    def placeless(text: str) -> str:
        text = known.sub("…", text) if known else text
        return _PATH.sub(lambda found: _LEFT + found[0].rstrip("/").rpartition("/")[2], text)

    def nameless(text: str) -> str:
        return called.sub("…", placeless(text)) if called else placeless(text)

    built: Any = _walked(msgspec.to_builtins(run), placeless, nameless)
    return msgspec.convert(built, Run)


def _walked(value: object, clean: Callable[[str], str], cleaner: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {
            clean(key) if isinstance(key, str) else key: each
            if key in _ENCODED
            else _walked(each, cleaner if key in _FREE_TEXTS else clean, cleaner)
            for key, each in value.items()
        }
    return [_walked(each, clean, cleaner) for each in value] if isinstance(value, list | tuple) else value
