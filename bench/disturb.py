"""A neighbour that takes the cores in bursts, to show what netdyno still finds out beside it.

    python bench/disturb.py [--cores 0,1] [--seed 1] -- ./netdyno run
    python bench/disturb.py [--cores 0,1] [--seed 1] --seconds 60

While the command runs, or for the given seconds, one process on each core (by default the first two that we may use)
burns it in bursts of 50 to 800 ms at random times, a quarter of the time, and each at its own times. They run before
all that netdyno starts (SCHED_FIFO, sched(7)) where this user may do that; elsewhere at normal priority, and then they
share a core with other programs. Their times come from the seed alone. They end with this program, however it ends, and
after 1200 seconds at the latest.

At the end stderr has the share of each core that they took, as measured CPU time, and the number of bursts. The exit
code is the command's (128 + the signal that ended it), or 1 where not every core could be burnt.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.measure.machine.pinning import may_run_realtime
from netdyno.measure.machine.process import RELAY_PRIORITY, Process, TrialError

SHORTEST_S, LONGEST_S = 0.05, 0.8
SHARE = 0.25
"""The share of the time that is in bursts."""
MEAN_GAP_S = (SHORTEST_S + LONGEST_S) / 2 * (1 / SHARE - 1)
BOUND_S = 1200.0
PRIORITY = RELAY_PRIORITY + 1
"""Above all of netdyno's own programs, as a hypervisor is."""
ENDS = {signal.SIGINT, signal.SIGTERM}
PATIENCE_S = 10.0
"""The time for a burner to begin, or to report. Not a speed limit."""


# --- the times of the bursts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Burst:
    """A burst, in seconds from the beginning."""

    begin_s: float
    end_s: float


def schedule(seed: int, core: int, bound_s: float = BOUND_S) -> Iterator[Burst]:
    """Yield the bursts on a core until the bound, which cuts the last one short. Gaps are exponential, so that nothing
    can foresee the next burst. Pure."""
    chance = random.Random(f"{seed} on core {core}")
    end_s = 0.0
    while True:
        begin_s = end_s + chance.expovariate(1 / MEAN_GAP_S)
        if begin_s >= bound_s:
            return
        end_s = begin_s + chance.uniform(SHORTEST_S, LONGEST_S)
        yield Burst(begin_s, min(end_s, bound_s))


# --- the process on one core -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Taken:
    """The work of one burner: bursts begun, and CPU seconds used in them, over its running time."""

    core: int
    bursts: int
    cpu_s: float
    wall_s: float

    def __str__(self) -> str:
        share = self.cpu_s / self.wall_s
        return f"core {self.core}: {share:.1%} of {self.wall_s:.1f} s taken, in {self.bursts} bursts"


