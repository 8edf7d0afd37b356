"""Run tasks on worker processes; stop and resume anywhere, survive a worker that is killed.

Each worker is a fresh process with one thread per library. The runner alone writes: it appends a
task's line when the worker hands it over, so a task has one line or none, whichever process
is killed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from tacit.arena.record import failure, run_task
from tacit.arena.store import Store
from tacit.arena.task import Task, task_from_dict
from tacit.errors import TacitError, check_at_least
from tacit.system.posix import needs_posix
from tacit.system.progress import Progress, silent

_MOST_MEMORY_MB = 2000.0  # a worker that once had more starts afresh: compiled shapes pile up
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How a run ended."""

    done: int
    failed: int
    remaining: int

    def to_dict(self) -> dict[str, int]:
        """The keys of the command's JSON."""
        return {"done": self.done, "failed": self.failed, "remaining": self.remaining}


def run_suite(
    tasks: list[Task],
    store: Store,
    *,
    workers: int = 2,
    engine: str = "local",
    address: str | None = None,
    retry_failed: bool = False,
    again: bool = False,
    progress: Progress = silent,
) -> Tally:
    """Run every task that has no line in the store yet, and count what the store has then.

    `retry_failed`: also the tasks whose last line says that they failed. `again`: all of them. The
    new line is appended, and the last one counts.
    """
    needs_posix("'tacit arena run'")
    check_at_least(workers, 1, name="workers")
    todo = store.remaining(tasks, retry_failed=retry_failed, again=again)
    clock = _Clock(total=len(tasks), before=len(tasks) - len(todo), progress=progress)
    for record in _engine(engine, address)(todo, workers):
        store.append(record)
        clock.tick(record)
    return tally(tasks, store)


def tally(tasks: list[Task], store: Store) -> Tally:
    """Count what the store has for these tasks."""
    status = store.states()
    states = [status.get(task.key) for task in tasks]
    return Tally(
        done=states.count("done"), failed=states.count("failed"), remaining=states.count(None)
    )


def check_engine(engine: str) -> None:
    """Refuse an unknown engine."""
    if engine not in ("local", "ray"):
        raise TacitError(f"unknown engine {engine!r}; use local or ray.")


def _engine(
    engine: str, address: str | None
) -> Callable[[list[Task], int], Iterator[dict[str, Any]]]:
    check_engine(engine)
    if engine == "local":
        return run_on_processes
    from tacit.arena.on_ray import run_on_ray

    return lambda tasks, workers: run_on_ray(tasks, workers, address=address)


@dataclass(slots=True)
class _Clock:
    """Progress with an estimate of the time left, from the tasks of this run."""

    total: int
    before: int
    progress: Progress
    start: float = field(default_factory=time.perf_counter)
    ended: int = 0

    def tick(self, record: dict[str, Any]) -> None:
        self.ended += 1
        done = self.before + self.ended
        left = (time.perf_counter() - self.start) / self.ended * (self.total - done)
        what = f"{record['task']['method']} on {record['task']['data']}"
        message = f"{what}: {record['status']}, about {left / 60:.1f} min left"
        self.progress(done, self.total, message)


@dataclass(slots=True)
class _Worker:
    process: Any
    channel: Connection
    task: Task | None = None
    since: float = 0.0

    def give(self, task: Task) -> None:
        self.task, self.since = task, time.perf_counter()
        self.channel.send_bytes(task.key.encode())

    def collect(self) -> dict[str, Any]:
        """The record of its task; if the worker died, a record that says so."""
        assert self.task is not None
        try:
            record: dict[str, Any] = json.loads(self.channel.recv_bytes())
        except (EOFError, ConnectionError):
            self.process.join()
            reason = f"the worker died with exit code {self.process.exitcode}"
            record = failure(self.task, reason, seconds=time.perf_counter() - self.since)
        self.task = None
        return record


def run_on_processes(tasks: list[Task], workers: int) -> Iterator[dict[str, Any]]:
    """Records in the order in which tasks end; a dead worker is replaced, and one grown large."""
    queue = list(reversed(tasks))
    with _one_thread_each():
        team = [_start() for _ in range(min(workers, len(queue)))]
        try:
            for worker in team:
                worker.give(queue.pop())
            while busy := [worker for worker in team if worker.task is not None]:
                ready = wait([worker.channel for worker in busy])
                for worker in [w for w in busy if w.channel in ready]:
                    record = worker.collect()
                    yield record
                    if not queue:
                        continue
                    if record.get("peak_memory_mb", 0.0) > _MOST_MEMORY_MB:
                        worker.process.kill()
                        worker.process.join()
                    if not worker.process.is_alive():
                        team[team.index(worker)] = worker = _start()
                    worker.give(queue.pop())
        finally:
            for worker in team:
                worker.process.kill()


def _start() -> _Worker:
    # Spawned, not forked: threads and locks of numerical libraries do not survive a fork.
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=False)
    process.start()
    theirs.close()
    return _Worker(process, mine)


def _work(channel: Connection) -> None:
    """The worker: take a task, run it, hand over its record; stop when the runner is gone."""
    while True:
        try:
            text = channel.recv_bytes()
        except (EOFError, ConnectionError):
            return
        record = run_task(task_from_dict(json.loads(text)))
        with suppress(ConnectionError):  # the runner was killed meanwhile: the task runs again
            channel.send_bytes(json.dumps(record, allow_nan=False).encode())


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
