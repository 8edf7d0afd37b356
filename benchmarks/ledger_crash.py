"""Kill -9 at random moments: does the ledger ever count less than what was released?

Each round forks many processes that debit one new ledger as fast as they can, and mark a release
in memory shared with the parent only after `debit` returned. Each is killed (SIGKILL) at a random
moment. When all are dead, the ledger must verify, spent must be at least what was released, and at
most one debit per process more (the one in flight).

    python benchmarks/ledger_crash.py                       # 1,000 rounds of 200 processes
    python benchmarks/ledger_crash.py --rounds 20 --release-first   # the twin: must report losses
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import mmap
import os
import secrets
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger

COST = DpGuarantee(epsilon=0.001, model="local", unit="series")
# One byte per release: a byte is stored whole, so a kill cannot tear it, as it would a counter.
MARKS = 4096


@dataclass
class Totals:
    rounds: int = 0
    processes: int = 0
    released: int = 0
    debited: int = 0
    in_flight: int = 0
    not_intact: int = 0
    losses: int = 0
    too_many: int = 0
    died_otherwise: int = 0

    @property
    def failed(self) -> bool:
        return bool(self.not_intact or self.losses or self.too_many or self.died_otherwise)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--window", type=float, default=0.1, help="seconds until a kill, at most")
    parser.add_argument("--release-first", action="store_true", help="the wrong order, as a twin")
    options = parser.parse_args()
    totals, start = Totals(), time.monotonic()
    gc.freeze()  # children share the parent's memory instead of copying it
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            play_round(Path(folder) / f"{number}.db", totals, options)
            if sys.stderr.isatty() and number % 10 == 9:
                print(f"\r{number + 1} rounds, {totals.debited} debits", end="", file=sys.stderr)
    seconds = round(time.monotonic() - start, 1)
    print(json.dumps({**vars(totals), "failed": totals.failed, "seconds": seconds}))
    return 1 if totals.failed else 0


def play_round(path: Path, totals: Totals, options: argparse.Namespace) -> None:
    slots = mmap.mmap(-1, MARKS * options.processes)
    reap(spawn(path, slots, options), totals)
    check(path, slots, totals, processes=options.processes)
    slots.close()
    for side in path.parent.glob(f"{path.name}*"):
        side.unlink()
    totals.rounds += 1
    totals.processes += options.processes


def spawn(path: Path, slots: mmap.mmap, options: argparse.Namespace) -> list[int]:
    """Fork all children and kill each at its own random moment."""
    due: list[tuple[float, int]] = []
    pids = []
    for number in range(options.processes):
        pid = os.fork()
        if pid == 0:
            child(path, slots, number, release_first=options.release_first)
        pids.append(pid)
        delay = options.window * secrets.randbelow(10**6) / 10**6
        heapq.heappush(due, (time.monotonic() + delay, pid))
        kill_those_due(due)
    while due:
        time.sleep(max(due[0][0] - time.monotonic(), 0.0))
        kill_those_due(due)
    return pids


def kill_those_due(due: list[tuple[float, int]]) -> None:
    while due and due[0][0] <= time.monotonic():
        os.kill(heapq.heappop(due)[1], signal.SIGKILL)


def child(path: Path, slots: mmap.mmap, number: int, *, release_first: bool) -> None:
    """Debit, release, and again, until killed; never returns."""
    try:
        # The ledger itself is created in the race too.
        ledger = Ledger.open(path, budget_epsilon=1e6, timeout_seconds=60.0)
        for mark in range(MARKS * number, MARKS * (number + 1)):
            if release_first:
                slots[mark] = 1
            ledger.debit(subject=f"device-{number}", guarantee=COST, purpose="crash test")
            slots[mark] = 1
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(3)


def reap(pids: list[int], totals: Totals) -> None:
    for pid in pids:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        totals.died_otherwise += code != -signal.SIGKILL


def check(path: Path, slots: mmap.mmap, totals: Totals, *, processes: int) -> None:
    counts = [sum(slots[MARKS * i : MARKS * (i + 1)]) for i in range(processes)]
    with Ledger.open(path, budget_epsilon=1e6) as ledger:
        totals.not_intact += not ledger.verify()
        spent = ledger.subjects()
    for number, released in enumerate(counts):
        amount = spent.get(f"device-{number}")
        debited = round(amount.epsilon / COST.epsilon) if amount else 0
        totals.released += released
        totals.debited += debited
        totals.losses += debited < released
        totals.in_flight += debited == released + 1
        totals.too_many += debited > released + 1


if __name__ == "__main__":
    sys.exit(main())
