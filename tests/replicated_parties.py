"""Three parties over replicated shares in one process, for tests of the protocols on them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit.silo.secure.replicated import Pair, Replicated

FALSE_ALARM = 1e-9  # per check
Kernel = Callable[..., Pair]


class Wire:
    """The links of three parties in one process; keeps every message by receiver."""

    def __init__(self) -> None:
        self.boxes: dict[tuple[int, int], queue.SimpleQueue[bytes]] = {
            (i, j): queue.SimpleQueue() for i in range(3) for j in range(3)
        }
        self.seen: dict[int, list[bytes]] = {0: [], 1: [], 2: []}

    def of(self, rank: int) -> Any:
        wire = self

        class Link:
            def send_async(self, to: int, data: bytes) -> None:
                wire.boxes[rank, to].put(data)

            def recv(self, sender: int) -> bytes:
                data = wire.boxes[sender, rank].get(timeout=60)
                wire.seen[rank].append(data)
                return data

        return Link()


def shares_of(x: NDArray[Any], dtype: Any, rng: np.random.Generator) -> list[Pair]:
    x = np.asarray(x).astype(np.int64).astype(dtype)
    first, second = (
        rng.integers(0, np.iinfo(dtype).max, x.shape, dtype=dtype, endpoint=True) for _ in range(2)
    )
    parts = [first, second, x - first - second]
    return [(parts[i], parts[(i + 1) % 3]) for i in range(3)]


def together(kernel: Kernel, *inputs: list[Pair]) -> tuple[NDArray[Any], Wire, list[Replicated]]:
    """Run all parties; the opened result, what they saw, and their sides."""
    wire, results, sides = Wire(), {}, {}

    def party(rank: int) -> None:
        sides[rank] = Replicated(wire.of(rank), rank)
        results[rank] = kernel(sides[rank], *(own[rank] for own in inputs))

    threads = [threading.Thread(target=party, args=(r,), daemon=True) for r in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    for rank in range(3):  # what two parties hold of one share is the same
        assert np.array_equal(results[rank][1], results[(rank + 1) % 3][0])
    opened = results[0][0] + results[1][0] + results[2][0]
    return opened, wire, [sides[r] for r in range(3)]


def uniform_bytes(messages: list[bytes]) -> float:
    """p-value of a chi-square test that all bytes are uniform."""
    counts = np.bincount(np.frombuffer(b"".join(messages), dtype=np.uint8), minlength=256)
    return float(stats.chisquare(counts).pvalue)


def assert_uniform(wire: Wire) -> None:
    """Whatever the parties received, but for the keys, is uniform and nothing comes twice.

    A sound run is called uneven about once in 10^8 runs.
    """
    for messages in wire.seen.values():
        received = messages[1:]
        for message in received:
            if len(message) >= 4096:
                assert uniform_bytes([message]) > FALSE_ALARM / 1000
        assert uniform_bytes(received) > FALSE_ALARM
        long = [message for message in received if len(message) >= 16]
        assert len(set(long)) == len(long)


def one_share_only(x: NDArray[Any]) -> list[Pair]:
    """Shares of which all but one are zero: what is sent is then masked by streams alone."""
    nothing = np.zeros(x.shape, dtype=np.uint64)
    parts = [nothing, nothing, x.astype(np.uint64)]
    return [(parts[i], parts[(i + 1) % 3]) for i in range(3)]


def with_altered_byte(share: Any, place: int) -> Any:
    """The same share with one byte of its words changed, as a cheating party would send it."""
    from spu import libspu

    chunk, changed = libspu.ValueChunk(), libspu.ValueChunk()
    chunk.ParseFromString(share.share_chunks[0])
    content = bytearray(chunk.content)
    content[place] ^= 1
    changed.content, changed.total_bytes = bytes(content), len(content)
    changed.chunk_offset = 0
    made = libspu.Share()
    made.meta, made.share_chunks = share.meta, [changed.SerializeToString()]
    return made
