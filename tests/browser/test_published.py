"""A published site in a real browser, from a folder: the index leads to a run, and that to its report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from netdyno.verbs import publish
from tests.support.builders.made_run import made_run, with_only
from tests.support.builders.stored import stored
from tests.support.undrawn import without_panels
from tests.support.watched import PHONE, Watched, opened


@pytest.fixture
def phone(browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    run = with_only(made_run(), "chat")
    stored(run, tmp_path / "results")
    with without_panels():
        publish.run([run.run_id], tmp_path / "site", tmp_path / "results")
    yield from opened(browser, tmp_path / "site" / "index.html", PHONE, "light")


def test_the_index_leads_to_a_run_and_that_to_its_report(phone: Watched) -> None:
    page, question = phone.page, made_run().experiment.question
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name=question).click()
    assert page.get_by_role("heading", level=1).inner_text() == question
    page.get_by_text("All of it").click()
    assert page.get_by_role("cell", name="AMD EPYC 7B13").is_visible()
    page.get_by_role("link", name="report.html").click()
    page.wait_for_selector("main .card")
    page.go_back()
    page.get_by_role("link", name="All runs").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Published runs"
    assert all(url.startswith(("file:", "data:")) for url in phone.requests)
