"""Skipped tests in the summary: a line a reason with its count, so that many do not bury what failed or passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = count_reasons(terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.section(f"skipped: {sum(reasons.values())} tests, by reason")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:6}  {reason}")


def count_reasons(reports: Iterable[pytest.TestReport]) -> Counter[str]:
    """Count skipped tests by reason. pytest gives file, line and reason."""
    texts = (report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr) for report in reports)
    return Counter(text.removeprefix("Skipped: ") for text in texts)
