"""One task is one cell of one table: a method on a data set at a budget with a seed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from tacit.errors import TacitError, check_at_least, check_epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Plain values only, so that a task is at once its name and its configuration.

    `epsilon` is the method's own budget parameter, None where it runs without noise; what it
    guarantees is stated in the record, not here.
    """

    suite: str
    method: str
    data: str
    epsilon: float | None = None
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = field(default=())

    def __post_init__(self) -> None:
        check_at_least(self.seed, 0, name="seed")
        if self.epsilon is not None:
            check_epsilon(self.epsilon)

    @property
    def key(self) -> str:
        """The task's name: equal tasks have equal keys, in every run and on every machine."""
        return json.dumps(self.to_dict(), sort_keys=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a JSON line."""
        return {**asdict(self), "options": dict(self.options)}


def task_from_dict(plain: dict[str, Any]) -> Task:
    """Read back what `to_dict` wrote."""
    try:
        options = tuple(sorted(plain["options"].items()))
        return Task(**{**plain, "options": options})
    except (KeyError, TypeError, AttributeError) as error:
        raise TacitError(f"not a task: {plain!r}.") from error
