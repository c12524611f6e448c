"""Profiles in the folder of a run: their data as JSON, and beside it their folded stacks, which other tools read as
well."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from netdyno.kit import quantities
from netdyno.kit.escape import harmless
from netdyno.kit.files import open_regular
from netdyno.model.base import Frozen, Name, Quoted
from netdyno.model.profile import Profile, Profiled, Sort, Stack

OF_QUESTION = "profile-"
"""The prefix of the files of a run's profiles."""
MOST_BYTES = 256 << 20
"""The most bytes of one file: a profile is a few seconds long, and has some MiB of stacks."""
_LINE = re.compile(r"(.+) ([0-9]{1,15})")


class _Kept(Frozen):
    """A profile without its stacks, and the file that has them."""

    about: Profile
    folded: Name | None


class _Document(Frozen):
    question: Name
    load: Quoted
    profiles: tuple[_Kept, ...]


class StoredProfiles(NamedTuple):
    """The profiles of a run; `damaged` has a line for each file that cannot be used."""

    questions: tuple[Profiled, ...] = ()
    damaged: tuple[str, ...] = ()


def folded(profile: Profile) -> str:
    """Return a line for each stack: its frames with semicolons between them, and whole microseconds, in the format that
    all tools for flame graphs read."""
    lines = sorted(f"{harmless(';'.join(stack))} {round(amount)}" for stack, amount in profile.stacks.items())
    return "\n".join([*lines, ""])


def write(profiled: Profiled, folder: Path, name: str) -> dict[tuple[Name, Sort], Path]:
    """Write profiles, and return the paths of the folded stacks of those that have any. Raises OSError."""
    paths: dict[tuple[Name, Sort], Path] = {}
    for profile in profiled.profiles:
        if profile.stacks:
            path = folder / file_name(f"{name}.{profile.server}.{profile.sort}.folded")
            path.write_text(folded(profile), encoding="utf-8")
            paths[profile.server, profile.sort] = path
    kept = tuple(
        _Kept(
            about=replace(profile, stacks={}),
            folded=paths[profile.server, profile.sort].name if profile.stacks else None,
        )
        for profile in profiled.profiles
    )
    document = msgspec.json.encode(_Document(question=profiled.question, load=profiled.load, profiles=kept))
    (folder / file_name(f"{name}.json")).write_bytes(msgspec.json.format(document, indent=1) + b"\n")
    return paths


def file_name(text: str) -> str:
    """Replace the characters of a name with which its file could leave the folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)


def read(folder: Path) -> StoredProfiles:
    """Read the profiles in a run's folder. Files that cannot be read are reported, and the others still read."""
    profiled: list[Profiled] = []
    damaged: list[str] = []
    for path in sorted(folder.glob(f"{OF_QUESTION}*.json")):
        try:
            document = msgspec.json.decode(_read_content(path), type=_Document)
        except (ValueError, RecursionError) as error:
            damaged.append(f"{path.name} is damaged: {error}")
        except OSError as error:
            damaged.append(f"{path.name} cannot be read: {error.strerror}")
        else:
            profiles = tuple(_read_profile(kept, folder) for kept in document.profiles)
            damaged += [
                profile.missing
                for profile, kept in zip(profiles, document.profiles, strict=True)
                if _has_lost_stacks(profile, kept)
            ]
            profiled.append(Profiled(question=document.question, load=document.load, profiles=profiles))
    return StoredProfiles(tuple(profiled), tuple(damaged))


def _read_content(path: Path) -> bytes:
    """Read a file. Raises OSError where it is no regular file, and ValueError where it is larger than any that is
    written."""
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {quantities.memory(MOST_BYTES)}")
    return content


def _has_lost_stacks(profile: Profile, kept: _Kept) -> bool:
    return kept.folded is not None and not profile.stacks


def _read_profile(kept: _Kept, folder: Path) -> Profile:
    """Return the profile with its stacks; without them it has the reason."""
    if kept.folded is None:
        return kept.about
    name = Path(kept.folded).name
    try:
        stacks = _parse_stacks(_read_content(folder / name).decode())
    except ValueError as error:
        return replace(kept.about, stacks={}, missing=f"{name} is damaged: {error}")
    except OSError as error:
        return replace(kept.about, stacks={}, missing=f"{name} cannot be read: {error.strerror}")
    return replace(kept.about, stacks=stacks, missing="" if stacks else f"{name} is empty")


def _parse_stacks(text: str) -> dict[Stack, float]:
    stacks: dict[Stack, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is no stack")
        stack = tuple(match[1].split(";"))
        stacks[stack] = stacks.get(stack, 0.0) + float(match[2])
    return stacks
