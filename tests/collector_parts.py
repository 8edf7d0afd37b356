"""Stores, devices and uploads that the collector's tests share."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path

from local_problems import model_of, trained
from tacit.local.collector.devices import enrol, find_device, make_codes
from tacit.local.collector.storage.clock import Clock
from tacit.local.collector.storage.store import Store, Upload
from tacit.local.model import LocalModel


def counting_model() -> LocalModel:
    """Two classes, k-ary randomised response: every share is identifiable."""
    return model_of(trained("label", 2.0, "krr"))


class SetClock(Clock):
    """A clock that a test moves: time that passes, and steps of the machine's clock."""

    def __init__(self, start: float = 1_790_000_000.0) -> None:
        self.wall, self.steady = start, 1000.0
        super().__init__(wall=lambda: self.wall, steady=lambda: self.steady)

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def is_set(self, seconds: float) -> None:
        self.wall += seconds


_OPEN: list[Store] = []


def open_store(address: Path | str, *, clock: Clock | None = None) -> Store:
    """A store that `close_stores` closes after the test."""
    _OPEN.append(Store.open(str(address), model=counting_model(), clock=clock))
    return _OPEN[-1]


def close_stores() -> None:
    while _OPEN:
        _OPEN.pop().close()


def enrolled(store: Store, *, group: str = "") -> int:
    """The number of a new device."""
    (code,) = make_codes(store, count=1, group=group)
    name = store.write(enrol(code, secrets.token_bytes(32), now=store.clock.now()))
    device = find_device(store, name)
    assert device is not None
    return device.number


def upload(
    device: int, windows: Sequence[str], symbols: Sequence[int], *, group: str = ""
) -> Upload:
    digests = [hashlib.blake2b(window.encode(), digest_size=16).digest() for window in windows]
    return Upload(device=device, group=group, windows=digests, symbols=symbols)
