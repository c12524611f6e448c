"""The text about clients that write and never read: what was counted, and why it ranks no server. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.notices import Unread
from netdyno.kit import quantities

HEADINGS = ("contestant", "load", "trials", "clients finished", "written", "ended the server")
HEADLINE = "Not ranked"
WHY_NOT_RANKED = (
    "Its clients write and never read, so a server can look fast by doing nothing: the figures are what clients wrote, "
    "and rank no server."
)
EXPLAINED = (
    "Clients finished: they wrote all their messages and met no error, mean over trials. Written: messages of those "
    "clients per second, median over trials; the server need not have read them. Ended the server: the trials in which "
    "a client that left ended the server by SIGPIPE."
)


def make_row(cell: Unread) -> tuple[str, ...]:
    """Return a line under HEADINGS."""
    return (
        cell.contestant,
        cell.level,
        str(cell.trials),
        quantities.share(cell.finished),
        quantities.rate(cell.written_per_second),
        f"{cell.ended} of {cell.trials}",
    )
