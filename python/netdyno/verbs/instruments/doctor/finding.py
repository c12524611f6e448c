"""The findings of checks, and the registry of checks."""

from __future__ import annotations

import importlib
import pkgutil
import textwrap
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from netdyno.model.base import Frozen
from netdyno.verbs.instruments.doctor.system import System

DoctorVerdict = Literal["bad", "could be better", "unknown", "good"]
"""The worst first. `unknown`: the system does not report it, or has no such thing."""
VERDICTS: tuple[DoctorVerdict, ...] = get_args(DoctorVerdict)


class Finding(Frozen):
    """`effect`: what it does to which figures. `fix`: the command or the setting, empty where none is needed;
    `needs_root` is that of the fix."""

    name: str
    found: str
    verdict: DoctorVerdict
    effect: str
    fix: str = ""
    needs_root: bool = False


class Opinion(msgspec.Struct, frozen=True):
    """The judgement of a check on a system; the name and the effect belong to the check."""

    found: str
    verdict: DoctorVerdict
    fix: str = ""
    needs_root: bool = True


JudgeSystem = Callable[[System], Opinion]


class Check(NamedTuple):
    name: str
    effect: str
    judge: JudgeSystem

    def examine(self, system: System) -> Finding:
        """Run the check. The finding has a fix only where something could be better."""
        opinion = self.judge(system)
        has_fix = bool(opinion.fix) and opinion.verdict != "good"
        return Finding(
            name=self.name,
            found=opinion.found,
            verdict=opinion.verdict,
            effect=self.effect,
            fix=opinion.fix if has_fix else "",
            needs_root=has_fix and opinion.needs_root,
        )


_CHECKS: dict[str, Check] = {}


def check(name: str, effect: str) -> Callable[[JudgeSystem], JudgeSystem]:
    """Make a check of a function that judges a system; `effect` is one sentence."""

    def register(judge: JudgeSystem) -> JudgeSystem:
        _CHECKS[name] = Check(name, effect, judge)
        return judge

    return register


def list_checks() -> tuple[Check, ...]:
    """The checks of every module in checks/, by module and in the order in which they stand there."""
    package = importlib.import_module("netdyno.verbs.instruments.doctor.checks")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return tuple(_CHECKS.values())


_INDENT = 4


def as_text(findings: Sequence[Finding], width: int) -> str:
    """Format findings in the given order, the worst first; `width` is the terminal's, in columns. Pure."""
    names = max(len(finding.name) for finding in findings)
    verdicts = max(len(verdict) for verdict in VERDICTS)
    lines = [_summarise(findings), ""]
    for finding in findings:
        lead = f"{finding.verdict:{verdicts}}  {finding.name:{names}}  "
        lines += _wrap(finding.found, width, lead, " " * len(lead))
        if finding.verdict in ("bad", "could be better"):
            lines += _wrap(finding.effect, width, " " * _INDENT)
            lines += _wrap(f"fix{' (root)' if finding.needs_root else ''}: {finding.fix}", width, " " * _INDENT)
    return "\n".join(lines)


def _summarise(findings: Sequence[Finding]) -> str:
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in VERDICTS}
    return "this machine: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def _wrap(text: str, width: int, lead: str, further: str | None = None) -> list[str]:
    indent = lead if further is None else further
    return textwrap.wrap(text, max(width, 40), initial_indent=lead, subsequent_indent=indent, break_long_words=False)
