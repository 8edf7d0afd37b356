"""The clients of a simulated fleet, in blocks: a round needs the memory of one block per core.

A fleet holds the rows of its series once, or a memory map of them, and for every client where
its rows lie. A round fetches the rows of a block of clients, adds up what they contribute and
forgets them, so what it needs does not grow with the number of clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.fleet.learning.clients import ClientBlock, ClientGroup, client_blocks, local_directions
from tacit.fleet.plan import Training
from tacit.fleet.simulation.checkpoint import deal_digest
from tacit.system.threads import each_on_all_cores, on_all_cores

_STRETCH = 4  # blocks that are added up in one go, on one core or one machine

Total = NDArray[Any]
Summed = Callable[[Floats], Total]


def plain_sum(directions: Floats) -> Total:
    """The sum of the directions themselves, which nothing protects."""
    total: Total = directions.sum(axis=0)
    return total


class Clients(Protocol):
    """Whoever can add up what clients contribute: `Fleet` here, `RayFleet` on a cluster."""

    @property
    def n_clients(self) -> int:
        """How many clients there are, numbered from 0."""
        ...

    @property
    def deal(self) -> str:
        """The digest of which series belong to which client, for a resumption to compare."""
        ...

    def total(
        self,
        members: Integers,
        weights: Floats,
        training: Training,
        summed: Summed,
        *,
        in_order: bool = False,
    ) -> Total:
        """The sum over all blocks of `summed` of the directions of these clients in the block.

        The order of the additions is fixed. `in_order` takes the blocks one after the other as
        well, for a noise source that has one order only.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fleet:
    """Clients ready for rounds; nothing here leaves a client."""

    rows: Floats
    blocks: tuple[ClientBlock, ...]
    n_clients: int
    n_classes: int
    deal: str

    def groups(self) -> Iterator[ClientGroup]:
        """All clients with their rows, block by block."""
        return (block.fetched(self.rows, self.n_classes) for block in self.blocks)

    def stretches(self) -> list[tuple[ClientBlock, ...]]:
        """The blocks as they are added up: first within a stretch, then the stretches."""
        starts = range(0, len(self.blocks), _STRETCH)
        return [self.blocks[start : start + _STRETCH] for start in starts]

    def total(
        self,
        members: Integers,
        weights: Floats,
        training: Training,
        summed: Summed,
        *,
        in_order: bool = False,
    ) -> Total:
        """See `Clients.total`; on all cores unless `in_order`."""
        wanted = np.zeros(self.n_clients, dtype=bool)
        wanted[members] = True

        def of_stretch(blocks: tuple[ClientBlock, ...]) -> Total | None:
            return stretch_total(
                self.rows, self.n_classes, blocks, wanted, weights, training, summed
            )

        stretches = self.stretches()
        each = map(of_stretch, stretches) if in_order else each_on_all_cores(of_stretch, stretches)
        return added(each)

    def directions(self, members: Integers, weights: Floats, training: Training) -> Floats:
        """The directions of these clients, in their order, all at once."""
        place = np.full(self.n_clients, -1, dtype=np.int64)
        place[members] = np.arange(len(members))
        out = np.empty((len(members), weights.size))

        def fill(block: ClientBlock) -> None:
            chosen = place[block.clients] >= 0
            if np.any(chosen):
                group = block.fetched(self.rows, self.n_classes, chosen)
                out[place[group.clients]] = local_directions(weights, group, training)

        on_all_cores(fill, self.blocks)
        return out


def stretch_total(
    rows: Floats,
    n_classes: int,
    blocks: Iterable[ClientBlock],
    wanted: NDArray[np.bool_],
    weights: Floats,
    training: Training,
    summed: Summed,
) -> Total | None:
    """What the wanted clients of a few blocks add; None if there are none among them."""
    found = []
    for block in blocks:
        chosen = wanted[block.clients]
        if np.any(chosen):
            group = block.fetched(rows, n_classes, chosen)
            found.append(summed(local_directions(weights, group, training)))
    return reduce(np.add, found) if found else None


def added(totals: Iterable[Total | None]) -> Total:
    """The totals added in their order, each dropped as soon as it is in."""
    return reduce(np.add, (total for total in totals if total is not None))


def make_fleet(
    rows: Floats,
    labels: Integers,
    client: Integers,
    *,
    n_clients: int,
    n_classes: int,
    ridge: float = Training().local_ridge,
    series: Integers | None = None,
) -> Fleet:
    """Deal feature rows to clients 0..n_clients-1; `ridge` is the plan's `local_ridge`.

    With `series` a row may stand for several series: `labels` and `client` are those of the
    series, and `series` is the row of each.
    """
    blocks = client_blocks(
        rows, labels, client, n_clients=n_clients, n_classes=n_classes, ridge=ridge, series=series
    )
    deal = deal_digest(client, n_clients=n_clients, n_features=rows.shape[1], n_classes=n_classes)
    return Fleet(rows, tuple(blocks), n_clients, n_classes, deal)
