"""A fleet's life on this machine: five rounds with a node that joins, one that is revoked,
every service killed once and a certificate renewed while all go on.

One node, the gate, is driven by the story itself. A round waits for every node on the list, so none
ends before the gate has reported, and whatever is to happen in a round happens in it, however slow
the machine is. All other nodes are processes of their own.
"""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from fleet_localhost import DATA, LocalFleet, last_json, local_fleet, wait_until
from tacit.data import load_dataset
from tacit.errors import TacitError
from tacit.fleet.deployment.batches.registry import Registry
from tacit.fleet.deployment.members import lists, renewal
from tacit.fleet.deployment.members.invitations import invite
from tacit.fleet.deployment.members.join import join, leave, renew_key
from tacit.fleet.deployment.node import ShufflerClient, take_part
from tacit.system.certificates import fingerprint

ROUNDS = 5
GATE, GONE, NEW = "node-1", "node-2", "late-1"


class Story:
    """Who runs, and what must be true at the end."""

    def __init__(self, fleet: LocalFleet, *, n: int, flower: tuple[str, ...], slow: float) -> None:
        self.fleet, self.n, self.flower, self.slow = fleet, n, flower, slow
        self.light: dict[str, subprocess.Popen[bytes]] = {}
        self.server: subprocess.Popen[str] | None = None
        self.log: list[str] = []

    def say(self, text: str) -> None:
        self.log.append(f"{time.strftime('%H:%M:%S')} {text}")
        sys.stderr.write(self.log[-1] + "\n")

    def start_light(self, name: str) -> None:
        command = [sys.executable, "-m", "tacit.fleet.deployment.light_node"]
        log = self.fleet.folder / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as file:
            self.light[name] = subprocess.Popen(
                [*command, str(self.fleet.path(name)), "0.5"],
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
            )

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            try:
                return condition()
            except (TacitError, httpx.HTTPError, OSError):
                return False  # a service is starting

        wait_until(holds, seconds=self.slow, what=what)

    def all_but_the_gate_have_reported(self, round_number: int, expected: int) -> None:
        def reported() -> bool:
            now = self.fleet.shuffler_status()
            return bool(now["round"] == round_number and now["received"] >= expected)

        self.until(reported, f"{expected} reports of round {round_number}")

    def open_the_gate(self, round_number: int) -> None:
        """The gate reports, and the round can end."""
        config = self.fleet.node(GATE)

        def reported() -> bool:
            client = ShufflerClient(config, self.fleet.fleet)
            try:
                model = client.model(round_number)
            finally:
                client.close()
            if model is None:
                return False
            run = self.fleet.fleet.run
            return take_part(config, run=run, round_number=round_number, model=model).accepted

        self.until(reported, f"the gate's report of round {round_number}")
        self.until(
            lambda: self.fleet.status()["round"] > round_number, f"the end of round {round_number}"
        )
        self.say(f"round {round_number} is over")

    def one_joins(self) -> None:
        """With a code of each service, and series of its own."""
        codes = [invite(self.fleet.folder / part, NEW).text() for part in lists.SERVICES]
        folder = self.fleet.folder / "nodes" / NEW
        joined = join(folder, codes)
        assert joined.name == NEW
        data = load_dataset(DATA)
        np.savez(folder / "data.npz", X=data.X_test[:20], y=data.y_test[:20].astype(str))
        with (folder / "node.toml").open("a") as file:
            file.write('ledgers = "../../persons"\n')
        self.start_light(NEW)

    def renew_certificates(self) -> None:
        """The shuffler's, as a service and as the analyser's client; nothing is restarted."""
        folder = self.fleet.folder
        renewal.prepare(folder / "shuffler")
        client = folder / "shuffler" / "client-next.crt"
        renewal.trust(folder / "analyser", of="shuffler", certificate=client)
        following = folder / "shuffler" / "tls-next.crt"
        renewal.trust(folder / "server", of="shuffler", certificate=following)
        new = fingerprint(following)
        self.until(self.all_trust_two, "every node trusts the next certificate")
        time.sleep(5.0)  # the analyser looks for new files every two seconds
        renewal.switch(folder / "shuffler")
        where = urlsplit(self.fleet.server.shuffler_url)
        shown = folder / "shown.crt"

        def in_use() -> bool:
            address = (where.hostname or "", where.port or 0)
            shown.write_text(ssl.get_server_certificate(address, timeout=10))
            return fingerprint(shown) == new

        self.until(in_use, "the new certificate is in use")
        # The gate was offline all the while: its owner gives it the certificate by hand.
        gate = folder / "nodes" / GATE
        renewal.trust(gate, of="shuffler", certificate=folder / "shuffler" / "tls.crt")

    def all_trust_two(self) -> bool:
        names = [*self.light, *self.flower]
        files = [self.fleet.node(name).shuffler_certificate for name in names]
        return all(file.read_text().count("BEGIN CERTIFICATE") == 2 for file in files)

    def start_server(self, *options: str) -> None:
        if self.flower:
            self.server = self.fleet.start_server(*options)

    def kill_superlink_and_server(self) -> None:
        """The server starts another SuperLink; when it is killed itself, it is resumed."""
        if self.server is None:
            return
        self.fleet.kill_superlink()
        self.fleet.kill_server()
        self.start_server("--resume")

    def tell(self) -> dict[str, Any]:
        """Five rounds and what happens in them; returns what was measured."""
        fleet, n = self.fleet, self.n
        fleet.start("analyser", "shuffler", *self.flower)
        self.start_server()
        for i in range(2, n - len(self.flower) + 1):
            self.start_light(f"node-{i}")
        self.all_but_the_gate_have_reported(1, n - 1)
        self.open_the_gate(1)

        self.all_but_the_gate_have_reported(2, n - 1)
        self.say("a node joins with one-time codes")
        self.one_joins()
        self.all_but_the_gate_have_reported(2, n)
        self.open_the_gate(2)

        self.all_but_the_gate_have_reported(3, n)
        self.say("a node is revoked, and the shuffler loses what it holds")
        for part in lists.SERVICES:
            lists.revoke(fleet.folder / part, GONE)
        fleet.kill("shuffler")
        fleet.start("shuffler")
        self.all_but_the_gate_have_reported(3, n - 1)
        self.open_the_gate(3)

        self.all_but_the_gate_have_reported(4, n - 1)
        self.say("the analyser is killed, and the shuffler's certificates are renewed")
        fleet.kill("analyser")
        fleet.start("analyser")
        self.until(lambda: fleet.status()["round"] == 4, "the analyser is back")
        self.renew_certificates()
        assert renew_key(fleet.folder / "nodes" / GATE) == ["analyser", "shuffler"]
        self.open_the_gate(4)

        self.all_but_the_gate_have_reported(5, n - 1)
        if self.flower:
            self.say("the SuperLink is killed, then the server with it")
        self.kill_superlink_and_server()
        self.open_the_gate(5)
        return self.ended()

    def reports_paid(self, name: str) -> int:
        """How many reports a node's ledger has paid for, to the last digit of their costs."""
        costs = [cost for cost, _ in self.fleet.fleet.node_costs]
        spent = self.fleet.spent_by(name)
        sums = [sum(costs[:k]) for k in range(len(costs) + 1)]
        return min(
            (k for k, total in enumerate(sums) if abs(total - spent) < 1e-6), default=len(sums)
        )

    def ended(self) -> dict[str, Any]:
        """Everybody ends by itself, and what was spent is what left."""
        for name, process in self.light.items():
            assert process.wait(self.slow) == 0, f"{name} ended otherwise"
        for name in self.flower:
            assert self.fleet.running[name].wait(self.slow) == 0, f"{name} ended otherwise"
        if self.server is not None:
            output, sentence = self.server.communicate(timeout=self.slow)
            assert self.server.returncode == 0, sentence
            assert last_json(output)["finished"]
        self.say("all nodes have ended by themselves")
        assert leave(self.fleet.folder / "nodes" / GATE) == ["analyser", "shuffler"]
        for part in lists.SERVICES:
            assert GATE not in Registry.read(self.fleet.folder / part / "nodes.txt").nodes()
        final = self.fleet.status()
        counts = [record["n"] for record in final["history"]]
        assert counts == [self.n, self.n + 1, self.n, self.n, self.n]
        assert all(record["released"] for record in final["history"])
        # One debit per round at the analyser, never below the composed total it states.
        debits = self.fleet.analyser_debits()
        assert final["guarantee"]["epsilon"] <= final["spent"]["epsilon"] + 1e-9
        assert final["spent"]["epsilon"] <= self.fleet.fleet.plan.epsilon + 1e-9
        # A struck-off node learns it by one refused report at most, and pays for no other.
        allowed = {GONE: (3, 4), NEW: (4,)}
        for name in [GATE, *self.light, *self.flower]:
            assert self.reports_paid(name) in allowed.get(name, (ROUNDS,)), f"{name}: spent is left"
        return {
            "nodes": self.n,
            "flower_nodes": len(self.flower),
            "counts": counts,
            "debits": len(debits),
            "spent": final["spent"]["epsilon"],
            "accuracy": self.fleet.accuracy(),
            "story": self.log,
        }


@contextlib.contextmanager
def fleet_story(folder: Path, *, light: int, flower: int = 0, slow: float) -> Iterator[Story]:
    """A fleet with so many light nodes, the gate among them, and so many of Flower."""
    n = light + flower
    changes: dict[str, Any] = {
        "mechanism": "distributed",
        "n_nodes": n,
        "n_min": n,
        "most_nodes": n + 1,
        "rounds": ROUNDS,
        "round_seconds": 3600.0,
    }
    with local_fleet(folder, **changes) as fleet:
        names = tuple(f"node-{i}" for i in range(light + 1, n + 1))
        story = Story(fleet, n=n, flower=names, slow=slow)
        try:
            yield story
        finally:
            for process in story.light.values():
                process.kill()
                process.wait()
