"""The reference for protocol/WIRE.md. What goes over the wire is written once in Python, and the harness has it."""

from netdyno.protocol import wire

__all__ = ["wire"]
