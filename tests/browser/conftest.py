"""A headless Chromium and the report of a made-up run, once for all tests of this folder, and gone after them: its
hundred threads shall not run beside tests of what the machine does.

The browser is Debian's; without it these tests are skipped with the reason, for the report itself needs none.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from netdyno.present import report
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import one_of_each_kind
from tests.support.watched import Pages, Watched, opened

PROGRAMS = ("chromium-headless-shell", "chromium")
"""The first that is there. The shell draws the same pages, without all of the browser that shows them to a person."""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    executable = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if executable is None:
        pytest.skip("no Chromium: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        # launch() makes a fresh user-data directory of its own and removes it
        chromium = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(browser: Browser) -> Iterator[Pages]:
    """Open each page at its first use and keep it until the last test of the module: to load one takes longer than to
    read it. A test that changes more than what is unfolded opens a page of its own, or puts back what it changed."""
    with ExitStack() as contexts:

        @cache
        def page(file: Path, size: tuple[int, int], scheme: str) -> Watched:
            return contexts.enter_context(contextmanager(opened)(browser, file, size, scheme))

        yield page


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write_page(analysed(one_of_each_kind()), path)
    return path
