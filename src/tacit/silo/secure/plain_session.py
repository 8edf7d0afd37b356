"""The plaintext twin of the secure engine: the same program, all owners in one process.

Nothing is protected here: it is the oracle in tests and the tool for writing programs. Every owner
runs in a thread of its own, values lie in common memory, and the calls of all owners are compared:
a program whose control flow depends on private data is caught here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.silo.secure.jax_x64 import enable_x64
from tacit.silo.secure.openings import Opening
from tacit.silo.secure.session import (
    JaxFunction,
    LocalInputs,
    Program,
    ProgramResult,
    Session,
    Shared,
    Static,
    check_share,
)
from tacit.system.progress import Progress, silent

if TYPE_CHECKING:
    from tacit.silo.plan import Plan
    from tacit.silo.secure.kernels import Kernel


class _CommonMemory:
    """Where the owners' threads meet: values by call number, and the first failure."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._values: dict[int, Any] = {}
        self._calls: dict[int, tuple[Any, ...]] = {}
        self._freed: dict[tuple[int, int], int] = {}
        self.failure: BaseException | None = None

    def check_same(self, number: int, call: tuple[Any, ...]) -> None:
        with self._condition:
            first = self._calls.setdefault(number, call)
        if first != call:
            raise TacitError(
                f"the owners' programs diverge at call {number}: {first} against {call}; "
                "a program must not branch on private data."
            )

    def put(self, number: int, value: Any) -> None:
        with self._condition:
            self._values[number] = value
            self._condition.notify_all()

    def get(self, number: int) -> Any:
        with self._condition:
            self._condition.wait_for(lambda: number in self._values or self.failure is not None)
            if number in self._values:
                return self._values[number]
            raise _OtherThreadFailed

    def release(self, number: int, index: int, *, n_owners: int) -> None:
        """Drop an array once every owner has freed it."""
        with self._condition:
            self._freed[number, index] = self._freed.get((number, index), 0) + 1
            if self._freed[number, index] == n_owners:
                arrays = list(self._values[number])
                arrays[index] = None
                self._values[number] = tuple(arrays)

    def fail(self, error: BaseException) -> None:
        with self._condition:
            if self.failure is None and not isinstance(error, _OtherThreadFailed):
                self.failure = error
            self._condition.notify_all()


class _OtherThreadFailed(Exception):
    """Unwinds an owner's thread after another owner's failure, which is the one reported."""


@lru_cache(maxsize=512)
def _jitted(fn: JaxFunction, names: tuple[str, ...]) -> Any:
    import jax

    return jax.jit(fn, static_argnames=names)


