"""Laws of mechanisms with finitely many inputs and outputs: a table of probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.audit.laws import Cells, Event, Input, View, counted, rounded_down
from tacit.mechanisms import channel_epsilon


@dataclass(frozen=True, slots=True)
class FiniteLaw:
    """A table: row = input, column = output. `columns` turns outputs into columns, -1 for none."""

    table: Floats
    columns: Callable[[Floats], Cells]
    exact: float | None = None  # the epsilon of the whole table where it is known exactly
    joint: bool = False

    @property
    def inputs(self) -> Sequence[Input]:
        """The rows."""
        return range(len(self.table))

    def loss(self, x: Input, y: Input, *, delta: float) -> float:
        """As in `Law`."""
        p, q = self.table[x], self.table[y]
        if delta == 0.0:
            used = np.maximum(p, q) > 0.0
            if np.any(np.minimum(p, q)[used] == 0.0):
                return math.inf
            worst = rounded_down(float(np.abs(np.log(p[used]) - np.log(q[used])).max()))
            return worst if self.exact is None else min(worst, self.exact)
        return rounded_down(max(_hockey_epsilon(p, q, delta), _hockey_epsilon(q, p, delta)))

    def event(self, x: Input, y: Input, *, delta: float) -> Event:
        """As in `Law`."""
        order, above, below = _most_likely_first(self.table[x], self.table[y])
        with np.errstate(divide="ignore", invalid="ignore"):
            speaks = np.where(above > delta, (above - delta) / below, 0.0)
        size = int(np.nanargmax(speaks * (1.0 - 1e-9 / (1 + np.arange(order.size))))) + 1
        chosen = np.zeros(order.size + 1, dtype=bool)
        chosen[order[:size]] = True
        return Event(
            lambda outputs: chosen[self.columns(outputs)],
            float(above[size - 1]),
            float(below[size - 1]),
        )

    def impossible(self, x: Input, outputs: Floats) -> int:
        """As in `Law`."""
        columns = self.columns(outputs)
        never = np.append(self.table[x] == 0.0, True)  # the column -1 is no output at all
        return int(np.count_nonzero(never[columns]))

    def views(self, x: Input, outputs: Floats) -> list[View]:
        """As in `Law`."""
        columns = self.columns(outputs)
        return [counted("outputs", columns[columns >= 0], self.table[x])]


def symbol_columns(n_outputs: int) -> Callable[[Floats], Cells]:
    """Outputs that are symbols 0..n-1 are their own columns."""

    def columns(outputs: Floats) -> Cells:
        values = outputs[:, 0]
        good = (values == np.floor(values)) & (values >= 0) & (values < n_outputs)
        return np.where(good, values, -1).astype(np.intp)

    return columns


def channel_law(channel: Floats) -> FiniteLaw:
    """Of a channel; its epsilon is computed from the whole numbers that are sampled."""
    exact = channel_epsilon(channel)
    lower = exact if math.isinf(exact) else rounded_down(exact)
    return FiniteLaw(channel, symbol_columns(channel.shape[1]), lower)


def _hockey_epsilon(p: Floats, q: Floats, delta: float) -> float:
    """The least epsilon with sum (p - e**epsilon q)+ <= delta; infinite if there is none."""
    if float(p[q == 0.0].sum()) > delta:
        return math.inf
    _, above, below = _most_likely_first(p, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.log((above - delta) / below)
    return max(0.0, float(np.nanmax(np.where(above > delta, wanted, -np.inf))))


def _most_likely_first(p: Floats, q: Floats) -> tuple[Cells, Floats, Floats]:
    """Outputs by falling ratio p / q, and the probability of the first 1, 2, ... of them."""
    ratio = np.where(q > 0.0, p / np.where(q > 0.0, q, 1.0), np.where(p > 0.0, np.inf, 0.0))
    order = np.argsort(-ratio, kind="stable")
    return order, np.cumsum(p[order]), np.cumsum(q[order])
