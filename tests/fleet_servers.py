"""Both servers of a fleet in one process, with real keys: what a test may make cheat."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.fleet.deployment.analyser import Analyser
from tacit.fleet.deployment.batches.pools import PermutedPool, Pool, SignedPool
from tacit.fleet.deployment.batches.records import record_size
from tacit.fleet.deployment.batches.registry import Registry
from tacit.fleet.deployment.batches.share_sums import ShareSums
from tacit.fleet.deployment.batches.signatures import digest_of, new_signing_key, sign
from tacit.fleet.deployment.seal import Opener, Sealer, new_key, sealed_size
from tacit.fleet.deployment.shuffler import Batch, Shuffler
from tacit.fleet.learning.learner import Learner
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.protocol import Parts

RUN = "run1"


@dataclass
class SignedReport:
    """A node's sealed report and its signature."""

    node: str
    body: bytes
    signature: bytes


class TwoServers:
    """A shuffler or share helper, an analyser, and the keys of `n` nodes."""

    def __init__(self, plan: FleetPlan, folder: Path, *, n: int) -> None:
        self.plan, self.folder = plan, folder
        self.learner = Learner(plan)
        self.names = [f"node-{i:03d}" for i in range(n)]
        self.signing = {name: new_signing_key() for name in self.names}
        self.registry = Registry({name: key for name, (_, key) in self.signing.items()})
        self.sealing, self.helper_sealing = new_key(), new_key()
        self.sealed_bytes = sealed_size(self.learner.message_bytes)
        self.record_bytes = record_size(self.sealed_bytes)
        self.start_shuffler()
        self.start_analyser()

    def start_shuffler(self) -> None:
        """A shuffler over what is on its disk, as after a crash."""
        opener = Opener(self.helper_sealing[0], run=RUN, reader="helper")
        pool: Pool = PermutedPool(sealed_bytes=self.sealed_bytes)
        if self.learner.helper_bytes:
            pool = SignedPool(
                analyser_bytes=self.sealed_bytes,
                helper_bytes=self.learner.helper_bytes,
                opener=opener,
            )
        self.shuffler = Shuffler(
            run=RUN,
            registry=self.registry,
            pool=pool,
            n_min=self.plan.n_min,
            round_seconds=100.0,
            folder=self.folder / "shuffler",
        )
        self.sums = ShareSums(
            self.shuffler.record,
            opener=opener,
            n_min=self.plan.n_min,
            sum_parts=self.learner.sum_helper_parts,
        )

    def start_analyser(self) -> None:
        """An analyser over what is on its disk, as after a crash."""
        self.analyser = Analyser(
            run=RUN,
            rounds=self.plan.n_rounds,
            n_min=self.plan.n_min,
            epsilon=self.plan.epsilon,
            delta=self.plan.delta,
            private_key=self.sealing[0],
            rule=self.learner,
            folder=self.folder / "analyser",
            registry=self.registry,
        )

    def report(
        self, name: str, X: NDArray[np.float64], y: list[str], *, round_number: int
    ) -> SignedReport:
        """What an honest node sends."""
        parts = self.learner.report(self.analyser.state.model, X, y)
        return self.signed(name, parts, round_number=round_number)

    def signed(
        self,
        name: str,
        parts: Parts,
        *,
        round_number: int,
        keys: tuple[bytes, bytes] | None = None,
    ) -> SignedReport:
        """Parts sealed and signed by a node, or under keys that a cheat made itself."""
        private, public = keys or self.signing[name]
        sender = public if parts.helper else b""
        sealer = Sealer(self.sealing[1], run=RUN, report_bytes=self.learner.message_bytes)
        body = sealer.seal(parts.analyser, round_number=round_number, sender=sender)
        if parts.helper:
            own = Sealer(
                self.helper_sealing[1], run=RUN, report_bytes=len(parts.helper), reader="helper"
            )
            body += own.seal(parts.helper, round_number=round_number, sender=sender)
        signature = sign(
            private,
            run=RUN,
            round_number=round_number,
            node=name,
            analyser=digest_of(body[: self.sealed_bytes]),
            helper=digest_of(body[self.sealed_bytes :]),
        )
        return SignedReport(name, body, signature)

    def send(self, report: SignedReport, *, round_number: int) -> None:
        """Hand a report to the shuffler."""
        self.shuffler.accept(
            node=report.node,
            signature=report.signature,
            run=RUN,
            round_number=round_number,
            body=report.body,
        )

    def finish_round(self) -> Batch:
        """Honest servers: release, deliver, agree, add."""
        batch = self.shuffler.release()
        self.analyser.receive(batch)
        asked = self.analyser.agreement
        if asked is not None:
            content = self.sums.give(batch, left_out=asked.left_out, digest=asked.digest)
            self.analyser.take_sum(batch_id=batch.batch_id, digest=asked.digest, content=content)
            self.analyser.work()
        self.shuffler.acknowledge()
        return batch

    def close(self) -> None:
        """Close the analyser's ledger."""
        self.analyser.close()
