"""The files that options of requests name: `@FILE` stands for the file's content, which is stored with the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netdyno.kit.errors import UserError
from netdyno.kit.files import read_given
from netdyno.model.options import REQUESTS, read_value
from netdyno.model.own_requests import BYTE_OPTIONS, FILE, escape


def insert_files(fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values of requests, by option, with the content of files in place of their names. Raises UserError,
    with `where` before the option's name, for a file that cannot be read or does not hold what is meant."""
    return {name: _insert(name, value, f"{where}{name}") for name, value in fields.items()}


def _insert(name: str, value: Any, where: str) -> Any:
    texts = value if isinstance(value, tuple) else (value,)
    if not any(isinstance(text, str) and text.startswith(FILE) for text in texts):
        return value
    if name == "path":
        return read_value(where, REQUESTS[name], _insert_paths(texts, where))
    content = _read(value, where)
    if name in BYTE_OPTIONS:
        return read_value(where, REQUESTS[name], escape(content))
    text = _decode(content, value, where)
    if text.startswith(FILE):
        raise UserError(f"{where}: {value[1:]} begins with {FILE!r}, which cannot be sent")
    return read_value(where, REQUESTS[name], text)


def _insert_paths(texts: Sequence[str], where: str) -> list[str]:
    paths: list[str] = []
    for text in texts:
        if not text.startswith(FILE):
            paths.append(text)
            continue
        lines = [line.strip() for line in _decode(_read(text, where), text, where).splitlines()]
        paths += (line for line in lines if line and not line.startswith("#"))
    if not paths or any(path.startswith(FILE) for path in paths):
        raise UserError(f"{where}: {texts[0][1:]} holds no path")
    return paths


def _read(text: str, where: str) -> bytes:
    try:
        return read_given(Path(text[1:]))
    except OSError as error:
        raise UserError(f"{where}: {text[1:]} cannot be read: {error.strerror}") from error


def _decode(content: bytes, name: str, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: {name[1:]} is not UTF-8") from error
