"""Frames of several senders to one reader: a contestant that says it is unsafe must be seen to mix them, and its safe
siblings, under the same load, must not. So neither can err about itself (docs/adr/unranked.md)."""

from __future__ import annotations

import json

import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.trial.load import INVALID_LOAD
from netdyno.model.contestant import Contestant
from tests.contract.tcp.conftest import room_for
from tests.support.patience import PATIENCE_S
from tests.support.server import run, serving

# All clients send at the same moment. `gathered`: 15 megabytes and more for every reader, beyond what the buffers of a
# connection hold in the kernel (tcp_wmem and tcp_rmem: 4 and 6 MiB), so that send(2) sleeps in the middle of a frame
# and lets go of the socket. `split`: a length and a body are two writes, with room for another's between.
LOADS = {
    "gathered": ("--size", "1000000", "--round", "500ms", "--duration", "500ms"),
    "split": ("--size", "31", "--duration", "150ms"),
}
MORE_AND_MORE = (16, 16, 24, 24, 32, 32)
"""Clients of one attempt after the other; on this many attempts nothing is proven but that the load is too small."""


def verified(contestant: Contestant, mode: str, clients: int, patience: str) -> dict[str, int]:
    """Return what the generator found wrong in a load of many clients."""
    generator = generator_path(build_dir())
    assert generator.is_file(), f"not built: {generator}"
    load = ("--workload", "chat", "-c", str(clients), *LOADS[mode], "--warmup", "100ms", "--timeout", patience)
    options = ("--workload", "chat", "--write-mode", mode, *room_for(contestant, clients))
    with serving(contestant.command, *options) as server:
        done = run((str(generator), server.endpoint), *load, "--json", "-")
        assert done.code in {0, INVALID_LOAD}, done  # replies that are mixed up make its figures invalid
        result = json.loads(done.stdout)
    messages = result["messages"]
    assert messages["received"] > 0, result
    return {name: messages[name] for name in ("corrupt", "lost")} | {"streams": result["errors"]["protocol"]}


@pytest.mark.calm
@pytest.mark.unsafe(True)
@pytest.mark.workloads("chat")
@pytest.mark.parametrize("mode", LOADS)
def test_what_is_called_unsafe_mixes_frames(contestant: Contestant, workload: str, mode: str) -> None:
    seen = []
    for clients in MORE_AND_MORE:
        seen.append(verified(contestant, mode, clients, patience="1s"))
        if seen[-1]["corrupt"] > 0:
            assert seen[-1]["lost"] > 0, "what is corrupt is lost as well"
            return
    pytest.fail(f"{contestant.name} says that it is unsafe ({contestant.manifest.unsafe}), but nothing broke: {seen}")


@pytest.mark.unsafe(False)
@pytest.mark.asynchronous(False)
@pytest.mark.workloads("chat")
@pytest.mark.parametrize("mode", LOADS)
def test_the_same_loads_break_nothing_where_frames_are_kept_whole(
    contestant: Contestant, workload: str, mode: str
) -> None:
    losses = verified(contestant, mode, MORE_AND_MORE[0], patience=f"{PATIENCE_S:g}s")
    assert losses == {"corrupt": 0, "lost": 0, "streams": 0}
