"""The removal of private data from a run: paths, users and hosts of the machine that it was made on. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from netdyno.kit.escape import hide_secrets
from netdyno.model.profile import Profile, Stack
from netdyno.model.run import OF_CLUSTER, OF_LOAD, Run
from netdyno.store.profiles import StoredProfiles

_PATH = re.compile(
    r"""(?:(?<![\w./~…-])|(?<=-[BIL])|(?<=-isystem)|(?<=file://))/(?!(?:usr|proc|sys|dev|etc|bin|lib)/)[\w.~@+-]+(?:/[^\s/"'`:,;()<>|]*)+"""
)
"""A path of two parts and more, but not to a system's own files, which are the same everywhere. A shorter one may be
the path of a request."""
_ABOVE = re.compile(r"(?<![\w./…-])(?:\.\./)+[\w.@+-]+(?:/[\w.@+-]+)*")
"""A path beside the current folder."""
_LEFT = "…/"
_HOME = re.compile(r"/(?:home|Users)/([\w.+-]+)")
"""The folder of a user, with the user's name."""
_CREDENTIALS = re.compile(
    r"""(?<=://)[^\s/"'`<>?#]*@"""  # RFC 3986, 3.2.1
    r"""|(?<=://)[^\s/:@"'`<>?#]*:(?!\d+/)[^\s"'`<>]*@"""  # a password that holds what should be escaped, and no port
    r"""|(?<![\w./:@%+-])[\w.%+-]+:(?!//)[^\s/:"'`<>]+@(?=[\w[])"""  # without a scheme, as curl(1) and MySQL have it
)
"""The user in a URL, and perhaps a password."""
_USER = re.compile(r"""(?<!\w)((?:SUDO_)?USER(?:NAME)?|LOGNAME)=[^\s"';:,]+""")
_TILDE = re.compile(r"(?<![\w./~…-])~[A-Za-z_][\w.-]*")
"""The folder of a user, as a shell has it (tilde expansion, POSIX.1-2017, 2.6.1)."""
_WORDS = frozenset({"root", "localhost", "127.0.0.1", "user", "users", "server", "client", "test", "build", "work"})
"""Names that are common words."""
_HOST = re.compile(r"(\S+) at (?:\w+://)?(\S+?)(?::\d+)?, kernel ")
"""A host in the environment of a run on a cluster."""
_FREE_TEXTS = frozenset({"log", "reason", "detail", "environment", "note", "summary", "command", "host", "typed"})
"""Keys of texts in which the name of a user or a host names nothing else."""
_ENCODED = frozenset({"histogram"})
"""Keys of values that are no text: base64 has slashes."""


class Private(NamedTuple):
    """The known private data of this machine: folders, and names of users and hosts."""

    folders: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class Cleaners(NamedTuple):
    """Functions that remove paths from a text, or names as well."""

    placeless: Callable[[str], str]
    nameless: Callable[[str], str]


def make_cleaners(run: Run, private: Private) -> Cleaners:
    """Return the functions that clean any text of the run."""
    folders = sorted((folder for folder in private.folders if folder.strip("/")), key=len, reverse=True)
    known_folders = (
        re.compile("|".join(rf"{re.escape(folder.rstrip('/'))}(?![\w.-])" for folder in folders)) if folders else None
    )
    hosts = [
        _HOST.findall(str(value)) for key, value in run.environment.items() if key.startswith((OF_CLUSTER, OF_LOAD))
    ]
    homes = _HOME.findall(msgspec.json.encode(run).decode())
    candidates = (*private.names, *homes, *(name for pairs in hosts for pair in pairs for name in pair))
    names = [name for name in dict.fromkeys(candidates) if len(name) > 2 and name not in _WORDS]
    known_names = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])") if names else None

    def placeless(text: str) -> str:
        text = _CREDENTIALS.sub("…@", hide_secrets(text))
        text = known_folders.sub("…", text) if known_folders else text
        text = _TILDE.sub("…", _USER.sub(r"\1=…", text))
        text = _ABOVE.sub(lambda path: _shorten(path[0]), text)
        return _PATH.sub(lambda path: _shorten(path[0].rstrip("/")), text)

    def nameless(text: str) -> str:
        return known_names.sub("…", placeless(text)) if known_names else placeless(text)

    return Cleaners(placeless, nameless)


def _shorten(path: str) -> str:
    """Return a path without the folders that lead to it, and nothing of a user's own folder."""
    head, _, name = path.rpartition("/")
    return "…" if head.rpartition("/")[2] in ("home", "Users") else _LEFT + name


def clean_run(run: Run, private: Private) -> Run:
    """Return the run without private data."""
    built: Any = _clean_values(msgspec.to_builtins(run), *make_cleaners(run, private))
    return msgspec.convert(built, Run)


def clean_profiles(stored: StoredProfiles, cleaners: Cleaners) -> StoredProfiles:
    """Return a run's profiles without private data. A frame may have the path of its source; stacks that
    are equal without it are merged."""
    loads = tuple(
        replace(
            load,
            question=cleaners.placeless(load.question),
            load=cleaners.nameless(load.load),
            profiles=tuple(_clean_profile(profile, cleaners) for profile in load.profiles),
        )
        for load in stored.questions
    )
    return StoredProfiles(loads, tuple(cleaners.nameless(text) for text in stored.damaged))


def _clean_profile(profile: Profile, cleaners: Cleaners) -> Profile:
    stacks: dict[Stack, float] = {}
    for stack, amount in profile.stacks.items():
        cleaned = tuple(cleaners.nameless(frame) for frame in stack)
        stacks[cleaned] = stacks.get(cleaned, 0.0) + amount
    return replace(
        profile,
        server=cleaners.placeless(profile.server),
        stacks=stacks,
        unnamed=tuple(cleaners.nameless(name) for name in profile.unnamed),
        missing=cleaners.nameless(profile.missing),
    )


def _clean_values(value: object, clean: Callable[[str], str], cleaner: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {
            clean(key) if isinstance(key, str) else key: item
            if key in _ENCODED
            else _clean_values(item, cleaner if key in _FREE_TEXTS else clean, cleaner)
            for key, item in value.items()
        }
    return [_clean_values(item, clean, cleaner) for item in value] if isinstance(value, list | tuple) else value
