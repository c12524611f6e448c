"""Colours and markers: one of each per contestant, the same in every report, distinct without colour vision too.

The hues are Okabe and Ito's (2008), darkened for white paper and lightened for dark so that each keeps a contrast of at
least 3:1 with its background (WCAG 1.4.11). Figures name colours by variables; the page's style sheet gives the values.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

INK, MUTED, RULE, PAPER, LOSS = "#010203", "#010204", "#010205", "#010206", "#010207"
"""Stand-ins that matplotlib draws with and that become variables of the style sheet in the finished SVG."""
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    PAPER: "var(--paper)",
    LOSS: "var(--bad)",
}
RING = "M-7.2,0a7.2,7.2 0 1,0 14.4,0a7.2,7.2 0 1,0 -14.4,0z"
"""The mark around a figure that lost more messages than the bound: no marker of a contestant is an open ring."""


PUBLISHED = "M0,-6L6,0L0,6L-6,0z"
"""The mark of a figure that the source published, from its own machine: the only hollow mark."""


class Shape(NamedTuple):
    """A marker: its name in matplotlib and the same shape as SVG path data in a box of -8 to 8."""

    matplotlib: str
    path: str


LIGHT = ("#0369a8", "#c2480c", "#00795c", "#a13d86", "#866300", "#3f4a5a", "#7a4cc2", "#a8323e")
DARK = ("#5db5f5", "#ff955c", "#3ccf9f", "#ee9fd4", "#e3c34a", "#b9c2cf", "#b99cf5", "#ff8f99")
SHAPES = (
    Shape("o", "M-6,0a6,6 0 1,0 12,0a6,6 0 1,0 -12,0z"),
    Shape("s", "M-5.5,-5.5h11v11h-11z"),
    Shape("^", "M0,-6.5L6.5,5.5H-6.5z"),
    Shape("D", "M0,-7.2L7.2,0L0,7.2L-7.2,0z"),
    Shape("v", "M0,6.5L6.5,-5.5H-6.5z"),
    Shape("P", "M-2.3,-6.8h4.6v4.5h4.5v4.6h-4.5v4.5h-4.6v-4.5h-4.5v-4.6h4.5z"),
    Shape("X", "M-6.5,-3.5L-3.5,-6.5L0,-3L3.5,-6.5L6.5,-3.5L3,0L6.5,3.5L3.5,6.5L0,3L-3.5,6.5L-6.5,3.5L-3,0z"),
    Shape("p", "M0,-7L6.7,-2.2L4.1,5.7H-4.1L-6.7,-2.2z"),
)


class ContestantStyle(NamedTuple):
    """The colour and the shape of a contestant. Each has variables of its own, so that the page can leave one out of
    every figure. `stand_in`, `ink` and `ring` are for matplotlib (its colour, words beside it, the mark of a loss),
    `variable` for HTML."""

    colour: int
    shape: int
    number: int

    @property
    def stand_in(self) -> str:
        return f"#02{self.number:04x}"

    @property
    def ink(self) -> str:
        return f"#03{self.number:04x}"

    @property
    def ring(self) -> str:
        return f"#04{self.number:04x}"

    @property
    def variable(self) -> str:
        return f"var(--k{self.number})"


KNOWN = """
granian reactor-netty prefork-reuseport threads-snapshot asio-context-per-thread bun udp-multicast threads-pool-queue
threads-snapshot-unlocked actix-web fastapi uring-reactor - epoll-coroutine-pool asio-coroutines python-threads-nogil
udp-coroutines asio-callbacks gnet gevent boost-fibers asyncio-protocol node-http helidon
qt-thread-per-client monoio libuv go-http uvloop process-per-connection tokio-per-core epoll-coroutines
go-net flask zeromq-coroutines python-threads erlang-processes qt-thread-pool fastify -
folly-async epoll-worker-pool netty axum beast threads-global-lock prefork uring-per-core
iterative zeromq-coroutine-pool epoll-per-core - node-events libevent - nginx
node-cluster asio-uring epoll-reactor tokio udp-reuseport cpp-httplib java-virtual-threads node-0-10
"""
"""A line for each colour, a place in it for each shape: up to eight servers of an experiment differ in colour. A
server need not stand here: its name then chooses."""
COUNT = len(LIGHT) * len(SHAPES)
PLACES = {name: place for place, name in enumerate(KNOWN.split()) if name != "-"}


def assign_styles(contestants: Sequence[str]) -> dict[str, ContestantStyle]:
    """Return a style for each name, the same in every report, unless two that are not known choose the same."""
    free = [place for place in range(COUNT) if place not in map(PLACES.get, contestants)]
    places = {name: PLACES[name] for name in contestants if name in PLACES}
    for name in sorted(set(contestants) - set(places)):
        chosen = zlib.crc32(name.encode()) % COUNT
        places[name] = min(free, key=lambda place: (place - chosen) % COUNT, default=chosen)
        free = [place for place in free if place != places[name]]
    return {
        name: ContestantStyle(*divmod(places[name], len(SHAPES)), number) for number, name in enumerate(contestants)
    }


def replace_stand_ins(svg: str) -> str:
    """Replace every stand-in of an SVG by its variable."""
    for stand_in, variable in VARIABLES.items():
        svg = svg.replace(stand_in, variable)
    return re.sub(r"#0([234])([0-9a-f]{4})\b", _replace_stand_in, svg)


def _replace_stand_in(stand_in: re.Match[str]) -> str:
    """Return the variable of a contestant; for words and rings it has none unless it is left out."""
    number = int(stand_in[2], 16)
    return (f"var(--k{number})", f"var(--i{number}, var(--ink))", f"var(--r{number}, var(--bad))")[int(stand_in[1]) - 2]


def copy_for_runs(styles: Mapping[str, ContestantStyle], runs: int) -> list[dict[str, ContestantStyle]]:
    """Return the same styles for each run, each with variables of its own."""
    return [
        {name: style._replace(number=style.number + run * len(styles)) for name, style in styles.items()}
        for run in range(runs)
    ]


def declare_run_colours(styles: Sequence[Mapping[str, ContestantStyle]]) -> str:
    """Return CSS declarations: the colour of each contestant in each run."""
    return " ".join(
        f"--k{style.number}: var(--c{style.colour});" for run_styles in styles for style in run_styles.values()
    )


def declare_colours(colours: Sequence[str], heat: Sequence[str]) -> str:
    """Return CSS declarations of the contestants' colours, and of the steps of a surface with the ink on each."""
    return " ".join(
        [
            *(f"--c{index}: {colour};" for index, colour in enumerate(colours)),
            *(f"--h{index}: {colour}; --t{index}: {choose_ink(colour)};" for index, colour in enumerate(heat)),
        ]
    )


# --- surfaces ----------------------------------------------------------------------------------------------------

HEAT_STEPS = 24


def _make_heat(start: float, end: float) -> tuple[str, ...]:
    """Return steps of ColorBrewer's YlGnBu: its lightness only falls, so that it is read without colour vision too."""
    ramp = colormaps["YlGnBu"]
    return tuple(to_hex(ramp(start + (end - start) * step / (HEAT_STEPS - 1))) for step in range(HEAT_STEPS))


HEAT_LIGHT = _make_heat(0.04, 0.98)
HEAT_DARK = _make_heat(0.98, 0.1)
"""The least is nearest to the paper, in light and in dark."""


def choose_ink(colour: str) -> str:
    """Return black or white, whichever has the greater contrast; one of them has 4.5:1 (WCAG 2.2, 1.4.3)."""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    luminance = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"
