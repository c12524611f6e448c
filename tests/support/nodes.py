"""What a name may stand for that is no regular file, made in a folder of a test; never a node of the machine."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

Content = Callable[[], str]
"""What has been written there."""


def make_link(folder: Path) -> tuple[Path, Content]:
    """To a file in another folder, through a second link."""
    (folder / "there").mkdir()
    target = folder / "there" / "target"
    target.write_text("the old one, which is longer than anything that a test writes" * 1000)
    (folder / "there" / "second").symlink_to("target")
    (folder / "link").symlink_to("there/second")
    return folder / "link", target.read_text


def make_dangling_link(folder: Path) -> tuple[Path, Content]:
    (folder / "link").symlink_to("nothing yet")
    return folder / "link", (folder / "nothing yet").read_text


def make_pipe(folder: Path) -> tuple[Path, Content]:
    os.mkfifo(folder / "pipe")
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append((folder / "pipe").read_text()), daemon=True)
    reader.start()

    def content() -> str:
        reader.join(60)
        return heard[0]

    return folder / "pipe", content


def make_device(folder: Path) -> tuple[Path, Content]:
    """A node such as /dev/null: nothing can be read back."""
    try:
        os.mknod(folder / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (folder / "null").write_text("")
    except PermissionError:
        pytest.skip("no right to make a device here")
    return folder / "null", lambda: ""


NODES = {"link": make_link, "dangling link": make_dangling_link, "pipe": make_pipe, "device": make_device}
"""Each makes one: its name, and what a test reads there once it was written."""
