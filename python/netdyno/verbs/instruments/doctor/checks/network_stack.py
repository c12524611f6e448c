"""Checks of the kernel's network stack: queues, ports, buffers, and networks of its own for a trial."""

from __future__ import annotations

import msgspec

from netdyno.measure.machine.links.namespace import NotAllowedError
from netdyno.verbs.instruments.doctor.finding import DoctorVerdict, Opinion, check
from netdyno.verbs.instruments.doctor.system import System

_CONNECTIONS = 10_000
"""The crowd that experiments are made for, which may come at once."""
_BACKLOG = 4096
"""The backlog with which every server calls listen(2) (lib/server/options.hpp)."""
_LEAST_BACKLOG = 1024
_RECEIVE_BUFFER = 4 << 20
"""The buffer that the generator requests for each UDP socket (loadgen/transport/udp.cpp)."""


@check(
    "accept queue",
    "Connects of a burst beyond it are dropped, and retried after a second: tails in connect times.",
)
def accept_queue(system: System) -> Opinion:
    """net.core.somaxconn cuts a server's backlog of listen(2)."""
    return _judge_sysctl(system, "net.core.somaxconn", _BACKLOG, _LEAST_BACKLOG)


@check("SYN backlog", "SYNs of a burst beyond it are dropped, or answered with cookies: tails in connect times.")
def syn_backlog(system: System) -> Opinion:
    """net.ipv4.tcp_max_syn_backlog (tcp(7)); with cookies no client is turned away, so little is lost."""
    opinion = _judge_sysctl(system, "net.ipv4.tcp_max_syn_backlog", _LEAST_BACKLOG, _LEAST_BACKLOG)
    cookies = system.text("/proc/sys/net/ipv4/tcp_syncookies") in ("1", "2")
    return (
        msgspec.structs.replace(opinion, verdict="could be better") if opinion.verdict == "bad" and cookies else opinion
    )


@check("ports", "A generator that has run out of ports cannot connect: its trials of many connections are invalid.")
def ports(system: System) -> Opinion:
    """net.ipv4.ip_local_port_range: each connection to a server takes one, and keeps it a minute in TIME_WAIT."""
    words = system.text("/proc/sys/net/ipv4/ip_local_port_range").split()
    if len(words) != 2:
        return Opinion("not reported by this kernel", "unknown")
    room = int(words[1]) - int(words[0]) + 1
    observed = f"{room} ({words[0]} to {words[1]}), for {_CONNECTIONS} connections"
    fix = 'sysctl -w net.ipv4.ip_local_port_range="32768 60999"'
    if room >= 2 * _CONNECTIONS:
        return Opinion(observed, "good")
    return Opinion(observed, "could be better" if room >= _CONNECTIONS else "bad", fix)


@check(
    "UDP buffers",
    "Datagrams for which a socket has no room are lost: more loss over udp and multicast, not latency.",
)
def udp_buffers(system: System) -> Opinion:
    """net.core.rmem_max; only root may pass it (socket(7), SO_RCVBUFFORCE)."""
    text = system.text("/proc/sys/net/core/rmem_max")
    if not text:
        return Opinion("not reported by this kernel", "unknown")
    observed = f"{int(text)} bytes of the {_RECEIVE_BUFFER} that the generator asks for"
    if int(text) >= _RECEIVE_BUFFER:
        return Opinion(observed, "good")
    if system.is_root:
        return Opinion(f"{observed}, which root gets anyway", "good")
    return Opinion(observed, "could be better", f"sysctl -w net.core.rmem_max={_RECEIVE_BUFFER}")


@check("namespaces", "Without network namespaces, trials over multicast and over the link lan are skipped.")
def namespaces(system: System) -> Opinion:
    """Made and left again: only trying shows it (docs/adr/private-network.md)."""
    why_not = system.why_no_namespace()
    if not why_not:
        return Opinion(f"can be made{'' if system.is_root else ', without root'}", "good")
    return Opinion(f"cannot be made: {_strip_advice(why_not)}", "bad", _read_advice(why_not))


@check("link lan", "Without it, trials over two network stacks, or over a link with a rate, are skipped.")
def link_lan(system: System) -> Opinion:
    """Made with a rate, in namespaces of its own (docs/adr/links.md)."""
    why_not = system.why_no_lan()
    if not why_not:
        return Opinion("can be made, with a rate", "good")
    return Opinion(f"cannot be made: {_strip_advice(why_not)}", "could be better", _read_advice(why_not))


@check(
    "netem",
    "Without it the link wan is netdyno's own relay, which takes CPU time and is less punctual than the kernel.",
)
def netem(system: System) -> Opinion:
    """tc-netem(8), tried in a private network (docs/adr/links.md)."""
    try:
        why_not = system.why_no_netem()
    except NotAllowedError as error:
        return Opinion(f"not tried, because no namespace can be made: {_strip_advice(str(error))}", "unknown")
    if not why_not:
        return Opinion("available", "good")
    fix = "modprobe sch_netem, or a kernel with CONFIG_NET_SCH_NETEM"
    return Opinion(f"not available: {_strip_advice(why_not)}", "could be better", fix)


def _strip_advice(why_not: str) -> str:
    """The text of a NotAllowedError before the advice in brackets at its end."""
    return why_not.partition(" (")[0]


def _read_advice(why_not: str) -> str:
    """The advice that stands in brackets at the end of a NotAllowedError."""
    return why_not.rpartition("(")[2].rstrip(")") if why_not.endswith(")") else why_not.partition(": ")[2] or why_not


def _judge_sysctl(system: System, sysctl: str, enough: int, least: int) -> Opinion:
    text = system.text(f"/proc/sys/{sysctl.replace('.', '/')}")
    if not text:
        return Opinion("not reported by this kernel", "unknown")
    verdict: DoctorVerdict = "good" if int(text) >= enough else "could be better" if int(text) >= least else "bad"
    return Opinion(f"{sysctl} is {text}", verdict, f"sysctl -w {sysctl}={enough}")
