"""`netdyno publish`: stored runs as a static site, to which more can be added."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from netdyno.base.errors import UserError
from netdyno.base.escape import harmless
from netdyno.base.files import write_whole
from netdyno.base.paths import ROOT, build_dir
from netdyno.model.run import Run
from netdyno.present.published import site
from netdyno.present.published.private import Private, left, profiled_without, without
from netdyno.present.published.site import Site
from netdyno.store import profiles, read
from netdyno.store.profiles import Stored

SITE_NAME = "site.json"
INDEX_NAME = "index.html"
SUMMARY_NAME = "summary.md"


def run(names: Sequence[str], target: Path, results: Path) -> int:
    """Add runs to the site in a folder, which is made where it is not there. What is published stays as it is: a run
    that is otherwise than when it was published is a new version beside the old one. Raises UserError before anything
    is written where a run cannot be read, or the folder is none of ours."""
    paths = [read.find(results, name) for name in names]
    found = [read.load(path) for path in paths]
    for one in found:
        if not one.all_trials:
            raise UserError(f"the run {one.run_id} has no trial yet")
    here = opened(target)
    private = private_here(results, target)
    try:
        target.mkdir(parents=True, exist_ok=True)
        if not here.runs:
            _write_list(target, here)  # whoever is cut short from here on leaves a site, which can be added to
        for path, stored in zip(paths, found, strict=True):
            profiled = profiled_without(profiles.read(path.parent), left(stored, private))
            for text in profiled.damaged:
                print(f"netdyno: {harmless(text)}", file=sys.stderr)
            here, said = _added(here, without(stored, private), profiled, target)
            print(harmless(said), flush=True)
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}") from error
    print(harmless(f"site: {(target / INDEX_NAME).resolve()}"))
    return 0


def opened(target: Path) -> Site:
    """The site in a folder; an empty one where there is none yet. Raises UserError where it cannot be added to."""
    path = target / SITE_NAME
    if not path.exists():
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise UserError(f"{target} is no site of netdyno, and not empty: take another folder")
        return Site()
    try:
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
        version = raw.get("version")
        if raw.get("format") == site.FORMAT and isinstance(version, int) and version > site.VERSION:
            raise UserError(f"{target}: published by a newer netdyno (version {version}): update")
        found = msgspec.convert(raw, Site)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be understood: {error}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if found.format != site.FORMAT:
        raise UserError(f"{target} is no site of netdyno: take another folder")
    return found


def private_here(results: Path, target: Path) -> Private:
    """What is known of this machine that a site must not say."""
    folders = [ROOT, build_dir(), Path.cwd(), Path.home(), results, target]
    users = [Path.home().name, *(os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER"))]
    for path in (ROOT, results):
        with suppress(OSError, KeyError):  # a user without a name
            users.append(path.owner())
    with suppress(OSError, KeyError):
        users.append(getpass.getuser())
    both = {str(form) for one in folders for form in (one.absolute(), one.resolve())}
    return Private(tuple(both), (*dict.fromkeys(users), platform.node()))


def _added(here: Site, stored: Run, profiled: Stored, target: Path) -> tuple[Site, str]:
    from netdyno.analysis.analysis import analyse
    from netdyno.present.export import tables
    from netdyno.present.export.collect import collect
    from netdyno.present.report import html

    analysis = analyse(stored)
    found = collect(analysis)
    text = msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    before = [one for one in here.runs if one.run_id == stored.run_id]
    of_profiles = hashlib.sha256(repr(profiled).encode()).hexdigest() if any(profiled) else ""
    if before and (before[-1].digest, before[-1].profiles) == (digest, of_profiles):
        return here, f"{stored.run_id}: published already, as version {before[-1].version}"
    version = _next_version(stored.run_id, len(before), target)
    new = site.entry(found.findings, found.environment, version, digest, of_profiles)
    files = {
        "export.json": text,
        "export.csv": tables.as_csv(found),
        "export.md": tables.as_markdown(found),
        "environment.json": json.dumps(found.environment, indent=2) + "\n",
        "report.html": html(analysis, (), profiled),
        INDEX_NAME: site.run_page(new, found.environment),
    }
    _write_folder(target / new.folder, files)
    here = msgspec.structs.replace(here, runs=(*here.runs, new))
    write_whole(target / INDEX_NAME, site.index(here))
    write_whole(target / SUMMARY_NAME, site.summary(here))
    _write_list(target, here)
    return here, f"{stored.run_id}: published as version {version}"


def _write_list(target: Path, here: Site) -> None:
    write_whole(target / SITE_NAME, msgspec.json.format(msgspec.json.encode(here), indent=1).decode() + "\n")


def _next_version(run_id: str, known: int, target: Path) -> int:
    """The first that is nowhere yet: neither listed nor left by somebody who was cut short."""
    version = known + 1
    while (target / site.folder_of(run_id, version)).exists():
        version += 1
    return version


def _write_folder(folder: Path, files: dict[str, str]) -> None:
    """All files or none: the folder appears under its name when it is whole."""
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        for name, text in files.items():
            (unfinished / name).write_text(text, encoding="utf-8", newline="")
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
