"""The engine's mail to and from other owners, which its party carries as frames."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Mapping
from typing import Any

from tacit.errors import TacitError
from tacit.silo.party.links.frames import FrameSocket, Header


class EngineMailbox:
    """The engine's `Mailbox`: the party carries the frames to and from the other parties."""

    def __init__(self, frames: FrameSocket) -> None:
        self._frames = frames
        self._lock = threading.Lock()
        self._inbox: dict[int, queue.SimpleQueue[tuple[Header, bytes]]] = {}
        self.orders: queue.SimpleQueue[tuple[Header, bytes]] = queue.SimpleQueue()
        self.names: tuple[str, ...] = ()
        self.timeout: float | None = 600.0
        self._ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                header, payload = self._frames.recv()
                if header["t"] == "mail":
                    self._box(int(header["from"])).put((header["h"], payload))
                elif header["t"] == "order":
                    self.orders.put((header, payload))
        except (EOFError, OSError, TacitError):
            os._exit(3)  # the party is gone

    def _box(self, rank: int) -> queue.SimpleQueue[tuple[Header, bytes]]:
        with self._lock:
            return self._inbox.setdefault(rank, queue.SimpleQueue())

    def send(self, to: int, header: dict[str, Any], payload: bytes) -> int:
        """See `Mailbox.send`."""
        return self._frames.send({"t": "mail", "to": to, "h": header}, payload)

    def receive(self, sender: int) -> tuple[dict[str, Any], bytes]:
        """See `Mailbox.receive`."""
        try:
            return self._box(sender).get(timeout=self.timeout)
        except queue.Empty:
            raise RuntimeError(
                f"party '{self.names[sender]}' sent no share for {self.timeout:g} s"
            ) from None

    def progress(
        self, done: int, total: int, message: str, numbers: Mapping[str, float | None]
    ) -> None:
        """Tell the party where the program is."""
        step = {"done": done, "total": total, "message": message}
        self._frames.send({"t": "progress", **step, **numbers})

    def wait_for_end(self) -> None:
        """Stay: leaving now would lose what SPU still has to send; the party ends us."""
        self._ended.wait()
