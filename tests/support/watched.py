"""A page in a real browser, with everything that it complains about or asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page

PATIENCE_MS = 120_000
"""A hung page must end; a machine with other work on it may take long."""
WIDE = (1280, 800)
PHONE = (360, 740)
LEAST_CONTRAST_OF_TEXT = 4.5
LEAST_CONTRAST_OF_SHAPES = 3.0
"""WCAG 2.2, 1.4.3 and 1.4.11."""


@dataclass
class Watched:
    """A page with everything it complained about or requested."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Viewport = tuple[tuple[int, int], str]
"""The size of a window and a colour scheme."""
Pages = Callable[[Path, tuple[int, int], str], Watched]
"""Returns the page of a file in a window of this size and in this colour scheme, which all tests of a module share."""


def opened(browser: Browser, file: Path, size: tuple[int, int], scheme: str) -> Iterator[Watched]:
    """Open a page and close it after its tests, none of which may make it complain."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if scheme == "dark" else "light"
    )
    watched = Watched(context.new_page())
    watched.page.set_default_timeout(PATIENCE_MS)
    watched.page.on("console", lambda message: watched.complaints.append(message.text))
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on("request", lambda request: watched.requests.append(request.url))
    watched.page.goto(file.as_uri())
    yield watched
    context.close()
    assert watched.complaints == []


def resize(page: Page, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})


def open_all_details(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")


def labels(drawings: Locator) -> list[str]:
    """What a screen reader says of each, read in one step: a step for each takes long on a large page."""
    texts: list[str] = drawings.evaluate_all("all => all.map(e => e.getAttribute('aria-label') ?? '')")
    return texts


def luminance(colour: str) -> float:
    """Relative luminance of "rgb(r, g, b)" (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    dark, bright = sorted((luminance(first), luminance(second)))
    return (bright + 0.05) / (dark + 0.05)


def colour_of(page: Page, variable: str) -> str:
    """The value of a CSS variable as rgb()."""
    script = """name => { const e = document.createElement('i'); e.style.color = `var(${name})`;
                document.body.append(e); const c = getComputedStyle(e).color; e.remove(); return c; }"""
    return str(page.evaluate(script, variable))
