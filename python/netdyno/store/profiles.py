"""Profiles in the folder of a run: what is said of them as JSON, and beside it their folded stacks, which other tools
read as well."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from netdyno.base import quantities
from netdyno.base.escape import harmless
from netdyno.base.files import open_regular
from netdyno.model.base import Frozen, Name, Quoted
from netdyno.model.profile import Profile, Profiled, Sort, Stack

OF_QUESTION = "profile-"
"""What the files of a run's profiles begin with."""
MOST_BYTES = 256 << 20
"""Of one file: a profile is a few seconds long, and has some MiB of stacks."""
_LINE = re.compile(r"(.+) ([0-9]{1,15})")


class _Kept(Frozen):
    """A profile without its stacks, and the file that has them."""

    about: Profile
    folded: Name | None


class _Document(Frozen):
    question: Name
    load: Quoted
    profiles: tuple[_Kept, ...]


class Stored(NamedTuple):
    """What a run has of them; `damaged` has a line for each file that cannot be used."""

    asked: tuple[Profiled, ...] = ()
    damaged: tuple[str, ...] = ()


def folded(one: Profile) -> str:
    """A line for each stack: its frames with semicolons between them, and whole microseconds, as all tools for flame
    graphs read it."""
    lines = sorted(f"{harmless(';'.join(stack))} {round(amount)}" for stack, amount in one.stacks.items())
    return "\n".join([*lines, ""])


def write(asked: Profiled, folder: Path, name: str) -> dict[tuple[Name, Sort], Path]:
    """Keep them; where the folded stacks are of those that have any. Raises OSError."""
    found: dict[tuple[Name, Sort], Path] = {}
    for one in asked.profiles:
        if one.stacks:
            path = folder / file_name(f"{name}.{one.server}.{one.sort}.folded")
            path.write_text(folded(one), encoding="utf-8")
            found[one.server, one.sort] = path
    kept = tuple(
        _Kept(about=replace(one, stacks={}), folded=found[one.server, one.sort].name if one.stacks else None)
        for one in asked.profiles
    )
    document = msgspec.json.encode(_Document(question=asked.question, load=asked.load, profiles=kept))
    (folder / file_name(f"{name}.json")).write_bytes(msgspec.json.format(document, indent=1) + b"\n")
    return found


def file_name(text: str) -> str:
    """Whatever it is called, it stays in its folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)


def read(folder: Path) -> Stored:
    """What a run's folder has of its questions. What cannot be read is said, and is no reason to read nothing else."""
    asked: list[Profiled] = []
    damaged: list[str] = []
    for path in sorted(folder.glob(f"{OF_QUESTION}*.json")):
        try:
            document = msgspec.json.decode(_content(path), type=_Document)
        except (ValueError, RecursionError) as error:
            damaged.append(f"{path.name} is damaged: {error}")
        except OSError as error:
            damaged.append(f"{path.name} cannot be read: {error.strerror}")
        else:
            profiles = tuple(_whole(one, folder) for one in document.profiles)
            damaged += [one.missing for one, kept in zip(profiles, document.profiles, strict=True) if _lost(one, kept)]
            asked.append(Profiled(question=document.question, load=document.load, profiles=profiles))
    return Stored(tuple(asked), tuple(damaged))


def _content(path: Path) -> bytes:
    """Raises OSError where it is no file, and ValueError where it is larger than any that is written."""
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {quantities.memory(MOST_BYTES)}")
    return content


def _lost(one: Profile, kept: _Kept) -> bool:
    return kept.folded is not None and not one.stacks


def _whole(kept: _Kept, folder: Path) -> Profile:
    """With its stacks; without them it says why."""
    if kept.folded is None:
        return kept.about
    name = Path(kept.folded).name
    try:
        stacks = _stacks(_content(folder / name).decode())
    except ValueError as error:
        return replace(kept.about, stacks={}, missing=f"{name} is damaged: {error}")
    except OSError as error:
        return replace(kept.about, stacks={}, missing=f"{name} cannot be read: {error.strerror}")
    return replace(kept.about, stacks=stacks, missing="" if stacks else f"{name} is empty")


def _stacks(text: str) -> dict[Stack, float]:
    found: dict[Stack, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        said = _LINE.fullmatch(line)
        if said is None:
            raise ValueError(f"line {number} is no stack")
        stack = tuple(said[1].split(";"))
        found[stack] = found.get(stack, 0.0) + float(said[2])
    return found
