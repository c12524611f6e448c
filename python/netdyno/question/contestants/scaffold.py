"""`netdyno new server NAME --from MODEL`: a new contestant begins as a copy of a working one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.question.contestants.contestants import discover, find_by_name

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def copy_server(name: str, model: str, root: Path = ROOT) -> Path:
    """Copy servers/<model> to servers/<name> with the name replaced in every file, and return the new folder.
    Raises UserError for a name that cannot be a folder, or is taken, and for an unknown model."""
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"{name!r} cannot be a server's name: use words of a-z and 0-9 joined by '-', such as my-server"
        )
    find_by_name(discover(root, root / "build"), model)
    target = root / "servers" / name
    if target.exists():
        raise UserError(f"servers/{name} exists already")
    shutil.copytree(root / "servers" / model, target, ignore=shutil.ignore_patterns("__pycache__", "Cargo.lock"))
    for path in sorted(target.rglob("*")):
        if path.is_file():
            path.write_bytes(_rename(path, model, name))
    return target


def name_edits(folder: Path) -> str:
    """Name what the author of a copy edits in it."""
    return "sources, summary and README" if (folder / "README.md").exists() else "sources and summary"


def _rename(path: Path, model: str, name: str) -> bytes:
    """Return the file's content with both spellings replaced: as a name, and as an identifier. A program in Rust has
    its name in Cargo.toml alone, and may be called like a crate that it uses."""
    content = path.read_bytes()
    if path.suffix == ".rs":
        return content
    if path.name == "Cargo.toml":
        return re.sub(rb"(?m)^name = .*$", lambda line: line[0].replace(model.encode(), name.encode()), content)
    renamed = content.replace(model.encode(), name.encode())
    return renamed.replace(model.replace("-", "_").encode(), name.replace("-", "_").encode())
