"""Figures as people read them: a unit on each, three significant digits, no more."""

from __future__ import annotations

import math
from collections.abc import Sequence

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_BITS = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_RATES = ((1e6, "M"), (1e3, "k"), (1.0, ""))
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
DASH = "\N{EN DASH}"
MOST_NAMED = 4
"""The most names that a sentence lists before it counts the others."""
TWIN = " (A/A twin)"
"""The suffix of a contestant's name, for a trial that repeats another under a second name."""


_MOST_DECIMALS = 4


def three_digits(value: float) -> str:
    """Format a number with three significant digits, without an exponent, and with four decimals at most: "<0.0001" is
    not 0. A dash where there is no number."""
    if not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded)) + 1e-9))
    text = f"{rounded:.{min(decimals, _MOST_DECIMALS)}f}".replace("-", MINUS)
    if float(text.lstrip(MINUS)) == 0:
        least = f"{10**-_MOST_DECIMALS:.{_MOST_DECIMALS}f}"
        return f"<{least}" if value > 0 else f">{MINUS}{least}"
    return text


def _scale(value: float, scales: Sequence[tuple[float, str]], gap: str = " ") -> str:
    """Format the value in the largest unit that it fills after rounding to three digits."""
    if not math.isfinite(value):
        return DASH
    size, unit = next((scale for scale in scales if abs(value) >= scale[0] * 0.9995), scales[-1])
    return f"{three_digits(value / size)}{gap}{unit}".rstrip()


def duration(nanoseconds: float) -> str:
    return _scale(nanoseconds, _TIMES)


def microseconds(nanoseconds: float) -> str:
    """Format a duration in microseconds, however long: figures that stand together have one unit."""
    return f"{three_digits(nanoseconds / 1e3)} µs" if math.isfinite(nanoseconds) else DASH


def memory(size_bytes: float) -> str:
    return _scale(size_bytes, _SIZES)


def bits(per_second: float) -> str:
    return _scale(per_second, _BITS)


def rate(per_second: float) -> str:
    """Format messages per second, such as "123k/s"."""
    return f"{_scale(per_second, _RATES, '')}/s" if math.isfinite(per_second) else DASH


def percent_change(ratio: float) -> str:
    """Format a ratio as a signed change: "+12%", "−3.4%"; from double upwards as a multiple: "×2.4"."""
    if not math.isfinite(ratio):
        return DASH
    if ratio >= 2:
        return f"{TIMES}{three_digits(ratio)}"
    sign = "+" if ratio > 1 else MINUS if ratio < 1 else ""
    bound, size = _format_distance(ratio)
    if sign == MINUS:
        bound = {"<": ">", ">": "<"}.get(bound, "")
    return f"{bound}{sign}{size}%"


def _format_distance(ratio: float) -> tuple[str, str]:
    """Format the distance of a ratio below 2 from 1, in percent, with "<" or ">" before it where that is a bound. Only
    a ratio of 1 reads as "0.0", and only a ratio of 0 as 100 below."""
    size = abs(ratio - 1) * 100
    if 0 < size < 0.05:
        return "<", "0.1"
    if size < 9.95:
        return "", f"{size:.1f}"
    return ("", f"{size:.0f}") if ratio >= 1 else _format_below_hundred(size, f"{size:.0f}")


def _format_below_hundred(size: float, text: str) -> tuple[str, str]:
    """Return a text that is below 100 for a percentage below 100: the given one, or else one with more digits."""
    decimals = 0
    while size < 100 and float(text) >= 100 and decimals < _MOST_DECIMALS:
        decimals += 1
        text = f"{size:.{decimals}f}"
    return ("", text) if size >= 100 or float(text) < 100 else (">", f"{100 - 10**-_MOST_DECIMALS:.{_MOST_DECIMALS}f}")


def share(part: float) -> str:
    """Format a part of a whole as a percentage: "12%", "0.034%", "0%". Only 0 reads as "0%", and only 1 as "100%"."""
    if not math.isfinite(part):
        return DASH
    text = three_digits(100 * part)
    bound = ""
    if 0.5 < part < 1:
        bound, text = _format_below_hundred(100 * part, text)
    return f"{bound}{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def margin(ratio: float) -> str:
    """Format the distance of a ratio above or below 1, without a sign: "12%", or "2.4 times" from double upwards."""
    return f"{three_digits(ratio)} times" if ratio >= 2 else f"{''.join(_format_distance(ratio))}%"


def whole(value: float) -> str:
    """Format a number without decimals, unless it would read as 0 and is not."""
    return three_digits(value) if 0 < abs(value) < 1 else f"{value:,.0f}"


def p_value(p: float) -> str:
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}" if p < 0.995 else "p = 1"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Join names as a list in words: "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}" if names else "none"


def list_first(names: Sequence[str]) -> str:
    """Join names as a list in words, of many the first four: "a, b, c, d and 15 more"."""
    shown = names if len(names) <= MOST_NAMED + 1 else [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return listed(shown)


def shortened(text: str, longest: int) -> str:
    """Shorten a text to at most `longest` characters, cut between words."""
    return text if len(text) <= longest else f"{text[: longest - 3].rsplit(' ', 1)[0]} ..."


def superscript(number: int) -> str:
    """Return a small number to follow a figure: "¹", "¹²"."""
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
