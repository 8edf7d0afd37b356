"""The same tasks on a Ray cluster, for users with many machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tacit.arena.record import failure, run_task
from tacit.arena.task import Task
from tacit.errors import TacitError
from tacit.system.extras import needs


def run_on_ray(tasks: list[Task], workers: int, *, address: str | None) -> Iterator[dict[str, Any]]:
    """Records in the order in which tasks end; without an address a cluster starts here."""
    needs("arena", "ray", what="the engine 'ray'")
    import ray

    try:
        ray.init(
            address=address,
            num_cpus=None if address else workers,
            include_dashboard=False,
            log_to_driver=False,
        )
    except ConnectionError as error:
        raise TacitError(f"no Ray cluster answers at {address!r}; check --address.") from error
    try:
        remote = ray.remote(num_cpus=1, max_retries=0)(run_task)
        open_tasks = {remote.remote(task): task for task in tasks}
        while open_tasks:
            ready, _ = ray.wait(list(open_tasks), num_returns=1)
            task = open_tasks.pop(ready[0])
            try:
                yield ray.get(ready[0])
            except ray.exceptions.RayError as error:
                yield failure(task, f"the worker died: {type(error).__name__}", seconds=0.0)
    finally:
        ray.shutdown()
