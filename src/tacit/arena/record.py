"""Run one task and record everything that a reader needs to trust its result."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import subprocess
import time
import warnings
from pathlib import Path
from typing import Any

from tacit._version import VERSION
from tacit.arena.methods import run_method
from tacit.arena.outcome import Outcome
from tacit.arena.task import Task
from tacit.errors import TacitError

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "aeon", "torch", "spu", "flwr")


def run_task(task: Task) -> dict[str, Any]:
    """The record of one task; an error of the method becomes a record of status 'failed'."""
    start, cpu = time.perf_counter(), _cpu_seconds()
    try:
        with warnings.catch_warnings():
            # numba says so whenever it compiles aeon's distances; nobody here can act on it.
            warnings.filterwarnings("ignore", message="unsafe cast from uint64 to int64")
            outcome = run_method(task)
    except TacitError as error:
        return failure(task, str(error), seconds=time.perf_counter() - start)
    return {
        **_head(task, "done"),
        **_result(outcome),
        "seconds": round(time.perf_counter() - start, 3),
        "cpu_seconds": round(_cpu_seconds() - cpu, 3),
        "peak_memory_mb": _peak_memory_mb(),
    }


def _peak_memory_mb() -> float:
    import resource

    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def failure(task: Task, reason: str, *, seconds: float) -> dict[str, Any]:
    """The record of a task that failed: kept, shown, not tried again unasked."""
    return {**_head(task, "failed"), "reason": reason, "seconds": round(seconds, 3)}


def _result(outcome: Outcome) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "accuracy": outcome.accuracy,
        "guarantee": outcome.guarantee.to_dict(),
        "leakage": outcome.leakage,
    }
    return {**plain, "details": outcome.details}


def _head(task: Task, status: str) -> dict[str, Any]:
    return {
        "task": task.to_dict(),
        "status": status,
        "commit": commit(),
        "version": VERSION,
        "versions": versions(),
        "machine": platform.machine(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@functools.cache
def versions() -> dict[str, str]:
    """The libraries that a result depends on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def commit() -> str:
    """The commit of the code that runs, with '-dirty' if it differs, 'unknown' outside of git.

    Only the package counts: a file of results that grows does not make the next result unclean.
    """
    package = Path(__file__).parents[1]
    try:
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        changed = _git(package, "status", "--porcelain", "--", ".")
        name = _git(package, "rev-parse", "--short=10", "HEAD")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{name}-dirty" if changed else name


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()


def _cpu_seconds() -> float:
    import resource

    times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in times)
