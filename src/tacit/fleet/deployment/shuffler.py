"""The shuffler: takes sealed reports from known nodes and hands them on, every round once.

Under `privunit` it is blind: it knows who sends and nothing of what is sent, the analyser knows
what was sent and nothing of by whom, and between the two stands one secret permutation per batch.
Under `distributed` it is the share helper: it hands on masked vectors under their nodes'
signatures, keeps the sealed seeds of the masks, and adds the masks up for the one set of reports
that both servers have agreed on (`tacit.fleet.deployment.batches.share_sums`).

A round of which a batch has left is never opened again, because the difference of two batches would
show who is missing in one of them. Too few reports wait for more; none is dropped.

This module is the rule without the network; `tacit.fleet.deployment.http` puts it behind HTTPS.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

from tacit.errors import TacitError, check_at_least
from tacit.fleet.deployment.batches.pools import Pool, Refused
from tacit.fleet.deployment.batches.registry import Registry
from tacit.fleet.deployment.batches.signatures import digest_of, is_signed, new_signing_key
from tacit.fleet.deployment.shuffler_state import Batch, ForwardRecord

_NOBODY = new_signing_key()[1]

__all__ = ["Batch", "Refused", "Shuffler"]


class Shuffler:
    """Collects one round's sealed reports, at most one per registered node.

    Guarantee: every round leaves at most once, in one batch of at least `n_min` reports, whatever
    the analyser asks and whatever crashes. What a batch tells of its senders: see the pool.
    Assumes: the shuffler and the analyser do not collude; the registered nodes are that many
    different persons; `folder` keeps what was written.
    Not covered: who took part and when, which the shuffler and the network see.
    """

    def __init__(
        self,
        *,
        run: str,
        registry: Registry,
        pool: Pool,
        n_min: int,
        round_seconds: float,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = run
        self.n_min = check_at_least(n_min, 2, name="n_min")
        self.round_number: int | None = None
        self.instance = secrets.token_hex(8)  # tells nodes that reports in memory are gone
        self.record = ForwardRecord(folder, run=run)
        self._registry = registry
        self._pool = pool
        self._round_seconds = round_seconds
        self._clock = clock
        self._forget()

    def _forget(self) -> None:
        self._reported: set[str] = set()
        self._keys: set[bytes] = set()
        self._pool.clear()
        self._deadline: float | None = None

    @property
    def body_bytes(self) -> int:
        """The one size that a node's body may have."""
        return self._pool.analyser_bytes + self._pool.helper_bytes

    @property
    def received(self) -> int:
        """How many nodes have reported in the open round."""
        return len(self._reported)

    @property
    def forwarded(self) -> int:
        """The last round of which a batch left; 0 before the first."""
        return self.record.last_round

    def overdue(self) -> bool:
        """Whether the round's time is over and too few reports have come, so that they wait."""
        late = self._deadline is not None and self._clock() >= self._deadline
        return late and self.received < self.n_min

    def open_round(self, round_number: int | None) -> None:
        """Begin collecting for a round, or for none; whatever was held is dropped.

        Only the round after the last forwarded one is opened, so that a shuffler that has lost its
        record stops instead of forwarding the present round again.
        """
        if round_number is not None:
            self._check_next(round_number)
        self._forget()
        self.round_number = round_number

    def _check_next(self, round_number: int) -> None:
        if self.record.is_waiting:
            raise Refused(
                "unacknowledged",
                f"the batch of round {self.forwarded} must be acknowledged before another round.",
            )
        if round_number <= self.forwarded:
            raise Refused(
                "forwarded",
                f"round {round_number} was asked for, and rounds up to {self.forwarded} have been "
                "forwarded; a round is forwarded once, restore the analyser's newest state or "
                "begin a new run.",
            )
        if round_number != self.forwarded + 1:
            raise Refused(
                "unknown-round",
                f"round {round_number} was asked for, and this shuffler's record ends with round "
                f"{self.forwarded}; if the record was lost, begin a new run.",
            )

    def accept(
        self, *, node: str, signature: bytes, run: str, round_number: int, body: bytes
    ) -> None:
        """Take one node's report, or raise `Refused` with the reason and keep nothing of it."""
        self._check_round(run, round_number)
        key = self._checked_sender(node, signature, round_number, body)
        # By key too: a key may have another name by now, and a node another key.
        if node in self._reported or key in self._keys:
            raise Refused(
                "replayed",
                f"round {round_number} already holds a report of this node; it counts once.",
            )
        self._pool.check(body, round_number=round_number, key=key)
        self._reported.add(node)
        self._keys.add(key)
        self._pool.add(body, key=key, signature=signature)
        if self._deadline is None:
            self._deadline = self._clock() + self._round_seconds

    def _check_round(self, run: str, round_number: int) -> None:
        if run != self.run:
            raise Refused("wrong-run", f"this shuffler serves run {self.run}, not {run[:64]}.")
        if self.round_number is None:
            raise Refused("closed", "no round is open; ask for the status again later.")
        if round_number != self.round_number:
            raise Refused(
                "wrong-round",
                f"round {self.round_number} is open, not {round_number}; fetch its model first.",
            )

    def _checked_sender(self, node: str, signature: bytes, round_number: int, body: bytes) -> bytes:
        if len(body) != self.body_bytes:
            raise Refused(
                "wrong-size",
                f"a sealed report has {self.body_bytes} bytes here, got {len(body)}; "
                "use the plan of this run.",
            )
        self._read_list()
        key, size = self._registry.key_of(node), self._pool.analyser_bytes
        # Checked for unknown names too, so that both refusals take the same time.
        fits = is_signed(
            key or _NOBODY,
            signature,
            run=self.run,
            round_number=round_number,
            node=node,
            analyser=digest_of(body[:size]),
            helper=digest_of(body[size:]),
        )
        if key is None or not fits:
            raise Refused(
                "not-registered",
                "the signature is not that of a registered node for this report and round; "
                "register the node with the shuffler.",
            )
        return key

    def _read_list(self) -> None:
        trouble = self._registry.trouble()
        if trouble is not None:
            raise Refused("list", "the list of nodes cannot be read now; send the report again.")

    def trouble(self) -> str | None:
        """What keeps reports from being taken or the round from ending, or None."""
        if self.overdue():
            return "the round's time is over and too few reports have come; they wait for more"
        return self._registry.trouble()

    def due(self) -> bool:
        """Whether the round can end: every node has reported, or its time is over with enough."""
        if self._deadline is None or self.received < self.n_min:
            return False
        return self.received >= len(self._registry) or self._clock() >= self._deadline

    def release(self) -> Batch:
        """End the round; the batch is on disk when this returns, to be sent and acknowledged.

        After it no round is open until `open_round`.
        """
        if self.round_number is None:
            raise TacitError("no round is open, so there is nothing to release.")
        if self.received < self.n_min:
            raise TacitError(
                f"{self.received} reports have come and {self.n_min} are needed; they wait."
            )
        messages, own = self._pool.batch()
        batch = Batch(
            run=self.run,
            round_number=self.round_number,
            batch_id=secrets.token_hex(16),
            n_nodes=len(self._pool),
            messages=messages,
        )
        self.record.forward(batch, own_parts=own)
        self.open_round(None)
        return batch

    def waiting(self) -> Batch | None:
        """The batch that was released and not acknowledged, byte for byte, also after a crash."""
        return self.record.waiting()

    def acknowledge(self) -> None:
        """Forget the batch: the analyser is done with it, or has refused it for good."""
        self.record.acknowledged()
