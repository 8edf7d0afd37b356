"""How fast, and in how much memory, 10,000 sealed reports of 8 kB become a shuffled, opened batch.

    python benchmarks/fleet_shuffler.py [--reports 10000] [--bytes 8192] [--out FILE]

Prints one JSON line: seconds to take (signatures checked), to permute and write to disk, and to
open, the ratio against a plain copy of the same bytes measured in the same run, and the peak memory
per report at the full and at a tenth of the number of reports. Target: permute and open in 5 s,
and a constant memory per report.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from tacit.arena.record import commit
from tacit.fleet.deployment.batches.pools import PermutedPool
from tacit.fleet.deployment.batches.registry import Registry
from tacit.fleet.deployment.batches.signatures import digest_of, new_signing_key, sign
from tacit.fleet.deployment.seal import Opener, Sealer, new_key, sealed_size
from tacit.fleet.deployment.shuffler import Shuffler

RUN = "benchmark"
TARGET_SECONDS = 5.0


def filled_shuffler(public: bytes, folder: Path, *, n: int, size: int) -> tuple[Shuffler, float]:
    """A shuffler that has taken n reports, and the seconds it took to check and take them."""
    keys = {f"node-{i}": new_signing_key() for i in range(n)}
    shuffler = Shuffler(
        run=RUN,
        registry=Registry({name: public for name, (_, public) in keys.items()}),
        pool=PermutedPool(sealed_bytes=sealed_size(size)),
        n_min=2,
        round_seconds=3600.0,
        folder=folder,
    )
    shuffler.open_round(1)
    sealer = Sealer(public, run=RUN, report_bytes=size)
    taking = 0.0
    for name, (private, _) in keys.items():
        body = sealer.seal(os.urandom(size), round_number=1)
        signature = sign(
            private,
            run=RUN,
            round_number=1,
            node=name,
            analyser=digest_of(body),
            helper=digest_of(b""),
        )
        start = time.perf_counter()
        shuffler.accept(node=name, signature=signature, run=RUN, round_number=1, body=body)
        taking += time.perf_counter() - start
    return shuffler, taking


def measure(*, n: int, size: int) -> dict[str, float]:
    private, public = new_key()
    with tempfile.TemporaryDirectory() as folder:
        shuffler, taking = filled_shuffler(public, Path(folder), n=n, size=size)
        start = time.perf_counter()
        batch = shuffler.release()
        permuting = time.perf_counter() - start
    opener, step = Opener(private, run=RUN), sealed_size(size)
    start = time.perf_counter()
    opened = 0
    for place in range(0, len(batch.messages), step):
        opened += opener.open(batch.messages[place : place + step], round_number=1) is not None
    opening = time.perf_counter() - start
    assert opened == n
    start = time.perf_counter()
    pieces = [batch.messages[place : place + step] for place in range(0, n * step, step)]
    copied = b"".join(pieces)
    copying = time.perf_counter() - start
    assert len(copied) == n * step
    return {"take": taking, "permute": permuting, "unseal": opening, "copy": copying}


def peak_bytes_per_report(*, n: int, size: int) -> float:
    """Peak of the shuffler's own memory while it takes and permutes n reports."""
    _, public = new_key()
    tracemalloc.start()
    with tempfile.TemporaryDirectory() as folder:
        shuffler, _ = filled_shuffler(public, Path(folder), n=n, size=size)
        shuffler.release()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / n


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=8192)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    seconds = measure(n=asked.reports, size=asked.bytes)
    many = peak_bytes_per_report(n=asked.reports, size=asked.bytes)
    few = peak_bytes_per_report(n=max(asked.reports // 10, 10), size=asked.bytes)
    total = seconds["permute"] + seconds["unseal"]
    line = json.dumps(
        {
            "benchmark": "fleet_shuffler",
            "reports": asked.reports,
            "report_bytes": asked.bytes,
            "seconds": {name: round(value, 4) for name, value in seconds.items()},
            "unseal_and_permute_seconds": round(total, 3),
            "target_seconds": TARGET_SECONDS,
            "met": total < TARGET_SECONDS,
            "ratio_to_plain_copy": round(total / seconds["copy"], 1),
            "peak_bytes_per_report": round(many),
            "peak_bytes_per_report_at_a_tenth": round(few),
            "memory_ratio": round(many / few, 3),
            "commit": commit(),
            "python": sys.version.split()[0],
        }
    )
    print(line)
    if asked.out:
        with asked.out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    return 0 if total < TARGET_SECONDS else 1


if __name__ == "__main__":
    raise SystemExit(main())
