"""Group commits: one thread writes what many requests brought, in one transaction each time.

A disk needs milliseconds for a commit, whether it holds one release or a thousand. While one
commit is on its way, requests wait in a queue, and the next commit takes all of them. A request is
answered after its commit, so nothing that was acknowledged can be lost.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from tacit.local.collector.storage.database import Database, StoreUnavailable
from tacit.local.collector.storage.store import Store, Stored, Upload, note_time, store_uploads

_LOG = logging.getLogger("tacit.local.collector")
_MOST_WAITING = 4000  # requests; more are turned away
_MOST_ROWS = 50_000  # releases in one commit
_NOTE_SECONDS = 60.0
_STOP = None

Action = Callable[[Database], Any]


@dataclass(slots=True)
class _Job:
    """An upload or another change, and who waits for it."""

    work: Upload | Action
    done: Future[Any] = field(default_factory=Future)

    @property
    def size(self) -> int:
        return len(self.work.windows) if isinstance(self.work, Upload) else 1


class Writer:
    """The thread that writes; the only one in its process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = store.another_connection()
        self._jobs: queue.Queue[_Job | None] = queue.Queue()
        self._late: deque[_Job] = deque()  # of devices that have a job in the commit before
        self._ending = False
        self._noted = 0.0
        self._closed = False
        self.failing: str | None = None  # why the last commit failed
        self.commits, self.commit_seconds = 0, 0.0
        self._thread = threading.Thread(target=self._run, name="collector-writer", daemon=True)
        self._thread.start()

    def upload(self, upload: Upload) -> Future[Stored]:
        """Store releases; the result comes after the commit."""
        return self._submit(upload)

    def change(self, action: Action) -> Future[Any]:
        """Run an action in the next transaction. It must refuse before it writes anything."""
        return self._submit(action)

    def close(self) -> None:
        """Finish what waits, then stop."""
        self._closed = True
        self._jobs.put(_STOP)
        self._thread.join()
        self._database.close()

    @property
    def alive(self) -> bool:
        """Whether anything would be written."""
        return self._thread.is_alive()

    def _submit(self, work: Upload | Action) -> Future[Any]:
        if self._closed or not self.alive or self._jobs.qsize() >= _MOST_WAITING:
            raise StoreUnavailable("too many requests wait for the store; send it again later.")
        job = _Job(work)
        self._jobs.put(job)
        return job.done

    def _run(self) -> None:
        while (jobs := self._next_jobs()) is not None:
            start = time.monotonic()
            try:
                self._commit(jobs)
            except Exception as error:
                self._fail(jobs, error)
            else:
                self.failing = None
            self.commits += 1
            self.commit_seconds += time.monotonic() - start

    def _next_jobs(self) -> list[_Job] | None:
        """All that waits, at most one job per device: its windows then meet no others."""
        first = self._poll(wait=True)
        if first is None:
            return None
        jobs: list[_Job] = []
        late: list[_Job] = []
        devices: set[int] = set()
        job: _Job | None = first
        size = 0
        while job is not None:
            if isinstance(job.work, Upload) and job.work.device in devices:
                late.append(job)
            else:
                jobs.append(job)
                size += job.size
                if isinstance(job.work, Upload):
                    devices.add(job.work.device)
            job = self._poll(wait=False) if size < _MOST_ROWS else None
        self._late.extendleft(reversed(late))
        return jobs

    def _poll(self, *, wait: bool) -> _Job | None:
        """The next job; None if nothing waits, or for good when the end was asked for."""
        if self._late:
            return self._late.popleft()
        try:
            job = self._jobs.get(block=wait and not self._ending)
        except queue.Empty:
            return None
        if job is _STOP:
            self._ending = True
            return self._poll(wait=False)
        return job

    def _commit(self, jobs: Sequence[_Job]) -> None:
        results: list[tuple[_Job, Any]] = []
        with self._database.transaction():
            uploads = [job for job in jobs if isinstance(job.work, Upload)]
            works = [job.work for job in uploads if isinstance(job.work, Upload)]
            stored = store_uploads(self._database, works, day=self._store.clock.day())
            results += zip(uploads, stored, strict=True)
            for job in jobs:
                if not isinstance(job.work, Upload):
                    results.append((job, _outcome(job.work, self._database)))
            self._note()
        for job, result in results:
            _answer(job.done, result)

    def _note(self) -> None:
        now = time.monotonic()
        if now - self._noted > _NOTE_SECONDS or not self._noted:
            note_time(self._database, self._store.clock)
            self._noted = now

    def _fail(self, jobs: Sequence[_Job], error: Exception) -> None:
        if not isinstance(error, StoreUnavailable):
            _LOG.error("a commit failed", exc_info=error)
            error = StoreUnavailable("the store failed; nothing was counted, send it again later.")
        elif self.failing is None:
            _LOG.error("%s", error)
        self.failing = str(error)
        for job in jobs:
            if not job.done.done():
                _answer(job.done, error)


def _outcome(action: Action, database: Database) -> Any:
    """What an action returns, or its refusal, which leaves the others of the commit alone."""
    try:
        return action(database)
    except StoreUnavailable:
        raise
    except ValueError as refusal:
        return refusal


def _answer(done: Future[Any], result: Any) -> None:
    if not done.set_running_or_notify_cancel():
        return  # nobody waits any more; what was committed stays
    if isinstance(result, BaseException):
        done.set_exception(result)
    else:
        done.set_result(result)