def burn(seed: int, core: int, bound_s: float) -> Taken:
    """Burn the core that this process is pinned to, until the bound or SIGTERM, which ends a burst at once."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    print(json.dumps({"burning": core}), flush=True)
    begun_s = time.monotonic()
    bursts, cpu_s = 0, 0.0
    for burst in schedule(seed, core, bound_s):
        if rest_until(begun_s + burst.begin_s):
            break
        bursts += 1
        before_s = time.process_time()
        is_signalled = burn_until(begun_s + burst.end_s)
        cpu_s += time.process_time() - before_s
        if is_signalled:
            break
    else:
        rest_until(begun_s + bound_s)
    return Taken(core, bursts, cpu_s, time.monotonic() - begun_s)


def rest_until(end_s: float) -> bool:
    """Rest until `end_s` (time.monotonic). Returns whether SIGTERM came first; SIGTERM is blocked."""
    return signal.sigtimedwait({signal.SIGTERM}, max(0.0, end_s - time.monotonic())) is not None


def burn_until(end_s: float) -> bool:
    """Burn until `end_s`. Returns whether SIGTERM came first."""
    while time.monotonic() < end_s:
        if rest_until(0):
            return True
        sum(range(10_000))
    return False


# --- both of them, and what runs beside them ---------------------------------------------------------------------


@contextmanager
def start_burner(core: int, seed: int, bound_s: float, *, realtime: bool) -> Iterator[Process]:
    """Start a burner on a core, and end it afterwards. Raises TrialError where it does not begin."""
    command = [sys.executable, str(Path(__file__).resolve()), "--burn", str(core)]
    command += ["--seed", str(seed), "--seconds", str(bound_s)]
    name = f"burner of core {core}"
    with (
        tempfile.NamedTemporaryFile() as output,
        Process(command, [core], output, name=name, talks=True, realtime=realtime, priority=PRIORITY) as burner,
    ):
        if burner.lines().wait_line(time.monotonic() + PATIENCE_S) is None:
            raise TrialError(f"the {name} did not begin within {PATIENCE_S:g} s{burner.read_reason()}")
        yield burner


def end_burner(burner: Process) -> Taken:
    """End a burner and read its last line. Raises TrialError where it did not end well."""
    burner.terminate()
    burner.expect_end(time.monotonic(), PATIENCE_S)
    return Taken(**json.loads(Path(burner.output.name).read_text(encoding="utf-8").splitlines()[-1]))


def disturb(cores: Sequence[int], seed: int, bound_s: float, work: Callable[[], int]) -> int:
    """Burn these cores while `work` runs, and print what was taken. Returns the result of `work`. Raises TrialError
    where a burner does not begin, or does not end well."""
    realtime = may_run_realtime(PRIORITY)
    with ExitStack() as stack:
        burners = [stack.enter_context(start_burner(core, seed, bound_s, realtime=realtime)) for core in cores]
        say(f"bursts on cores {','.join(map(str, cores))}, seed {seed}, {describe_priority(realtime)}")
        began_s = time.monotonic()
        code = work()
        if time.monotonic() - began_s > BOUND_S:
            say(f"the bursts ended after {BOUND_S:g} s, and the command went on without them")
        all_taken = [end_burner(burner) for burner in burners]
    for taken in all_taken:
        say(str(taken))
    return code


def describe_priority(realtime: bool) -> str:
    return (
        f"at real-time priority {PRIORITY}"
        if realtime
        else f"at normal priority, as this user may not use real-time (ulimit -r {PRIORITY}, or root)"
    )


def run(command: Sequence[str]) -> int:
    """Run the command to its end. Ctrl-C reaches it by itself, SIGTERM is passed on."""
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        say(f"{command[0]} cannot be started: {error.strerror}")
        return 127
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    code = child.wait()
    return code if code >= 0 else 128 - code


def wait(seconds: float) -> int:
    """Wait for this time, or until one of ENDS, which are blocked."""
    received = signal.sigtimedwait(ENDS, seconds)
    return 0 if received is None else 128 + received.si_signo


def say(text: str) -> None:
    print(f"disturb: {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    own_arguments, command = split_command(arguments)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=parse_seconds, help="how long, where no command says it")
    parser.add_argument("--cores", type=parse_cores, default=sorted(os.sched_getaffinity(0))[:2])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--burn", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(own_arguments)
    if (options.seconds is None) == (not command):
        parser.error("takes either --seconds N or -- COMMAND")
    if options.burn is not None:
        print(json.dumps(asdict(burn(options.seed, options.burn, options.seconds))), file=sys.stderr)
        return 0
    try:
        if command:
            return disturb(options.cores, options.seed, BOUND_S, lambda: run(command))
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # before the line that announces the bursts
        return disturb(options.cores, options.seed, options.seconds, lambda: wait(options.seconds))
    except TrialError as failure:
        say(str(failure))
        return 1


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into our own and those after the first "--"."""
    words = list(arguments)
    separator = words.index("--") if "--" in words else len(words)
    return words[:separator], words[separator + 1 :]


def parse_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= BOUND_S:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most {BOUND_S:g}")
    return seconds


def parse_cores(text: str) -> list[int]:
    """Parse "0,1": cores that this process may use, each once."""
    cores = [int(word) for word in text.split(",")]
    allowed = sorted(os.sched_getaffinity(0))
    if len(set(cores)) < len(cores) or not set(cores) <= set(allowed):
        raise argparse.ArgumentTypeError(f"must name some of the cores {','.join(map(str, allowed))}, each once")
    return cores


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
