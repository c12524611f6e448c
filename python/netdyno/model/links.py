"""What may lie between load and server. Whoever must know what a link does asks for its nature, not for its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Link = Literal["loopback", "lan", "wan"]


class Nature(NamedTuple):
    """`apart`: load and server stand in network namespaces of their own, joined by a veth pair. `impaired`: it delays
    or loses packets, as asked; that is a relay of ours, where the kernel has no netem."""

    apart: bool
    impaired: bool


LINKS: Mapping[str, Nature] = {
    "loopback": Nature(apart=False, impaired=False),
    "lan": Nature(apart=True, impaired=False),
    "wan": Nature(apart=True, impaired=True),
}
