"""Errors that a user can act on: one sentence with the value received and the next step."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from numbers import Real


class TacitError(ValueError):
    """Bad input or a refused action; the command line prints it and exits with code 2.

    Example
    -------
    >>> from tacit import TacitError, load_dataset
    >>> try:
    ...     load_dataset("nowhere.csv")
    ... except TacitError as error:
    ...     print(error)
    there is no file 'nowhere.csv'; check the path.
    """


class BudgetExceeded(TacitError):
    """A release would spend more than the ledger allows; nothing was released or debited."""


class LedgerError(TacitError):
    """The ledger cannot be read, written or trusted; nothing was released."""


class BundleError(TacitError):
    """A saved model is truncated, altered or from another version."""


class TrustModelMismatch(TacitError):
    """Two guarantees that protect from different adversaries were compared."""


def check_positive(value: float, *, name: str, advice: str = "give a number such as 1.0") -> float:
    """Return `value` as a float if it is a finite number above 0, else refuse."""
    # Written as "not in range" so that NaN fails too.
    if not (is_number(value) and 0.0 < value < math.inf):
        raise TacitError(f"{name} must be finite and above 0, got {value!r}; {advice}.")
    return float(value)


def check_epsilon(epsilon: float, *, name: str = "epsilon") -> float:
    """Return `epsilon` as a float if it is finite and above 0, else refuse."""
    advice = "give the total privacy budget, for example 1.0"
    return check_positive(epsilon, name=name, advice=advice)


def check_delta(delta: float, *, name: str = "delta") -> float:
    """Return `delta` as a float if it lies strictly between 0 and 1, else refuse."""
    if not (is_number(delta) and 0.0 < delta < 1.0):
        raise TacitError(
            f"{name} must lie strictly between 0 and 1, got {delta!r}; "
            "choose it well below one over the number of persons, for example 1e-6."
        )
    return float(delta)


def check_at_least(value: int, low: int, *, name: str) -> int:
    """Return the whole number `value` if it is at least `low`, else refuse."""
    if not (is_number(value) and low <= value < math.inf and int(value) == value):
        raise TacitError(f"{name} must be a whole number of at least {low}, got {value!r}.")
    return int(value)


def check_choice(value: str, known: Sequence[str], *, name: str) -> str:
    """Return `value` if it is one of the known names, else refuse."""
    if not isinstance(value, str) or value not in known:
        raise TacitError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    return value


def check_flag(value: bool, *, name: str) -> bool:
    """Return `value` if it is True or False, else refuse."""
    if not isinstance(value, bool):
        raise TacitError(f"{name} must be True or False, got {value!r}.")
    return value


def check_path(value: object, *, name: str) -> str:
    """Return a path as text, else refuse."""
    if not isinstance(value, str | os.PathLike):
        raise TacitError(f"{name} must be a path or text, got {value!r}.")
    return os.fspath(value)


def is_number(value: object) -> bool:
    """Whether this is a real number; text that looks like one is not."""
    # NumPy's numbers register as Real too; True is a slip, not a budget.
    return isinstance(value, Real) and not isinstance(value, bool)


def reason_of(error: BaseException) -> str:
    """Why a file could not be used, without the number and the path that Python adds."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
