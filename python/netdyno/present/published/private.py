"""A run without what is nobody's business: where on a machine it was made, by whom, and on which host. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from netdyno.model.profile import Profile, Stack
from netdyno.model.run import OF_CLUSTER, OF_LOAD, Run
from netdyno.store.profiles import Stored

_PATH = re.compile(
    r"""(?:(?<![\w./~…-])|(?<=-[BIL])|(?<=-isystem)|(?<=file://))/(?!(?:usr|proc|sys|dev|etc|bin|lib)/)[\w.~@+-]+(?:/[^\s/"'`:,;()<>|]*)+"""
)
"""Of two parts and more; where a system has its own files is the same everywhere. A shorter one may be what a request
asks for."""
_LEFT = "…/"
_HOME = re.compile(r"/(?:home|Users)/([\w.+-]+)")
"""The folder of a user, whose name it has."""
_CREDENTIALS = re.compile(
    r"""(?<=://)[^\s/"'`<>?#]*@"""  # RFC 3986, 3.2.1
    r"""|(?<=://)[^\s/:@"'`<>?#]*:(?!\d+/)[^\s"'`<>]*@"""  # a password that holds what should be escaped, and no port
    r"""|(?<![\w./:@%+-])[\w.%+-]+:(?!//)[^\s/:"'`<>]+@(?=[\w[])"""  # without a scheme, as curl(1) and MySQL have it
)
"""Of a URL: a user, and perhaps a password."""
_USER = re.compile(r"""(?<!\w)((?:SUDO_)?USER(?:NAME)?|LOGNAME)=[^\s"';:,]+""")
_TILDE = re.compile(r"(?<![\w./~…-])~[A-Za-z_][\w.-]*")
"""Of a shell: the folder of a user (tilde expansion, POSIX.1-2017, 2.6.1)."""
_WORDS = frozenset({"root", "localhost", "127.0.0.1", "user", "users", "server", "client", "test", "build", "work"})
"""Names that are words of anything."""
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


class Left(NamedTuple):
    """What is left of a text: without places, and without names as well."""

    placeless: Callable[[str], str]
    nameless: Callable[[str], str]


def left(run: Run, private: Private) -> Left:
    """Of any text of the run."""
    folders = sorted((one for one in private.folders if one.strip("/")), key=len, reverse=True)
    known = re.compile("|".join(rf"{re.escape(one.rstrip('/'))}(?![\w.-])" for one in folders)) if folders else None
    hosts = [_HOST.findall(str(said)) for key, said in run.environment.items() if key.startswith((OF_CLUSTER, OF_LOAD))]
    homes = _HOME.findall(msgspec.json.encode(run).decode())
    own = (*private.names, *homes, *(name for found in hosts for pair in found for name in pair))
    names = [one for one in dict.fromkeys(own) if len(one) > 2 and one not in _WORDS]
    called = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])") if names else None

    def placeless(text: str) -> str:
        text = _CREDENTIALS.sub("…@", text)
        text = known.sub("…", text) if known else text
        text = _TILDE.sub("…", _USER.sub(r"\1=…", text))
        return _PATH.sub(lambda found: _shortened(found[0].rstrip("/")), text)

    def nameless(text: str) -> str:
        return called.sub("…", placeless(text)) if called else placeless(text)

    return Left(placeless, nameless)


def _shortened(path: str) -> str:
    """A path without the folders that lead to it; of a user's own folder nothing."""
    head, _, name = path.rpartition("/")
    return "…" if head.rpartition("/")[2] in ("home", "Users") else _LEFT + name


def without(run: Run, private: Private) -> Run:
    """The run as it may be passed on."""
    built: Any = _walked(msgspec.to_builtins(run), *left(run, private))
    return msgspec.convert(built, Run)


def profiled_without(stored: Stored, of: Left) -> Stored:
    """Its profiles, the same. A frame may say where its source stands; frames that say the same afterwards are one."""
    asked = tuple(
        replace(
            each,
            question=of.placeless(each.question),
            load=of.nameless(each.load),
            profiles=tuple(_profile(one, of) for one in each.profiles),
        )
        for each in stored.asked
    )
    return Stored(asked, tuple(of.nameless(text) for text in stored.damaged))


def _profile(one: Profile, of: Left) -> Profile:
    stacks: dict[Stack, float] = {}
    for stack, amount in one.stacks.items():
        cleaned = tuple(of.nameless(frame) for frame in stack)
        stacks[cleaned] = stacks.get(cleaned, 0.0) + amount
    return replace(
        one,
        server=of.placeless(one.server),
        stacks=stacks,
        unnamed=tuple(of.nameless(name) for name in one.unnamed),
        missing=of.nameless(one.missing),
    )


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
