"""The blocks of a simulated fleet on a Ray cluster, for fleets that one machine is too slow for.

Blocks are added up in the same stretches and the same order as by `Fleet`, so that sums without
noise are equal to the last bit. Every machine draws its noise from its own operating system.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.plan import Training
from tacit.fleet.simulation.fleet import Fleet, Summed, Total, added, stretch_total
from tacit.system.extras import needs


@dataclass(frozen=True, slots=True)
class RayFleet:
    """A fleet whose rows and blocks lie in the object store of a cluster; see `on_ray`."""

    n_clients: int
    n_classes: int
    deal: str
    rows: Any = field(repr=False)
    stretches: tuple[Any, ...] = field(repr=False)
    task: Any = field(repr=False)

    def total(
        self,
        members: Integers,
        weights: Floats,
        training: Training,
        summed: Summed,
        *,
        in_order: bool = False,
    ) -> Total:
        """See `Clients.total`; a seeded noise source, which has one order only, is refused."""
        import ray

        if in_order:
            raise TacitError("machines draw noise of their own; give no other source with Ray.")
        wanted = np.zeros(self.n_clients, dtype=bool)
        wanted[members] = True
        common = [ray.put(value) for value in (wanted, weights, training, summed)]
        parts = [
            self.task.remote(self.rows, self.n_classes, stretch, *common)
            for stretch in self.stretches
        ]
        return added(ray.get(part) for part in parts)


def on_ray(fleet: Fleet, *, address: str | None = None) -> RayFleet:
    """Hand the fleet over to the cluster at `address`, or to one that starts here.

    The caller ends the connection with `ray.shutdown()`.
    """
    needs("arena", "ray", what="a fleet on Ray")
    import ray

    if not ray.is_initialized():
        try:
            ray.init(address=address, include_dashboard=False, log_to_driver=False)
        except ConnectionError as error:
            raise TacitError(
                f"no Ray cluster answers at {address!r}; start one, or leave the address out."
            ) from error
    return RayFleet(
        fleet.n_clients,
        fleet.n_classes,
        fleet.deal,
        ray.put(fleet.rows),
        tuple(ray.put(stretch) for stretch in fleet.stretches()),
        ray.remote(num_cpus=1)(stretch_total),
    )
