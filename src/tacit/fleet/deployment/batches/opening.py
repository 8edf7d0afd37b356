"""Opening a batch: which of its reports count, and what they hold for the analyser.

A shuffled batch holds sealed messages and nothing else. A batch of a share helper holds signed
records: each must come from a registered node, once, signed for this run and round, and its sealed
part must be meant for this analyser and from that node. The analyser finds that out by itself and
takes nobody's word for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tacit.errors import TacitError
from tacit.fleet.deployment.analyser_rule import Rule
from tacit.fleet.deployment.batches.pools import cut
from tacit.fleet.deployment.batches.records import (
    SignedRecord,
    read_records,
    record_size,
    set_digest,
)
from tacit.fleet.deployment.batches.registry import Registry
from tacit.fleet.deployment.batches.signatures import digest_of, is_signed
from tacit.fleet.deployment.seal import Opener, sealed_size
from tacit.fleet.deployment.shuffler_state import Batch


@dataclass(frozen=True, slots=True)
class Opened:
    """The messages that count, the places of the reports that do not, and the set's digest."""

    messages: list[bytes]
    left_out: tuple[int, ...]
    digest: str = ""


class BatchOpener:
    """Opens shuffled batches, message by message."""

    def __init__(
        self, opener: Opener, *, message_bytes: int, check: Callable[[bytes], None]
    ) -> None:
        self._opener = opener
        self._check = check
        self.report_bytes = sealed_size(message_bytes)

    def opened(
        self,
        batch: Batch,
        *,
        alive: Callable[[], None],
        agreed: Collection[int] | None = None,
    ) -> Opened:
        """What counts; `alive` is called for every report and may raise to stop.

        Once a set was agreed on with a share helper, `agreed` are the places that it leaves out.
        """
        good: list[bytes] = []
        left_out: list[int] = []
        seen: set[bytes] = set()
        for place, sealed in enumerate(cut(batch.messages, self.report_bytes)):
            alive()
            message = self._opener.open(sealed, round_number=batch.round_number)
            if message is not None and sealed not in seen and self.is_good(message):
                good.append(message)
            else:
                left_out.append(place)
            seen.add(sealed)
        return Opened(good, tuple(left_out))

    def trouble(self) -> str | None:
        """What keeps batches from being opened, or None."""
        return None

    def is_good(self, message: bytes) -> bool:
        """Whether an honest node could have sent the message."""
        try:
            self._check(message)
        except TacitError:
            return False
        return True


class SignedBatchOpener(BatchOpener):
    """Opens the batches of a share helper: masked vectors, which say nothing by themselves."""

    def __init__(
        self,
        opener: Opener,
        *,
        message_bytes: int,
        check: Callable[[bytes], None],
        registry: Registry,
    ) -> None:
        super().__init__(opener, message_bytes=message_bytes, check=check)
        self._registry = registry
        self._sealed_bytes = self.report_bytes
        self.report_bytes = record_size(self._sealed_bytes)

    def opened(
        self,
        batch: Batch,
        *,
        alive: Callable[[], None],
        agreed: Collection[int] | None = None,
    ) -> Opened:
        """What counts; once a set was agreed on, everything but the `agreed` places left out."""
        self._registry.refresh()
        good: list[bytes] = []
        left_out: list[int] = []
        keys: list[bytes] = []
        for place, record in enumerate(self._records(batch)):
            alive()
            out = place in agreed if agreed is not None else not self._is_signed(record, batch)
            repeated = bool(keys) and record.key <= keys[-1]  # they come in the order of their keys
            message = None if out or repeated else self._message(record, batch)
            if message is None:
                left_out.append(place)
                continue
            good.append(message)
            keys.append(record.key)
        digest = set_digest(batch.run, batch.round_number, keys)
        return Opened(good, tuple(left_out), digest)

    def trouble(self) -> str | None:
        """That the list of nodes cannot be used, or None."""
        return self._registry.trouble()

    def _records(self, batch: Batch) -> Iterator[SignedRecord]:
        return read_records(batch.messages, size=self.report_bytes)

    def _is_signed(self, record: SignedRecord, batch: Batch) -> bool:
        node = self._registry.name_of(record.key)
        return node is not None and is_signed(
            record.key,
            record.signature,
            run=batch.run,
            round_number=batch.round_number,
            node=node,
            analyser=digest_of(record.sealed),
            helper=record.helper_digest,
        )

    def _message(self, record: SignedRecord, batch: Batch) -> bytes | None:
        opened = self._opener.open(
            record.sealed, round_number=batch.round_number, sender=record.key
        )
        return opened if opened is not None and self.is_good(opened) else None


def batch_opener(opener: Opener, *, rule: Rule, registry: Registry) -> BatchOpener:
    """What opens the batches of a run: those of a share helper, or of a blind shuffler."""
    size, check = rule.message_bytes, rule.check
    if not rule.helper_bytes:
        return BatchOpener(opener, message_bytes=size, check=check)
    return SignedBatchOpener(opener, message_bytes=size, check=check, registry=registry)
