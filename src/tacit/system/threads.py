"""Pieces of array work on all cores: NumPy lets go of the interpreter while it computes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, TypeVar

_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")


def on_all_cores(work: Callable[[_Piece], _Result], pieces: Iterable[_Piece]) -> list[_Result]:
    """`work` of every piece, in the order of the pieces; the first error is raised."""
    return list(each_on_all_cores(work, pieces))


def each_on_all_cores(
    work: Callable[[_Piece], _Result], pieces: Iterable[_Piece]
) -> Iterator[_Result]:
    """The same one by one, for results that need not all be there at a time."""
    waiting = list(pieces)
    n_workers = min(os.cpu_count() or 1, len(waiting))
    if n_workers <= 1:  # a device with one window starts no thread
        yield from map(work, waiting)
        return
    with _one_thread_per_product(), ThreadPoolExecutor(n_workers) as pool:
        yield from pool.map(work, waiting)


def _one_thread_per_product() -> AbstractContextManager[Any]:
    """Keeps matrix products from starting threads of their own, which would wait for each other."""
    controller = _controller()
    return controller.limit(limits=1, user_api="blas") if controller else nullcontext()


@lru_cache(maxsize=1)
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # on a device with NumPy alone: slower, not wrong
        return None
    return ThreadpoolController()
