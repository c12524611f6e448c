"""What goes along with a difference in rank, in words."""

from __future__ import annotations

from collections.abc import Mapping

SAYS: Mapping[str, str] = {
    "cpu": "needs {} of server CPU a message against {}",
    "softirq": "has the kernel in softirqs on its cores for {} a message against {}",
    "voluntary": "gives up its core {} times a message against {}",
    "involuntary": "is taken off its core {} times in 1,000 messages against {}",
    "run-queue": "waits {} a message for a core against {}",
    "packets": "takes {} segments or datagrams a message against {}",
    "delayed-acks": "goes with {} delayed ACKs in 1,000 messages against {}",
    "retransmits": "goes with {} segments sent again in 1,000 messages against {}",
    "timeouts": "goes with {} timeouts of TCP in 1,000 messages against {}",
    "no-room": "goes with {} datagrams that found no room in a socket in 1,000 messages against {}",
}
"""The end of a sentence about a contestant, by counter, with the figures of it and of another for {} and {}."""
