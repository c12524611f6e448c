from netdyno.measure.audits.host_audits import client_slower
from netdyno.model.load_result import Audit, Part


def _hosts(*p50_ns: int) -> list[Part]:
    return [
        Part(host=f"tls://10.0.0.{number}:8787", connections=1, completed=9, p50_ns=p50, p99_ns=9 * p50, cores_used=0.1)
        for number, p50 in enumerate(p50_ns, 1)
    ]


def fails() -> Audit:
    """One of three takes more than twice as long, and 200 us."""
    return client_slower(_hosts(500_000, 1_210_000, 490_000))


def passes() -> Audit:
    """A short time may more than double."""
    return client_slower(_hosts(100_000, 390_000, 100_000))
