"""Measures how soon a report is seen, by its number of trials: opened in Chromium, with the time of its first paint, of
the end of loading, and of a filter.

    python bench/report_paint.py [OPENINGS]

The page is that of the tests' made-up run, with its blocks repeated. Times are medians, in milliseconds.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from msgspec.structs import replace
from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from tests.support.builders.made_run import made_run

from netdyno.present import report

TRIALS = (300, 3_000)
TIMES = """() => [performance.getEntriesByName('first-paint')[0].startTime,
                  performance.getEntriesByType('navigation')[0].loadEventEnd]"""
FILTER = """() => { const start = performance.now(); document.querySelector('#choices input[name=contestant]').click();
                   document.body.offsetHeight; return performance.now() - start; }"""


def opened(browser: Browser, file: Path) -> tuple[float, float, float]:
    """Return the times of first paint, of the end of loading, and of a new layout after a contestant is left out."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(file.as_uri())
    page.wait_for_function("performance.getEntriesByName('first-paint').length > 0")
    paint, loaded = page.evaluate(TIMES)
    filtered = page.evaluate(FILTER)
    page.close()
    return paint, loaded, filtered


def main(openings: int) -> None:
    run = made_run()
    blocks = max(trial.block for trial in run.trials)
    print(f"{'trials':>6} {'size':>9} {'first paint':>12} {'loaded':>8} {'filtered':>9}")
    program = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for trial_count in TRIALS:
            times = range(-(-trial_count // len(run.trials)))
            trials = [replace(trial, block=trial.block + time * blocks) for time in times for trial in run.trials]
            file = Path(folder) / "report.html"
            report.write(replace(run, trials=tuple(trials)), file)
            times_by_phase = zip(*(opened(browser, file) for _ in range(openings)), strict=True)
            paint, loaded, filtered = map(statistics.median, times_by_phase)
            size = f"{file.stat().st_size / 2**20:.2f} MiB"
            print(f"{len(trials):>6} {size:>9} {paint:>12.0f} {loaded:>8.0f} {filtered:>9.0f}", flush=True)
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
