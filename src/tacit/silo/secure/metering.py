"""What each step sends and receives at one owner, and the mail between owners."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tacit.errors import TacitError
from tacit.silo.secure.faults import PeerFault

_LINK_LINE = re.compile(
    r"Link details: total send bytes (\d+), recv bytes (\d+), "
    r"send actions (\d+), recv actions (\d+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTraffic:
    """What one step sent and received at this owner: bytes and messages."""

    step: str
    bytes_sent: int
    bytes_received: int
    messages_sent: int
    messages_received: int


class Mailbox(Protocol):
    """How shares and announcements travel between owners, in order for each pair."""

    def send(self, to: int, header: dict[str, Any], payload: bytes) -> int:
        """Send to one owner; returns the bytes that go on the wire."""
        ...

    def receive(self, sender: int) -> tuple[dict[str, Any], bytes]:
        """Wait for the next message of one owner."""
        ...


class StepMeter:
    """Counts the mail of one step, and appends it to the traffic of the session at the end."""

    def __init__(self, mailbox: Mailbox, traffic: list[StepTraffic], step: str) -> None:
        self._mailbox = mailbox
        self._traffic = traffic
        self._step = step
        self._sent = self._received = self._sends = self._receives = 0

    def send(self, to: int, header: dict[str, Any], payload: bytes) -> None:
        """Send to one owner."""
        self._sent += self._mailbox.send(to, header, payload)
        self._sends += 1

    def receive(
        self, sender: int, *, kind: str, number: int, name: str
    ) -> tuple[dict[str, Any], bytes]:
        """Wait for the next message of one owner, which must be the one that the program expects.

        All owners make the same calls in the same order; anything else is a broken program.
        """
        header, payload = self._mailbox.receive(sender)
        expected = {"kind": kind, "number": number, "name": name}
        got = {key: header.get(key) for key in expected}
        if got != expected:
            raise PeerFault(sender, f"runs a different program: expected {expected}, got {got}")
        self._received += len(payload)
        self._receives += 1
        return header, payload

    def __enter__(self) -> StepMeter:
        return self

    def __exit__(self, *_: object) -> None:
        self._traffic.append(
            StepTraffic(
                step=self._step,
                bytes_sent=self._sent,
                bytes_received=self._received,
                messages_sent=self._sends,
                messages_received=self._receives,
            )
        )


class EngineLog:
    """SPU's own log: the only source of the bytes and messages of a compiled program."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def traffic_of(self, step: str) -> StepTraffic:
        """What the last run sent and received."""
        with self._path.open() as file:
            file.seek(self._read)
            new = file.read()
            self._read = file.tell()
        counts = [tuple(map(int, found)) for found in _LINK_LINE.findall(new)]
        if len(counts) != 1:
            raise TacitError(f"the engine's log has {len(counts)} traffic lines for '{step}'.")
        return step_traffic(step, counts[0])


def step_traffic(step: str, counts: tuple[int, ...]) -> StepTraffic:
    """From bytes sent and received, messages sent and received."""
    sent, received, sends, receives = counts
    return StepTraffic(
        step=step,
        bytes_sent=sent,
        bytes_received=received,
        messages_sent=sends,
        messages_received=receives,
    )
