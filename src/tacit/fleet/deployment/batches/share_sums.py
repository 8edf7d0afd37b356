"""The share helper's sum of masks: one per round, for one set, of at least `n_min` reports.

The analyser says which reports of the batch it can use. The helper adds the masks of just these,
once: the set is on its disk before the sum leaves, and any other set of the same round is refused.
Two sums of one round would differ by single clients' masks, and so would show single clients.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from tacit.fleet.deployment.batches.pools import Refused, cut
from tacit.fleet.deployment.batches.records import SignedRecord, read_records, set_digest
from tacit.fleet.deployment.seal import Opener
from tacit.fleet.deployment.shuffler_state import Batch, ForwardRecord


class ShareSums:
    """What the helper gives of a forwarded batch.

    Guarantee: in every round at most one sum leaves, over one set of at least `n_min` reports that
    the helper itself accepted from registered nodes, whatever the analyser asks and whatever
    crashes. Together with the analyser's sum it shows the sum of these reports and nothing else.
    Assumes: the record's disk keeps what was written.
    """

    def __init__(
        self,
        record: ForwardRecord,
        *,
        opener: Opener,
        n_min: int,
        sum_parts: Callable[[Iterable[bytes]], bytes],
    ) -> None:
        self._record = record
        self._opener = opener
        self._n_min = n_min
        self._sum_parts = sum_parts

    def give(self, batch: Batch, *, left_out: Collection[int], digest: str) -> bytes:
        """The sum of the masks of all reports of the batch but these; refused for a second set."""
        records = list(read_records(batch.messages, size=len(batch.messages) // batch.n_nodes))
        dropped = set(left_out)
        kept = [place for place in range(batch.n_nodes) if place not in dropped]
        if len(kept) < self._n_min:
            raise Refused(
                "too-few",
                f"the analyser asked for a sum of {len(kept)} reports; at least {self._n_min} "
                "are needed.",
            )
        expected = set_digest(batch.run, batch.round_number, (records[i].key for i in kept))
        if digest != expected:
            raise Refused("wrong-set", "the analyser's set of reports is not this server's.")
        if self._record.agreed not in (None, digest):
            raise Refused(
                "second-set",
                f"round {batch.round_number} was already summed over another set of reports; each "
                "round is summed once.",
            )
        self._record.agree(digest)
        return self._sum_parts(self._seeds(batch, records, kept))

    def _seeds(self, batch: Batch, records: list[SignedRecord], kept: list[int]) -> Iterator[bytes]:
        parts = self._record.own_parts()
        pieces = list(cut(parts, len(parts) // batch.n_nodes))
        for place in kept:
            sender = records[place].key
            seed = self._opener.open(pieces[place], round_number=batch.round_number, sender=sender)
            assert seed is not None, "it was opened when the report was accepted"
            yield seed
