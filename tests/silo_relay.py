"""A relay between two parties for tests, which cuts or holds up engines' connections when told."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_ENGINE = b"tacit-engine"  # the purpose of a connection stands in the clear in its first message


class Relay:
    """Passes bytes between a port of its own and a party's, in a thread."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._engines: set[socket.socket] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wish = threading.Event()
        self._held = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def cut_engines(self) -> None:
        """Close every connection of an engine, and nothing else."""
        self._wish.set()

    def hold_engines(self) -> None:
        """Take nothing more from an engine's connection, and leave it open."""
        self._held.set()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.is_set():
            if self._wish.is_set():
                for end in tuple(self._engines):
                    self._close(end)
            for key, _ in self._selector.select(timeout=0.05):
                assert isinstance(key.fileobj, socket.socket)
                if key.fileobj is self._listener:
                    self._accept()
                elif self._held.is_set() and key.fileobj in self._engines:
                    self._selector.unregister(key.fileobj)
                elif key.fileobj in self._pairs:
                    self._pass(key.fileobj)
        for end in (*self._pairs, self._listener):
            end.close()

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        try:
            far = socket.create_connection(self._target)
        except OSError:
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            self._pairs[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass(self, end: socket.socket) -> None:
        data = b""
        with suppress(OSError):
            data = end.recv(1 << 18)
        if not data:
            self._close(end)
            return
        if _ENGINE in data[:2000]:
            self._engines |= {end, self._pairs[end]}
        try:
            self._pairs[end].sendall(data)
        except OSError:
            self._close(end)

    def _close(self, end: socket.socket) -> None:
        if end in self._pairs:
            for one in (end, self._pairs[end]):
                del self._pairs[one]
                self._engines.discard(one)
                with suppress(KeyError):  # it was held up
                    self._selector.unregister(one)
                one.close()


@contextmanager
def relay(target: tuple[str, int]) -> Iterator[Relay]:
    made = Relay(target)
    try:
        yield made
    finally:
        made.close()
