"""Bodies are read up to a size and up to a time; slow senders are tested on the services too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tacit.system.serving import bodies
from tacit.system.serving.bodies import BodyTooLarge, BodyTooSlow, read_body


class Request:
    """As much of a request as is read."""

    def __init__(self, *parts: bytes, pause: float = 0.0, declared: str | None = None) -> None:
        self.headers = {} if declared is None else {"content-length": declared}
        self._parts, self._pause = parts, pause
        self.began = False

    async def stream(self) -> AsyncIterator[bytes]:
        self.began = True
        for part in self._parts:
            await asyncio.sleep(self._pause)
            yield part


def read(request: Any, size: int = 4, **limits: float) -> bytes:
    return asyncio.run(read_body(request, size, **limits))


def test_a_body_in_parts_is_put_together() -> None:
    assert read(Request(b"a", b"bc", b"", b"d", declared="4")) == b"abcd"
    assert read(Request()) == b""


def test_a_body_that_is_too_large_is_not_read() -> None:
    announced = Request(b"abcde", declared="5")
    with pytest.raises(BodyTooLarge, match="at most 4 bytes here, got 5"):
        read(announced)
    assert not announced.began
    with pytest.raises(BodyTooLarge, match="got more"):
        read(Request(b"abc", b"de", declared="not a number"))


def test_a_body_has_a_time_for_all_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part comes in time, and the whole does not."""
    drips = (b"a",) * 1000
    with pytest.raises(BodyTooSlow, match=r"more than 0\.2 s"):
        read(Request(*drips, pause=0.01), size=1000, seconds=0.2)
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    with pytest.raises(BodyTooSlow, match=r"more than 0\.2 s"):
        read(Request(*drips, pause=0.01), size=1000)


def test_a_sender_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "PAUSE_SECONDS", 0.05)
    with pytest.raises(BodyTooSlow, match="nothing came"):
        read(Request(b"a", pause=60.0), seconds=600.0)
