"""The documents can be read in a hurry and name what is there: short lines, few words, no dead link or path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[2]
COLUMNS, README_LINES, WORDS = 120, 120, 32_000
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


MADE_BY_PROGRAMS = frozenset(
    {".git", *(line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line)}
)
"""Folders that git ignores: of set-up, builds and runs. Not every tree has them, so no test looks into them."""


def tree() -> frozenset[str]:
    """Every file and, with a slash at the end, every folder of the project, from its root."""
    paths = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in MADE_BY_PROGRAMS]
        here = PurePosixPath(Path(folder).relative_to(ROOT))
        paths |= {str(here / name) for name in files} | {f"{here / name}/" for name in folders}
    return frozenset(paths)


TREE = tree()
ENDS = frozenset(path.split("/", cut)[-1] for path in TREE for cut in range(path.rstrip("/").count("/") + 1))
PAGES = sorted(path for path in TREE if path.endswith(".md"))
DOCUMENTS = [page for page in PAGES if "/" not in page or page.startswith("docs/")]
"""The pages for every reader: those in the root and below docs/. Other folders have pages about what is in them."""
SUFFIXES = {PurePosixPath(path).suffix for path in TREE if not path.endswith("/")} - {""}


def long_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > COLUMNS]


def count_excess_words(texts: Iterable[str], limit: int) -> int:
    """Return by how many words the texts together exceed the limit; below 0: how many more they may have."""
    return sum(len(text.split()) for text in texts) - limit


def anchors(text: str) -> set[str]:
    """What a link may name after #: a heading, in small letters, with hyphens for spaces and without other signs."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(text: str, folder: Path) -> list[str]:
    """Relative links of a page in `folder` that lead to no file, or to no heading of it."""
    links = re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text))
    return [link for link in links if not re.match(r"https?://", link) and not _leads_somewhere(link, text, folder)]


def _leads_somewhere(link: str, text: str, folder: Path) -> bool:
    name, _, anchor = link.partition("#")
    target = folder / name
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text() if name else text)


def missing_paths(text: str) -> list[str]:
    """Paths that the text of a page names in `backticks` and that end no path of the tree. A path is what has a slash,
    and ends in one or in a suffix that files of the tree have; <name> and * stand for any part of it."""
    words = [word for code in re.findall(r"`([^`]+)`", FENCE.sub("", text)) for word in code.split()]
    paths = [word.partition("::")[0].rstrip(",;:.") for word in words]
    return [path for path in paths if _is_path(path) and not is_there(path)]


def _is_path(word: str) -> bool:
    if not re.fullmatch(r"[\w.<>*-][\w.<>*/-]*", word) or word.split("/")[0] in MADE_BY_PROGRAMS:
        return False
    return "/" in word and (word.endswith("/") or PurePosixPath(word).suffix in SUFFIXES)


def is_there(path: str) -> bool:
    """Whether a path, in which <name> and * stand for any part, is the end of one of the tree."""
    pattern = re.sub(r"<[^>]+>|\\\*+", "[^/]+", re.escape(path.removeprefix("./")))
    return path in ENDS or any(re.search(rf"(^|/){pattern}$", known) for known in TREE)


@pytest.mark.parametrize("page", PAGES)
def test_no_line_is_wider_than_a_screen(page: str) -> None:
    assert long_lines((ROOT / page).read_text()) == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_all_documents_together_are_short() -> None:
    excess = count_excess_words(((ROOT / page).read_text() for page in DOCUMENTS), WORDS)
    assert excess <= 0, f"{len(DOCUMENTS)} documents have {excess} words more than {WORDS}: say things once"


def test_the_readme_begins_with_both_commands_and_continuous_integration_runs_the_second() -> None:
    first_block = (ROOT / "README.md").read_text().split("```")[1]
    assert re.findall(r"^\./netdyno (\w+) +# .*minutes$", first_block, re.MULTILINE) == ["run", "test"]
    assert [line for line in (ROOT / ".ci/run").read_text().splitlines() if "./netdyno" in line and line[0] != "#"] == [
        './netdyno test "$@" </dev/null 2>&1 | cat'
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    assert dead_links((ROOT / page).read_text(), (ROOT / page).parent) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_is_named_exists(page: str) -> None:
    assert missing_paths((ROOT / page).read_text()) == []


def test_the_picture_of_the_house_has_every_room_once() -> None:
    (rule,) = re.findall(r"^  kit <.*?\n\n", (ROOT / "docs" / "start.md").read_text(), re.MULTILINE | re.DOTALL)
    packages = [path.parent.name for path in (ROOT / "python" / "netdyno").glob("*/__init__.py")]
    assert sorted(re.findall(r"\w+", rule)) == sorted(packages)


# --- the checks themselves ----------------------------------------------------------------------------------------


def test_a_long_line_is_found() -> None:
    assert long_lines(f"short\n{'x' * COLUMNS}\n{'y' * (COLUMNS + 1)}") == ["y" * (COLUMNS + 1)]


def test_words_beyond_the_limit_are_counted() -> None:
    texts = ["# Two words\n\n| a | table |", "and\nfour more words"]
    assert [count_excess_words(texts, limit) for limit in (11, 12, 13)] == [1, 0, -1]


def test_a_link_to_no_file_or_no_heading_is_found() -> None:
    text = "# A `heading`, here\n[a](#a-heading-here) [b](README.md#netdyno) [c](https://example.org/x)"
    assert dead_links(text, ROOT) == []
    wrong = "[a](docs/gone.md) [b](#a-heading)\n[split\nlink](README.md#gone)\n```text\n[in a fence](gone.md)\n```\n"
    assert dead_links(wrong, ROOT) == ["docs/gone.md", "#a-heading", "README.md#gone"]


def test_a_path_that_is_gone_is_found() -> None:
    there = "`README.md` `docs/start.md` `servers/<model>/main.cpp` `servers/*/` `results/x/run.json` `50/conn`"
    assert (
        missing_paths(f"{there} `/proc/net/udp` `net/core/stream.c` `run ./tests/project/test_documents.py::tree`")
        == []
    )
    gone = "`docs/gone.md` `bench/gone.py --fast` `serv/<model>/` `tests/gone.py::test_a`"
    assert missing_paths(gone) == ["docs/gone.md", "bench/gone.py", "serv/<model>/", "tests/gone.py"]
