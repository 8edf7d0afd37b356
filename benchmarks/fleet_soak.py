"""A month in minutes: many short rounds while services and nodes are killed at random.

    python benchmarks/fleet_soak.py [--rounds 200] [--every 8] [--out FILE]

Real shuffler and analyser over TLS and light nodes as processes of their own. On average every
`--every` seconds one of them is killed without warning (kill -9) and started again a moment later.
Ends with an error unless every round is released exactly once, every ledger's chain is whole, no
node has paid for more reports than there were rounds, and no service has grown. One JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fleet_localhost import LocalFleet, local_fleet
from tacit.arena.record import commit, versions
from tacit.errors import TacitError

SERVICES = ("shuffler", "analyser")


class Soak:
    """The processes of one fleet, and whom the dice choose."""

    def __init__(self, fleet: LocalFleet, nodes: int, dice: random.Random) -> None:
        self.fleet, self.dice = fleet, dice
        self.nodes = [f"node-{i + 1}" for i in range(nodes)]
        self.light: dict[str, subprocess.Popen[bytes]] = {}
        self.kills: Counter[str] = Counter()
        self.memory: dict[str, list[float]] = {part: [] for part in SERVICES}

    def start(self, name: str) -> None:
        if name in SERVICES:
            self.fleet.start(name)
            return
        command = [sys.executable, "-m", "tacit.fleet.deployment.light_node"]
        with (self.fleet.folder / "logs" / f"{name}.log").open("ab") as log:
            self.light[name] = subprocess.Popen(
                [*command, str(self.fleet.path(name)), "0.2"], stdout=log, stderr=log
            )

    def strike(self) -> None:
        """Kill one process as a power cut would, and start it again a moment later."""
        name = self.dice.choice([*SERVICES, *SERVICES, *self.nodes])
        if name in SERVICES:
            self.memory[name].append(resident(self.fleet.running[name].pid))
            self.fleet.kill(name)
        else:
            if self.light[name].poll() is not None:
                return  # the run is over for it
            self.light[name].kill()
            self.light[name].wait()
        self.kills["node" if name in self.nodes else name] += 1
        time.sleep(self.dice.uniform(0.0, 2.0))
        self.start(name)

    def run(self, every: float) -> dict[str, Any]:
        """Strike until the run is finished; the last status.

        A slow machine gets the time to start what was killed, or nothing would ever happen.
        """
        while True:
            time.sleep(self.dice.expovariate(1.0 / every))
            status = self.answered()
            sys.stderr.write(f"round {status['round']}, kills {dict(self.kills)}\n")
            if status["finished"]:
                return status
            self.strike()

    def answered(self) -> dict[str, Any]:
        deadline = time.monotonic() + 600.0
        while True:
            try:
                self.fleet.shuffler_status()
                return self.fleet.status()
            except TacitError:  # it is starting
                if time.monotonic() > deadline:
                    raise
                time.sleep(1.0)


def resident(pid: int) -> float:
    """Megabytes that a process holds."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def measure(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "mechanism": "distributed",
        "n_nodes": asked.nodes,
        "n_min": asked.nodes - 1,
        "rounds": asked.rounds,
        "round_seconds": 1.5,
    }
    with local_fleet(folder, **changes) as fleet:
        soak = Soak(fleet, asked.nodes, random.Random(asked.seed))
        (folder / "logs").mkdir()
        begin = time.monotonic()
        try:
            for name in (*SERVICES, *soak.nodes):
                soak.start(name)
            final = soak.run(asked.every)
            ended = [process.wait(300) for process in soak.light.values()]
        finally:
            for process in soak.light.values():
                process.kill()
                process.wait()
        last = {part: resident(fleet.running[part].pid) for part in SERVICES}
        history = final["history"]
        whole = [record["round_number"] for record in history] == list(range(1, asked.rounds + 1))
        budget = sum(cost for cost, _ in fleet.fleet.node_costs)
        spent = [fleet.spent_by(name) for name in soak.nodes]  # verifies the chains
        reports = sum(record["n"] for record in history)
        return {
            "rounds": len(history),
            "every_round_once": whole,
            "released": sum(record["released"] for record in history),
            "reports": reports,
            "kills": dict(soak.kills),
            "nodes_ended": ended.count(0),
            "nodes": asked.nodes,
            "nodes_within_budget": all(one <= budget + 1e-6 for one in spent),
            "analyser_debits": len(fleet.analyser_debits()),
            "spent": final["spent"]["epsilon"],
            "plan": fleet.fleet.plan.epsilon,
            "memory_mb": {part: round(last[part]) for part in SERVICES},
            "most_memory_mb": {p: round(max(found, default=0)) for p, found in soak.memory.items()},
            "accuracy": fleet.accuracy(),
            "seconds": round(time.monotonic() - begin, 1),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--every", type=float, default=8.0, help="seconds between kills")
    parser.add_argument("--seed", type=int, default=0, help="of whom the dice choose, and when")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    origin = {"commit": commit(), "versions": versions()}  # of the code that begins to run
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder) / "fleet", asked)
    line = json.dumps({**found, **origin}, sort_keys=True)
    print(line)
    if asked.out:
        with asked.out.open("a") as file:
            file.write(line + "\n")
    good = found["every_round_once"] and found["nodes_ended"] == asked.nodes
    good = good and found["nodes_within_budget"] and found["spent"] <= found["plan"] + 1e-9
    good = good and max(found["most_memory_mb"].values()) < 400
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
