"""The shuffler: takes sealed reports from known nodes and hands them on in a secret order.

It knows who sends and nothing of what is sent; the analyser knows what was sent and nothing of by
whom. Between the two stands one secret, uniformly random permutation per batch, drawn from the
operating system. Reports are forwarded once, or dropped: a round of which a batch has left is never
opened again, because the difference of two batches would show who is missing in one of them.

This module is the rule without the network; `tacit.fleet.deployment.http` puts it behind HTTPS.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from tacit.errors import TacitError, check_at_least
from tacit.fleet.deployment.shuffler_state import Batch, ForwardRecord
from tacit.fleet.deployment.tokens import node_key, token_fits
from tacit.noise import SYSTEM_NOISE, NoiseSource, permutation

__all__ = ["Batch", "Refused", "Shuffler", "shuffle_messages"]


class Refused(TacitError):
    """A report that was not taken: `code` for programs, the sentence for people."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Shuffler:
    """Collects one round's sealed reports, at most one per registered node, and permutes them.

    Guarantee: given the contents, every assignment of messages to senders is equally likely in
    what `release` returns; nothing else about the senders is in it but their number. Every round
    leaves at most once, in one batch, whatever the analyser asks and whatever crashes.
    Assumes: `source` is uniform, independent and secret; the shuffler and the analyser do not
    collude; the registered nodes are that many different persons; `folder` keeps what was written.
    Not covered: who took part and when, which the shuffler and the network see.
    """

    def __init__(
        self,
        *,
        run: str,
        secret: bytes,
        nodes: Iterable[str],
        sealed_bytes: int,
        n_min: int,
        round_seconds: float,
        folder: Path,
        messages_per_node: int = 1,
        source: NoiseSource = SYSTEM_NOISE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = run
        self.n_min = check_at_least(n_min, 2, name="n_min")
        self.round_number: int | None = None
        self.dropped = 0
        self._secret = secret
        self._nodes = frozenset(nodes)
        self._sealed_bytes = check_at_least(sealed_bytes, 1, name="sealed_bytes")
        self._body_bytes = sealed_bytes * check_at_least(
            messages_per_node, 1, name="messages_per_node"
        )
        self._round_seconds = round_seconds
        self._source = source
        self._clock = clock
        self._record = ForwardRecord(folder, run=run)
        self._forget()

    def _forget(self) -> None:
        # Who reported and what was reported are kept apart: there is no list that joins them.
        self._reported: set[str] = set()
        self._pool = bytearray()
        self._deadline: float | None = None

    @property
    def body_bytes(self) -> int:
        """The one size that a node's body may have."""
        return self._body_bytes

    @property
    def received(self) -> int:
        """How many nodes have reported in the open round."""
        return len(self._reported)

    @property
    def forwarded(self) -> int:
        """The last round of which a batch left; 0 before the first."""
        return self._record.last_round

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
        if self._record.is_waiting:
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

    def accept(self, *, node: str, token: str, run: str, round_number: int, body: bytes) -> None:
        """Take one node's report, or raise `Refused` with the reason and keep nothing of it."""
        self._check_round(run, round_number)
        self._check_sender(node, token, round_number, body)
        if node in self._reported:
            raise Refused(
                "replayed",
                f"round {round_number} already holds a report of this node; it counts once.",
            )
        self._reported.add(node)
        self._pool += body
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

    def _check_sender(self, node: str, token: str, round_number: int, body: bytes) -> None:
        if len(body) != self._body_bytes:
            raise Refused(
                "wrong-size",
                f"a sealed report has {self._body_bytes} bytes here, got {len(body)}; "
                "use the plan of this run.",
            )
        # The token is checked for unknown names too, so that both refusals take the same time.
        key = node_key(self._secret, run=self.run, node=node)
        fits = token_fits(key, token, run=self.run, round_number=round_number, sealed=body)
        if not fits or node not in self._nodes:
            raise Refused(
                "not-registered",
                "the token is not one of a registered node for this report and round; "
                "register the node with the shuffler.",
            )

    def due(self) -> bool:
        """Whether the round must end: every node has reported, or its time is over."""
        if self._deadline is None:
            return False
        return self.received == len(self._nodes) or self._clock() >= self._deadline

    def release(self) -> Batch | None:
        """End the round: the permuted batch, or None if too few reports came and were dropped.

        The batch is on disk when this returns, and has to be sent and then acknowledged. After it
        no round is open until `open_round`; after a drop the round starts afresh, which is safe,
        because nothing of it has left.
        """
        if self.round_number is None:
            raise TacitError("no round is open, so there is nothing to release.")
        if self.received < self.n_min:
            self.dropped += self.received
            self._forget()
            return None
        batch = Batch(
            run=self.run,
            round_number=self.round_number,
            batch_id=secrets.token_hex(16),
            n_nodes=self.received,
            messages=shuffle_messages(self._pool, self._sealed_bytes, source=self._source),
        )
        self._record.forward(batch)
        self.open_round(None)
        return batch

    def waiting(self) -> Batch | None:
        """The batch that was released and not acknowledged, byte for byte, also after a crash."""
        return self._record.waiting()

    def acknowledge(self) -> None:
        """Forget the batch: the analyser has it, or has refused it for good."""
        self._record.acknowledged()


def shuffle_messages(pool: bytes | bytearray, size: int, *, source: NoiseSource) -> bytes:
    """The equal-sized messages of `pool` in a uniformly random order."""
    messages = np.frombuffer(pool, dtype=np.uint8).reshape(-1, size)
    return messages[permutation(len(messages), source=source)].tobytes()
