"""What the shuffler keeps on disk: which rounds it has forwarded, and a batch until it is taken.

A node that is asked twice for a round sends the same sealed bytes twice. Two batches of one round,
one with a node and one without, would therefore show that node's messages by their difference, and
the permutations would hide nothing. So a round is forwarded once: that it was is on disk before
the first byte of it leaves, and what is sent again after a crash is the same batch, byte for byte.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tacit.errors import BundleError, TacitError
from tacit.system.files import write_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What leaves the shuffler: sealed messages of equal size, in an order nobody knows."""

    run: str
    round_number: int
    batch_id: str
    n_nodes: int
    messages: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    batch_id: str
    n_nodes: int
    n_bytes: int
    own_bytes: int = 0  # of the helper's own parts
    agreed: str | None = None  # the digest of the one set whose masks were added


class ForwardRecord:
    """The forwarded rounds of one run, and the batch that the analyser has not acknowledged.

    Guarantee: once `forward` returns, its round counts as forwarded whatever crashes, and `waiting`
    is the same batch until `acknowledged`; afterwards no message is left in the folder.
    Assumes: the folder belongs to one shuffler, and its disk keeps what it acknowledged.
    Not covered: a folder that is restored from an old copy forgets the rounds since then.
    """

    def __init__(self, folder: Path, *, run: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._run = run
        self._record = folder / "forwarded.json"
        self._messages = folder / "batch.sealed"
        self._own = folder / "batch.seeds"
        self._last, self._waiting = self._read()
        self._tidy()
        self._check_whole()

    @property
    def last_round(self) -> int:
        """The last round of which a batch left, or may have left; 0 before the first."""
        return self._last

    @property
    def is_waiting(self) -> bool:
        """Whether a batch was forwarded and not acknowledged."""
        return self._waiting is not None

    @property
    def agreed(self) -> str | None:
        """The digest of the set whose masks were added, or None."""
        return None if self._waiting is None else self._waiting.agreed

    def forward(self, batch: Batch, *, own_parts: bytes = b"") -> None:
        """Have the batch, the helper's own parts and the round on disk; then it may be sent."""
        if self._waiting is not None:
            raise TacitError(
                f"the batch of round {self._last} is not acknowledged yet; send that one first."
            )
        if own_parts:
            write_secret(self._own, own_parts)
        write_secret(self._messages, batch.messages)
        # Until the next line is done nothing was forwarded, and the files above are orphans.
        self._write(
            batch.round_number,
            _Waiting(
                batch_id=batch.batch_id,
                n_nodes=batch.n_nodes,
                n_bytes=len(batch.messages),
                own_bytes=len(own_parts),
            ),
        )

    def agree(self, digest: str) -> None:
        """Have on disk whose masks are added; only then may their sum leave."""
        if self._waiting is None:
            raise TacitError("no batch is waiting, so there is no set to agree on.")
        if self._waiting.agreed is None:
            self._write(self._last, replace(self._waiting, agreed=digest))

    def own_parts(self) -> bytes:
        """The helper's own parts of the waiting batch, in the order of its records."""
        return self._own.read_bytes()

    def waiting(self) -> Batch | None:
        """The batch to be sent, or sent again, as it was forwarded."""
        if self._waiting is None:
            return None
        return Batch(
            run=self._run,
            round_number=self._last,
            batch_id=self._waiting.batch_id,
            n_nodes=self._waiting.n_nodes,
            messages=self._messages.read_bytes(),
        )

    def acknowledged(self) -> None:
        """Delete the batch: the analyser has it on its own disk, or will never take it."""
        self._write(self._last, None)
        self._messages.unlink(missing_ok=True)
        self._own.unlink(missing_ok=True)

    def _write(self, last: int, waiting: _Waiting | None) -> None:
        plain = {
            "run": self._run,
            "forwarded": last,
            "waiting": None if waiting is None else asdict(waiting),
        }
        write_secret(self._record, json.dumps(plain).encode())
        self._last, self._waiting = last, waiting

    def _read(self) -> tuple[int, _Waiting | None]:
        if not self._record.exists():
            return 0, None
        try:
            plain = json.loads(self._record.read_bytes())
            run, last = plain["run"], int(plain["forwarded"])
            waiting = None if plain["waiting"] is None else _Waiting(**plain["waiting"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BundleError(
                f"{self._record} is not a whole record of forwarded rounds ({error!r}); restore "
                "it, because a round that is forwarded twice exposes who was left out."
            ) from error
        if run != self._run:
            raise BundleError(
                f"{self._record} belongs to run {run}, not to {self._run}; check the plan."
            )
        return last, waiting

    def _tidy(self) -> None:
        """Remove what a crash left half written: no message outlives its batch."""
        for orphan in self._messages.parent.glob(".batch.*"):
            orphan.unlink(missing_ok=True)
        if self._waiting is None:
            self._messages.unlink(missing_ok=True)
            self._own.unlink(missing_ok=True)

    def _check_whole(self) -> None:
        waiting = self._waiting
        if waiting is None:
            return
        for path, expected in ((self._messages, waiting.n_bytes), (self._own, waiting.own_bytes)):
            size = path.stat().st_size if path.exists() else 0
            if size != expected:
                raise BundleError(
                    f"{path} has {size} bytes and not the {expected} of the batch of round "
                    f"{self._last}, which was not acknowledged; restore it or begin a new run."
                )
