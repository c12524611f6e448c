"""`netdyno publish`: make a static site of stored runs, to which more can be added."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless, harmless_json
from netdyno.kit.files import kind_of, lock_folder, open_regular, write_whole
from netdyno.kit.paths import ROOT, build_dir
from netdyno.model.run import Run
from netdyno.present.published import site
from netdyno.present.published.private import Private, clean_profiles, clean_run, make_cleaners
from netdyno.present.published.site import Site
from netdyno.store import profiles, read
from netdyno.store.profiles import StoredProfiles

SITE_NAME = "site.json"
INDEX_NAME = "index.html"
SUMMARY_NAME = "summary.md"


def run(names: Sequence[str], target: Path, results: Path) -> int:
    """Add runs to the site in a folder, which is created if needed. A published page never changes: a run that has
    changed since becomes a new version beside the old one. Raises UserError before anything is written where a run
    cannot be read, or the folder is no site of netdyno."""
    paths = [read.find(results, name) for name in names]
    stored_runs = [read.load(path) for path in paths]
    for stored_run in stored_runs:
        if not stored_run.all_trials:
            raise UserError(f"the run {stored_run.run_id} has no trial yet")
    if target.exists() and not target.is_dir():
        raise UserError(f"{target} is no folder: take another name")
    try:
        target.mkdir(parents=True, exist_ok=True)
        with lock_folder(target):
            _add_runs(zip(paths, stored_runs, strict=True), target, collect_private(results, target))
    except BrokenPipeError:  # that of stdout: a site has no pipes
        raise
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}") from error
    print(harmless(f"site: {(target / INDEX_NAME).resolve()}"))
    return 0


def _add_runs(runs: Iterable[tuple[Path, Run]], target: Path, private: Private) -> None:
    """Add runs to the site as it is now: another process may have added some before this one got the lock."""
    published = open_site(target)
    if not published.runs:
        _write_site_list(target, published)  # an interruption from here on leaves a site, which can be added to
    for path, stored in runs:
        profiled = clean_profiles(profiles.read(path.parent), make_cleaners(stored, private))
        for text in profiled.damaged:
            print(f"netdyno: {harmless(text)}", file=sys.stderr)
        published, message = _add_run(published, clean_run(stored, private), profiled, target)
        print(harmless(message), flush=True)


def open_site(target: Path) -> Site:
    """Read the site in a folder; an empty one where there is none yet. Raises UserError where it cannot be added to."""
    path = target / SITE_NAME
    if not os.path.lexists(path):
        if any(target.iterdir()):
            raise UserError(f"{target} is no site of netdyno, and not empty: take another folder")
        return Site()
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            raw = msgspec.json.decode(file.read(), type=dict[str, object])
        version = raw.get("version")
        if raw.get("format") == site.FORMAT and isinstance(version, int) and version > site.VERSION:
            raise UserError(f"{target}: published by a newer netdyno (version {version}): update")
        listed = msgspec.convert(raw, Site)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be understood: {error}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if listed.format != site.FORMAT:
        raise UserError(f"{target} is no site of netdyno: take another folder")
    _check_places(target, listed)
    return listed


def _check_places(target: Path, listed: Site) -> None:
    """Raise UserError for a site that netdyno has not left so: an entry that leads out of it, or a link or a pipe where
    a file or folder is to be written."""
    for entry in listed.runs:
        if entry.folder != site.name_folder(entry.run_id, entry.version):
            raise UserError(
                f"{target / SITE_NAME}: the folder {entry.folder!r} is not that of version {entry.version} of the run "
                f"{entry.run_id!r}: take another folder"
            )
    folders = [target / site.RUNS, *(target / site.RUNS).glob("*")]
    files = [target / INDEX_NAME, target / SUMMARY_NAME]
    places = [*((path, stat.S_ISREG) for path in files), *((path, stat.S_ISDIR) for path in folders)]
    for path, is_right in places:
        if os.path.lexists(path) and not is_right(mode := path.lstat().st_mode):
            raise UserError(f"{path} is {kind_of(mode)}, which netdyno has not put there: take another folder")


def collect_private(results: Path, target: Path) -> Private:
    """Return the facts about this machine that a site must not reveal."""
    folders = [ROOT, build_dir(), Path.cwd(), Path.home(), results, target]
    users = [Path.home().name, *(os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER"))]
    for path in (ROOT, results):
        with suppress(OSError, KeyError):  # a user without a name
            users.append(path.owner())
    with suppress(OSError, KeyError):
        users.append(getpass.getuser())
    forms = {str(form) for folder in folders for form in (folder.absolute(), folder.resolve())}
    return Private(tuple(forms), (*dict.fromkeys(users), platform.node()))


def _add_run(published: Site, stored: Run, profiled: StoredProfiles, target: Path) -> tuple[Site, str]:
    from netdyno.analysis.analysis import analyse
    from netdyno.present.export import tables
    from netdyno.present.export.collect import collect
    from netdyno.present.prose.repeat import format_typed
    from netdyno.present.report import render_html

    analysis = analyse(stored)
    collected = collect(analysis)
    text = tables.format_json(collected)
    digest = hashlib.sha256(text.encode()).hexdigest()
    before = [page for page in published.runs if page.run_id == stored.run_id]
    profiles_digest = hashlib.sha256(repr(profiled).encode()).hexdigest() if any(profiled) else ""
    if before and (before[-1].digest, before[-1].profiles) == (digest, profiles_digest):
        return published, f"{stored.run_id}: published already, as version {before[-1].version}"
    version = _choose_version(stored.run_id, len(before), target)
    new = site.make_entry(
        collected.findings,
        collected.environment,
        version,
        digest,
        profiles_digest,
        command=format_typed(analysis),
    )
    files = {
        "export.json": text,
        "export.csv": tables.format_csv(collected),
        "export.md": tables.format_markdown(collected),
        "environment.json": json.dumps(collected.environment, indent=2) + "\n",
        "report.html": render_html(analysis, (), profiled),
        INDEX_NAME: site.run_page(new, collected.environment),
    }
    _write_folder(target / new.folder, files)
    published = msgspec.structs.replace(published, runs=(*published.runs, new))
    write_whole(target / INDEX_NAME, site.render_index(published))
    write_whole(target / SUMMARY_NAME, site.render_summary(published))
    _write_site_list(target, published)
    return published, f"{stored.run_id}: published as version {version}"


def _write_site_list(target: Path, published: Site) -> None:
    text = msgspec.json.format(msgspec.json.encode(published), indent=1).decode()
    write_whole(target / SITE_NAME, harmless_json(text) + "\n")


def _choose_version(run_id: str, known: int, target: Path) -> int:
    """Return the first unused version: neither listed nor left by an interrupted publish."""
    version = known + 1
    while (target / site.name_folder(run_id, version)).exists():
        version += 1
    return version


def _write_folder(folder: Path, files: dict[str, str]) -> None:
    """Write all files or none: the folder gets its name when it is complete."""
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        for name, text in files.items():
            (unfinished / name).write_text(text, encoding="utf-8", newline="")
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
