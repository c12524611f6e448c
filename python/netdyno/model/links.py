"""The links between load and server. Code that depends on the properties of a link uses its nature, not its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Link = Literal["loopback", "lan", "wan"]


class Nature(NamedTuple):
    """The nature of a link. `apart`: load and server are in network namespaces of their own, joined by a veth pair, or
    on machines of their own. `impaired`: it delays or loses packets, as requested, by a relay of netdyno where the
    kernel has no netem."""

    apart: bool
    impaired: bool


LINKS: Mapping[str, Nature] = {
    "loopback": Nature(apart=False, impaired=False),
    "lan": Nature(apart=True, impaired=False),
    "wan": Nature(apart=True, impaired=True),
}
