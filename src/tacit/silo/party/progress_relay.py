"""How far a run is, on every terminal: owners that do not compute are told by the initiator.

Such an owner's own program only follows the shapes, so it is through in a moment and knows nothing.
What the initiator tells are public numbers and its clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tacit.silo.party.links.frames import Header
from tacit.silo.party.links.mesh import printable

_MOST_STEPS = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the run as one party shows it; the bytes are those that it has sent itself."""

    done: int
    total: int
    message: str
    seconds_left: float | None
    bytes_sent: int

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.message}, {self.bytes_sent / 1e6:.1f} MB sent"


class ProgressRelay:
    """Shows the steps of a run at one party, and at the initiator passes them on."""

    def __init__(
        self,
        *,
        rank: int,
        n_parties: int,
        n_computing: int,
        send: Callable[[int, Header], None],
        show: Callable[[Step], None],
    ) -> None:
        self._waits = rank >= n_computing
        self._told = range(n_computing, n_parties) if rank == 0 else range(0)
        self._send = send
        self._show = show
        self._bytes_sent = 0

    def heard_engine(self, header: Header) -> None:
        """Our own engine has come so far."""
        self._bytes_sent = int(header["bytes_sent"])
        if self._waits:
            return
        self._show(self._step(header))
        kept = {name: header[name] for name in ("done", "total", "message", "seconds_left")}
        for rank in self._told:
            self._send(rank, {"t": "progress", **kept})

    def heard_peer(self, rank: int, header: Header) -> None:
        """The initiator has come so far; what anybody else says, or what is no step, is ignored."""
        if not self._waits or rank != 0:
            return
        try:
            step = self._step(header)
        except (KeyError, TypeError, ValueError, OverflowError):
            return
        self._show(step)

    def _step(self, header: Header) -> Step:
        done, total, left = int(header["done"]), int(header["total"]), header["seconds_left"]
        if not (0 <= done <= total <= _MOST_STEPS and (left is None or 0 <= left < math.inf)):
            raise ValueError
        return Step(
            done=done,
            total=total,
            message=printable(header["message"]),
            seconds_left=None if left is None else float(left),
            bytes_sent=self._bytes_sent,
        )
