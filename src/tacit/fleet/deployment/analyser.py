"""The analyser: debits its ledger, opens a batch, and only then moves the model.

It holds the private key to its part of every report. Under `privunit` batches come permuted, with
nothing in them but equal-sized sealed messages. Under `distributed` they hold signed and masked
vectors, and the share helper's sum of the masks must come before anything can be learned. A round
goes through these steps, and a crash between any two of them is made good at the next start without
spending twice or forgetting:

1. the sealed batch is written to disk, and nothing of it is opened before; the shuffler is answered
   now, and the rest happens in the background;
2. the ledger is debited, once per batch, for the fewest reports with which it can be released;
3. it is opened; what does not open, repeats, is not signed by a registered node or lies outside the
   randomizer's range is left out, and if fewer reports are left than were paid for, the ledger is
   debited for that too, unless they are masked and stay so;
4. under `distributed`, what is left out is written down and told to the share helper, once, and the
   helper's sum over the same set is waited for;
5. the new model and round replace the checkpoint in one rename, and the batch is deleted.

What goes wrong on the way ends in a sentence and not in a loop: an error that a second try cannot
fix stops the run for good and is written to the checkpoint; a disk that is full, or a ledger that
is locked, is tried again until it works.
"""

from __future__ import annotations

import logging
import re
import threading
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from tacit.errors import BundleError, LedgerError, TacitError
from tacit.fleet.deployment.analyser_rule import Rule
from tacit.fleet.deployment.analyser_state import (
    AnalyserRound,
    AnalyserState,
    failure,
    read_inbox,
    write_inbox,
)
from tacit.fleet.deployment.batches.agreement import AgreedSum, Agreement, NoSumEver, NoSumYet
from tacit.fleet.deployment.batches.opening import Opened, batch_opener
from tacit.fleet.deployment.batches.pools import Refused
from tacit.fleet.deployment.batches.registry import Registry, UnreadableList
from tacit.fleet.deployment.books import Books
from tacit.fleet.deployment.seal import Opener
from tacit.fleet.deployment.shuffler_state import Batch
from tacit.guarantee import DpGuarantee
from tacit.system.files import write_atomic

_LOG = logging.getLogger("tacit.fleet")
_UNREADABLE = "the batch on disk cannot be read; see the analyser's log and begin a new run."
_RETRY_SECONDS = 2.0
_CLOSE_SECONDS = 5.0
_ENDS_A_ROUND = frozenset({"wrong-batch", "wrong-size", "too-few"})
_BATCH_ID = re.compile("[0-9a-f]{32}")


class _Closing(Exception):
    """The analyser is being closed; the batch stays on disk for its next start."""