class PlainSession:
    """`Session` in plaintext for one owner's thread; see `run_plain`."""

    def __init__(
        self, rank: int, n_parties: int, memory: _CommonMemory, *, progress: Progress = silent
    ) -> None:
        self.rank = rank
        self.n_parties = n_parties
        self.opened: list[Opening] = []
        self.bytes_sent = 0
        self.rounds = 0
        self.compile_seconds = 0.0
        self._memory = memory
        self._progress = progress
        self._calls = 0
        self._places: dict[str, tuple[int, int]] = {}

    def _next(self, *call: Any) -> int:
        self._calls += 1
        self._memory.check_same(self._calls, call)
        return self._calls

    def _value(self, shared: Shared) -> Any:
        number, index = self._places[shared.name]
        return self._memory.get(number)[index]

    def share(
        self,
        name: str,
        value: NDArray[Any] | None,
        *,
        owner: int,
        shape: tuple[int, ...],
        dtype: str = "int64",
        limit: float | None = None,
    ) -> Shared:
        """See `Session.share`."""
        number = self._next("share", name, owner, tuple(shape), dtype)
        mine = owner == self.rank
        array = check_share(name, value, mine=mine, shape=shape, dtype=dtype, limit=limit)
        if mine:
            self._memory.put(number, (array,))
        shared = Shared(f"{name}#{number}", tuple(shape), dtype)
        self._places[shared.name] = (number, 0)
        return shared

    def run(self, fn: JaxFunction, *shared: Shared, static: Static | None = None) -> Any:
        """See `Session.run`; the initiator's thread computes for all."""
        static = dict(static or {})
        signature = (fn.__module__, fn.__qualname__, *((s.shape, s.dtype) for s in shared))
        number = self._next("run", signature, tuple(sorted(static.items())))
        if self.rank == 0:
            self._memory.put(number, self._compute(fn, shared, static))
        outputs = self._memory.get(number)
        handles = tuple(
            Shared(f"{fn.__name__}#{number}.{i}", tuple(o.shape), str(o.dtype))
            for i, o in enumerate(outputs)
        )
        for i, handle in enumerate(handles):
            self._places[handle.name] = (number, i)
        return handles if getattr(outputs, "many", True) else handles[0]

    def _compute(self, fn: JaxFunction, shared: Sequence[Shared], static: Static) -> _Outputs:
        arguments = [self._value(s) for s in shared]
        with enable_x64():
            result = _jitted(fn, tuple(sorted(static)))(*arguments, **static)
            many = isinstance(result, tuple)
            outputs = _Outputs(np.asarray(r) for r in (result if many else (result,)))
        outputs.many = many
        return outputs

    def run_kernel(self, kernel: Kernel, *shared: Shared, static: Static | None = None) -> Shared:
        """See `Session.run_kernel`: always the route in plaintext."""
        found: Shared = self.run(kernel.plaintext, *shared, static=static)
        return found

    def reveal(self, shared: Shared, *, to: int = 0, what: str) -> NDArray[Any] | None:
        """See `Session.reveal`."""
        self._next("reveal", shared.shape, shared.dtype, to, what)
        self.opened.append(Opening(what=what, to=to))
        return np.asarray(self._value(shared)) if self.rank == to else None

    def announce(self, value: Any, *, owner: int = 0, what: str) -> Any:
        """See `Session.announce`."""
        number = self._next("announce", owner, what)
        if self.rank == owner:
            self._memory.put(number, value)
        self.opened.append(Opening(what=what, to=-1))
        return self._memory.get(number)

    def free(self, *shared: Shared) -> None:
        """See `Session.free`."""
        self._next("free", len(shared))
        for handle in shared:
            number, index = self._places.pop(handle.name)
            self._memory.release(number, index, n_owners=self.n_parties)

    def public_barrier(self) -> None:
        """See `Session.public_barrier`."""
        self._next("barrier")

    def progress(
        self, done: int, total: int, message: str, *, seconds_left: float | None = None
    ) -> None:
        """See `Session.progress`."""
        if self.rank == 0:
            self._progress(done, total, message)


class _Outputs(tuple[NDArray[Any], ...]):
    """The arrays of one `run`, and whether the function returned a tuple."""

    many: bool


def run_plain(
    program: Program,
    plan: Plan,
    inputs: Sequence[LocalInputs],
    *,
    progress: Progress = silent,
) -> tuple[list[ProgramResult], list[PlainSession]]:
    """Run a program of all owners in plaintext; results and sessions by rank.

    Guarantee: none, all the data lie in one process.
    """
    memory = _CommonMemory()
    sessions = [PlainSession(r, len(inputs), memory, progress=progress) for r in range(len(inputs))]
    results: dict[int, ProgramResult] = {}

    def owner(rank: int) -> None:
        try:
            results[rank] = program(sessions[rank], inputs[rank], plan)
        except BaseException as error:
            memory.fail(error)

    threads = [threading.Thread(target=owner, args=(r,), daemon=True) for r in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if memory.failure is not None:
        raise memory.failure
    return [results[r] for r in range(len(inputs))], sessions


def run_alone(
    program: Callable[[Session], ProgramResult], *, progress: Progress = silent
) -> ProgramResult:
    """Run what one owner computes for itself, in plaintext."""
    nothing = LocalInputs(X=np.empty((0, 1, 0)), y=np.empty(0, dtype=np.intp))
    results, _ = run_plain(
        lambda session, _inputs, _plan: program(session),
        cast("Plan", None),  # a plan is an agreement between owners; here is only one
        [nothing],
        progress=progress,
    )
    return results[0]
