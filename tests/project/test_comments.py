"""Comments and docstrings, in every language, name files that are there: who renames a file renames it there, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.project.test_language import prose
from tests.project.test_pages import MADE_BY_PROGRAMS, ROOT, SUFFIXES, TREE, is_there

pytestmark = pytest.mark.quick

SLASHES = re.compile(r'"(?:\\.|[^"\\\n])*"|//(.*)|/\*((?:.|\n)*?)\*/')
HASHES = re.compile(r"(?:^|\s)#(.*)$", re.MULTILINE)
SIGNS = {
    **dict.fromkeys((".cpp", ".hpp", ".css", ".go", ".java", ".js", ".proto", ".rs"), SLASHES),
    **dict.fromkeys((".cmake", ".sh", ".toml", ".txt", ""), HASHES),
    **dict.fromkeys((".erl", ".hrl"), re.compile(r"%+(.*)$", re.MULTILINE)),
    ".j2": re.compile(r"\{#((?:.|\n)*?)#\}"),
}
CODE = frozenset(SIGNS) - {"", ".js", ".sh", ".toml", ".txt"} | {".md", ".py"}
"""A bare name with such a suffix is that of a file of the project; of others' files a comment names no suffix. (Node.js
is no file, and programs write the others too.)"""


def comments(path: str, text: str) -> Iterator[str]:
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        yield from (words for _, words in prose(text, ast.parse(text)))
    elif suffix in SIGNS and (suffix or text.startswith("#!")):
        for match in SIGNS[suffix].finditer(text):
            yield next((words for words in match.groups() if words), "")


def missing_files(comment: str) -> list[str]:
    words = (word.partition(":")[0].rstrip(".,?!") for word in re.split(r"[\s`'\"(),;\[\]{}=|]+", comment))
    return [word for word in words if _is_file(word) and not is_there(word)]


def _is_file(word: str) -> bool:
    if not re.fullmatch(r"[\w.*-][\w.<>*/-]*", word) or word.split("/")[0] in MADE_BY_PROGRAMS:
        return False
    suffix = PurePosixPath(word).suffix
    return suffix in CODE or ("/" in word and suffix in SUFFIXES) or (word.endswith("/") and word.count("/") > 1)


def test_every_file_that_is_named_exists() -> None:
    sources = (path for path in sorted(TREE) if not path.endswith(("/", ".png")) and "/vendor/" not in path)
    texts = ((path, (ROOT / path).read_text(errors="replace")) for path in sources)
    assert [
        f"{path}: {word}" for path, text in texts for comment in comments(path, text) for word in missing_files(comment)
    ] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", '"""As gone.py has it."""\nx = "other.py"\n'),
        ("a.py", "class C:\n    x = 1\n    '''Of (`gone.py::test_a`).'''\n"),
        ("a.cpp", 'f("// other.cpp");  /// As servers/gone.py has it.\n'),
        ("a.rs", "/* Of\n   gone.py:12 */"),
        ("a.erl", "%% gone.py"),
        ("a.cmake", "set(x other.cmake) # gone.py, and test_*.py"),
        ("tests/run", "#!/bin/sh\n# gone.py\n"),
        ("a.html.j2", "{# gone.py #} other.py"),
    ],
)
def test_a_file_that_is_gone_is_found(path: str, text: str) -> None:
    gone = [word for comment in comments(path, text) for word in missing_files(comment)]
    assert [PurePosixPath(word).name for word in gone] == ["gone.py"]


def test_what_is_there_is_not_found() -> None:
    there = "test_comments.py, servers/<model>/main.cpp, tests/project/; results/x/run.json https://x.org/a.py Node.js"
    assert missing_files(there) == []
