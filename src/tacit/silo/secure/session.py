"""The interface between a protocol program and the engine that runs it.

A program is one function that every owner runs in its own process on its own data, all making the
same calls on the session in the same order::

    def program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult: ...

`SpuSession` (in `tacit.silo.secure.spu_session`) computes over shares; `PlainSession` (in
`tacit.silo.secure.plain_session`) runs the same program in plaintext and is the oracle in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.silo.plan import Plan
    from tacit.silo.secure.kernels import Kernel
    from tacit.silo.secure.openings import Opening

Arrays = dict[str, NDArray[Any]]
Static = Mapping[str, Any]
JaxFunction = Callable[..., Any]

# A shared integer must leave room for a product with another one and for sums of products.
LARGEST_INTEGER = 2**62


@dataclass(frozen=True, slots=True)
class Shared:
    """A handle on a secret-shared array: its public name, shape and type, never its value."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalInputs:
    """What one owner holds: its series (n, channels, T), class indices, and private choices.

    `private` never leaves the owner: for example P0's seed for drawing candidates.
    """

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    private: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """What a program returns to its own party: arrays, and plain values that JSON can hold."""

    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)


class Session(Protocol):
    """One owner's view of the federation; all owners make the same calls in the same order."""

    @property
    def rank(self) -> int:
        """This owner's number; 0 is the initiator P0."""
        ...

    @property
    def n_parties(self) -> int:
        """How many owners there are, computing or only sharing."""
        ...

    @property
    def opened(self) -> list[Opening]:
        """Every value revealed so far, in order; the same list at every owner."""
        ...

    @property
    def bytes_sent(self) -> int:
        """Bytes that this owner has sent: engine, shares and openings."""
        ...

    @property
    def rounds(self) -> int:
        """Rounds so far: the longest chain of messages over all parties.

        In our own protocols it is the same at every party. The engine reports messages of its own
        party only: there it is the larger of those sent and received, and the largest over the
        parties bounds the chain.
        """
        ...

    @property
    def compile_seconds(self) -> float:
        """Seconds this owner has spent compiling so far, or waiting for another to compile."""
        ...

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
        """Secret-share an array of `owner`, who passes it; all the others pass None.

        `limit` is the largest absolute value that the program's arithmetic can take; the owner's
        array is refused above it, before anything is sent.
        """
        ...

    def run(self, fn: JaxFunction, *shared: Shared, static: Static | None = None) -> Any:
        """Apply a pure JAX function of a module to shares; returns a Shared, or a tuple of them.

        `static` holds public keyword arguments (numbers, strings, tuples). The function may not
        sort or branch on secrets with operations that open comparisons: these are refused.
        """
        ...

    def run_kernel(self, kernel: Kernel, *shared: Shared, static: Static | None = None) -> Shared:
        """Apply a kernel to shares, by the fastest of its routes that this session has.

        `static` holds the public keyword arguments of all its routes.
        """
        ...

    def reveal(self, shared: Shared, *, to: int = 0, what: str) -> NDArray[Any] | None:
        """Open a value to one owner; the only way out of the shares, always recorded.

        Returns the array at `to`, None elsewhere.
        """
        ...

    def announce(self, value: Any, *, owner: int = 0, what: str) -> Any:
        """Send a public plain value of `owner` (JSON) to all; recorded like an opening."""
        ...

    def free(self, *shared: Shared) -> None:
        """Forget shares that are no longer needed."""
        ...

    def public_barrier(self) -> None:
        """Wait until every owner has reached this point."""
        ...

    def progress(
        self, done: int, total: int, message: str, *, seconds_left: float | None = None
    ) -> None:
        """Show how far the program is: here, and what P0 says at owners that do not compute.

        The message, and when it comes, must depend on public numbers and clocks only.
        """
        ...


Program = Callable[[Session, LocalInputs, "Plan"], ProgramResult]


def check_share(
    name: str,
    value: NDArray[Any] | None,
    *,
    mine: bool,
    shape: tuple[int, ...],
    dtype: str,
    limit: float | None,
) -> NDArray[Any] | None:
    """Refuse what the ring would silently wrap, clamp or misread; return the array to share."""
    if not mine:
        if value is not None:
            raise TacitError(f"only the owner of '{name}' may pass its value; pass None.")
        return None
    if value is None or tuple(np.shape(value)) != tuple(shape):
        got = None if value is None else np.shape(value)
        raise TacitError(f"'{name}' must have the agreed shape {tuple(shape)}, got {got}.")
    array = np.asarray(value)
    if array.dtype != np.dtype(dtype):
        raise TacitError(f"'{name}' must have the agreed type {dtype}, got {array.dtype}.")
    if array.size and not np.isfinite(array).all():
        raise TacitError(f"'{name}' holds NaN or infinity; repair or drop these series.")
    # Comparison as Python numbers: abs(-2**63) does not exist as int64.
    largest = max((abs(array.max().item()), abs(array.min().item()))) if array.size else 0
    allowed = LARGEST_INTEGER if limit is None else limit
    if largest > allowed:
        raise TacitError(
            f"'{name}' holds a value of size {largest:.6g}, above the {allowed:.6g} that the "
            "shared arithmetic can take; rescale or normalise the series."
        )
    return np.ascontiguousarray(array)
