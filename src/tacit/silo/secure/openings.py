"""What was opened: the record behind the one function that reveals a shared value."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One reveal: what was opened, to which owner, and when (seconds since the epoch).

    `to` is the rank of the only owner who learns the value, or -1 where all of them do.
    """

    what: str
    to: int
    at: float = field(default_factory=time.time, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a receipt."""
        return asdict(self)


def opening_from_dict(plain: dict[str, Any]) -> Opening:
    """Read back what `Opening.to_dict` wrote."""
    return Opening(what=str(plain["what"]), to=int(plain["to"]), at=float(plain["at"]))


def summarise(opened: Iterable[Opening], names: tuple[str, ...]) -> tuple[str, ...]:
    """The list for `MpcGuarantee.opened`: "what -> whom", in order, without repeats."""
    lines = (f"{o.what} -> {names[o.to] if o.to >= 0 else 'all parties'}" for o in opened)
    return tuple(dict.fromkeys(lines))