@dataclass(kw_only=True)
class Analyser:
    """One run's analyser over a folder that holds its checkpoint, inbox and ledger.

    Guarantee: what leaves (the model) is, per client, under replacement of all that client's
    data, as private as `guarantee()` says; it is debited before a batch is opened.
    Assumes: see the guarantee's own list; the folder's disk keeps what it acknowledged.
    Composes: over rounds numerically (PLD of the shuffled rounds), or as the plain sum of the
    local epsilons where that is smaller, which is the case for few nodes.
    Not covered: a disk restored from an old copy; keep the ledger's anchor elsewhere.
    """

    run: str
    rounds: int
    n_min: int
    epsilon: float
    delta: float
    private_key: bytes
    rule: Rule
    folder: Path
    registry: Registry = field(default_factory=lambda: Registry({}))
    _taking: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _working: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closing: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._opener = batch_opener(
            Opener(self.private_key, run=self.run), rule=self.rule, registry=self.registry
        )
        self._opened: tuple[str, Opened] | None = None
        self._sum = AgreedSum(self.folder / "agreed.json", sum_bytes=self.rule.message_bytes)
        self._books = Books(
            self.folder / "ledger.db", run=self.run, epsilon=self.epsilon, delta=self.delta
        )
        # What history costs is asked for by everybody and changes once a round.
        self._spent = lru_cache(maxsize=8)(self.rule.spent)
        self._worker: threading.Thread | None = None
        self._trouble: str | None = None
        self._state = self._load()
        self._pending = self._left_over()
        self._publish()

    @property
    def state(self) -> AnalyserState:
        """The state on disk."""
        return self._state

    @property
    def finished(self) -> bool:
        """Whether no further round will be taken."""
        return self._state.next_round > self.rounds or self._state.stopped is not None

    @property
    def processing(self) -> bool:
        """Whether a batch is on disk that has not come to its end."""
        return self._pending is not None

    @property
    def last_batch(self) -> str | None:
        """The batch that was taken last, being processed or done."""
        history = self._state.history
        return self._pending or (history[-1].batch_id if history else None)

    def receive(self, batch: Batch) -> None:
        """Take one batch through the four steps; a batch that is known already is not taken."""
        self.work()
        self.take(batch)
        self.work()

    def knows(self, batch_id: str) -> bool:
        """Whether the batch is known already: being processed, or done."""
        return batch_id == self._pending or self._is_recorded(batch_id)

    def check(self, *, run: str, round_number: int, batch_id: str) -> None:
        """Refuse a batch by its heading, before anything of it is read."""
        if not _BATCH_ID.fullmatch(batch_id):
            raise Refused(
                "wrong-batch", f"a batch id has 32 hexadecimal digits, got {batch_id[:64]!r}."
            )
        if run != self.run:
            raise Refused("wrong-run", f"this analyser serves run {self.run}, not {run[:64]}.")
        if self.finished:
            raise Refused("finished", "the run is finished; no further batch is taken.")
        if self.processing:
            raise Refused("busy", "a batch is being processed; ask for the status again later.")
        if round_number != self._state.next_round:
            raise Refused(
                "wrong-round", f"round {self._state.next_round} is next, not {round_number}."
            )

    def take(self, batch: Batch) -> None:
        """Write the batch to disk; it is then processed to its end whatever crashes, see `work`."""
        with self._taking:
            if self.knows(batch.batch_id):
                return
            self.check(run=batch.run, round_number=batch.round_number, batch_id=batch.batch_id)
            size = self._opener.report_bytes
            if not batch.messages or len(batch.messages) % size:
                raise Refused(
                    "wrong-size", f"a batch holds {size} bytes for every node that reports."
                )
            if len(batch.messages) < size * self.n_min:
                raise Refused(
                    "too-few",
                    f"a batch holds {self.n_min} reports or more, got "
                    f"{len(batch.messages) // size}; it was not opened.",
                )
            try:
                write_inbox(self._inbox, batch)
            except OSError as error:
                self._trouble = f"the batch cannot be written to disk: {error.strerror}"
                raise Refused("disk", f"{self._trouble}; send it again later.") from error
            self._trouble = None
            self._pending = batch.batch_id

    def give_up(self, refused: Refused, round_number: int) -> None:
        """End the round whose batch was refused for good, unopened: there will be no other."""
        with self._taking:
            waits = refused.code not in _ENDS_A_ROUND or self.processing or self.finished
            if waits or round_number != self._state.next_round:
                return
            self._save(self._state.unreleased("", n=0, epsilon=self._books.spent().epsilon))
            self._publish()

    @property
    def agreement(self) -> Agreement | None:
        """Whose masks the share helper is asked to add, while its sum is waited for."""
        return self._sum.asked

    def take_sum(
        self, *, batch_id: str, digest: str, content: bytes, refused: str | None = None
    ) -> None:
        """Take the share helper's sum over the agreed set, or its refusal; `work` then goes on."""
        self._sum.take(batch_id=batch_id, digest=digest, content=content, refused=refused)

    def work(self) -> None:
        """Process the batch on disk, if there is one, to its end, or until a sum is needed."""
        with self._working:
            if self._pending is None:
                return
            if not self._is_done(self._pending):
                try:
                    self._process(read_inbox(self._inbox))
                except NoSumYet:
                    return
            self._inbox.unlink(missing_ok=True)
            self._sum.clear()
            self._publish()
            self._opened = self._pending = None

    def work_in_background(self) -> None:
        """As `work`, in a thread of its own, which tries again what may pass, like a full disk."""
        self._worker = threading.Thread(target=self._work_patiently, daemon=True)
        self._worker.start()

    def _work_patiently(self) -> None:
        while not self._closing.is_set():
            try:
                self.work()
                self._trouble = None
                return
            except _Closing:
                return
            except Exception as error:
                _LOG.error("the batch on disk has to wait: %s", error)
                self._trouble = f"the analyser's disk or ledger fails ({type(error).__name__})"
                self._closing.wait(_RETRY_SECONDS)

    def status(self) -> dict[str, Any]:
        """Where the run stands, with nothing in it that is not public; costs nothing to ask."""
        return {**self._published, "processing": self.processing, "trouble": self.trouble()}

    def trouble(self) -> str | None:
        """What keeps the round from going on, or None."""
        return self._opener.trouble() or self._trouble or self._sum.trouble()

    def guarantee(self) -> DpGuarantee | None:
        """What protects every client over all batches opened so far; None before the first."""
        return self._spent(tuple(n for n in self._counts() if n))

    def close(self) -> None:
        """Leave a batch that is being opened for the next start, and close the ledger."""
        self._closing.set()
        if self._worker is not None:
            self._worker.join(_CLOSE_SECONDS)
        self._books.close()

    def _load(self) -> AnalyserState:
        path = self.folder / "checkpoint.npz"
        if path.exists():
            return AnalyserState.read(path, run=self.run)
        if not self._books.is_empty():
            raise BundleError(
                f"{self.folder} holds a ledger with debits but no checkpoint; restore the "
                "checkpoint, because starting over would spend the budget again."
            )
        first = AnalyserState(model=self.rule.initial())
        # Written before the first debit, so that debits without a checkpoint are always a loss.
        write_atomic(path, first.to_bytes(self.run))
        return first

    @property
    def _inbox(self) -> Path:
        return self.folder / "inbox.npz"

    def _left_over(self) -> str | None:
        """The batch that a crash interrupted; it is whole, because it came by a rename."""
        for orphan in self.folder.glob(f".{self._inbox.name}.*"):
            orphan.unlink(missing_ok=True)  # half written, and never acknowledged
        if not self._inbox.exists():
            return None
        try:
            batch = read_inbox(self._inbox)
        except (ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            _LOG.error("%s cannot be read: %s", self._inbox, error)
            if not self.finished:
                self._save(replace(self._state, stopped=_UNREADABLE))
            return None
        if batch.round_number == self._state.next_round and not self._is_done(batch.batch_id):
            return batch.batch_id
        self._inbox.unlink()
        return None

    def _is_recorded(self, batch_id: str) -> bool:
        return any(record.batch_id == batch_id for record in self._state.history)

    def _is_done(self, batch_id: str) -> bool:
        """Whether the batch on disk has come to its end: the checkpoint says so."""
        return self._is_recorded(batch_id) or self.finished

    def _process(self, batch: Batch) -> None:
        try:
            outcome = self._outcome(batch)
        except (OSError, LedgerError, UnreadableList, _Closing, NoSumYet):
            raise
        except NoSumEver as refused:
            _LOG.warning("round %d is paid for but not released: %s", batch.round_number, refused)
            outcome = self._unreleased(batch)
        except Exception as error:
            _LOG.exception("round %d could not be processed", batch.round_number)
            outcome = self._failed(batch, error)
        self._save(outcome)

    def _failed(self, batch: Batch, error: Exception) -> AnalyserState:
        """The checkpoint of a run that ends here; a batch that may have been opened counts."""
        now = self._unreleased(batch) if self._books.holds(batch) else self._state
        return replace(now, stopped=failure(batch, error))

    def _unreleased(self, batch: Batch) -> AnalyserState:
        """The checkpoint after a round that was debited and moved nothing."""
        spent = self._books.spent().epsilon
        return self._state.unreleased(batch.batch_id, n=self.n_min, epsilon=spent)

    def _outcome(self, batch: Batch) -> AnalyserState:
        """What the batch makes of the checkpoint."""
        now = self._state
        unaffordable = self._books.debit(batch, self._total(self.n_min))
        if unaffordable is not None:
            return replace(now, stopped=unaffordable)
        opened, helper_sum = self._open(batch), b""
        n = len(opened.messages)
        if self.rule.helper_bytes:
            # Too few are never added: they stay masked, and nothing was seen.
            n = n if n >= self.n_min else 0
            helper_sum = self._sum.over(batch, opened) if n else b""
        stopped = self._books.correct(batch, n, self._total(n)) if n else None
        released = stopped is None and n >= self.n_min
        model = self._updated(opened.messages, helper_sum) if released else None
        record = AnalyserRound(
            round_number=batch.round_number,
            batch_id=batch.batch_id,
            n=n,
            left_out=len(batch.messages) // self._opener.report_bytes - n,
            released=model is not None,
            epsilon=self._total(n).epsilon if n else self._books.spent().epsilon,
        )
        return replace(
            now,
            model=now.model if model is None else model,
            # A round whose reports were seen is over even if too few of them were good:
            # asking for them again would show the analyser what changed between two batches.
            next_round=now.next_round + 1,
            history=(*now.history, record),
            stopped=stopped,
        )

    def _updated(self, messages: list[bytes], helper_sum: bytes) -> bytes | None:
        try:
            return self.rule.update(self._state.model, messages, helper_sum)
        except TacitError as error:
            _LOG.warning("the round is paid for but not released: %s", error)
            return None

    def _open(self, batch: Batch) -> Opened:
        """The batch opened, once."""
        if self._opened is None or self._opened[0] != batch.batch_id:
            agreed = self._sum.left_out(batch)
            opened = self._opener.opened(batch, alive=self._alive, agreed=agreed)
            self._opened = (batch.batch_id, opened)
        return self._opened[1]

    def _alive(self) -> None:
        if self._closing.is_set():
            raise _Closing

    def _counts(self) -> list[int]:
        return [record.n for record in self._state.history]

    def _total(self, n: int) -> DpGuarantee:
        """What all batches cost with `n` valid reports in one more."""
        total = self._spent((*(m for m in self._counts() if m), n))
        assert total is not None, "one batch or more has a cost"
        return total

    def _save(self, state: AnalyserState) -> None:
        write_atomic(self.folder / "checkpoint.npz", state.to_bytes(self.run))
        self._state = state

    def _publish(self) -> None:
        """Work the public status out once, so that asking for it costs nothing."""
        now, guarantee = self._state, None
        try:
            guarantee = self.guarantee()
        except TacitError:  # the run was stopped for it; its status must still be told
            _LOG.exception("the guarantee cannot be worked out")
        self._published: dict[str, Any] = {
            **now.public(),
            "run": self.run,
            "rounds": self.rounds,
            "finished": self.finished,
            "spent": self._books.spent().to_dict(),
            "guarantee": None if guarantee is None else guarantee.to_dict(),
        }
