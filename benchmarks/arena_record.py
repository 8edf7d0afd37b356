"""Run what results/arena lacks, most wanted first, until the time is over; then write the pages.

    python benchmarks/arena_record.py --work DIR [--minutes 60] [--workers 2]

Needs a clean checkout, so that every line names a commit; it works on a copy of results/arena in
DIR, because a growing file under results/ would make the checkout unclean. Parts are ended by the
clock with kill, which costs the tasks under way and nothing else: the next run resumes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tacit.arena.record import commit

RESULTS = Path("results/arena")
CHEAP = ("1-nn", "minirocket", "quant")
PLAN: tuple[tuple[str, ...], ...] = (
    ("softshape-table2", "--runs", "1", "--method", "softshape-published"),
    ("softshape-table2", "--runs", "1", *(x for m in CHEAP for x in ("--method", m))),
    ("softshape-table2", "--runs", "1", "--method", "tsf", "--method", "rocket"),
    ("softshape-table3", "--runs", "1", "--epsilon", "0.1"),
    ("fedst",),
    ("timefl", "--epsilon", "8"),
    ("frontier", "--runs", "1", *(x for m in ("ceiling", "majority", "minirocket")
                                  for x in ("--method", m))),
    ("frontier", "--runs", "1", "--method", "softshape-label", "--method", "timefl"),
    ("softshape-table2", "--runs", "1", "--method", "multirocket-hydra"),
    ("softshape-table2", "--runs", "1", "--method", "inceptiontime", "--epsilon", "none"),
    ("softshape-table2", "--runs", "1", "--method", "fcn", "--epsilon", "none"),
    ("softshape-table2", "--runs", "3", "--method", "softshape-published"),
    ("softshape-table2", "--runs", "3", *(x for m in CHEAP for x in ("--method", m))),
    ("softshape-table2", "--runs", "1", "--method", "arsenal"),
    ("softshape-table3", "--runs", "1"),
    ("softshape-table2", "--runs", "3", "--method", "tsf", "--method", "rocket"),
    ("timefl", "--epsilon", "100"),
    ("softshape-table3", "--runs", "3", "--epsilon", "0.1"),
    ("softshape-table2", "--runs", "1", "--method", "inceptiontime", "--method", "fcn"),
    ("frontier", "--runs", "1"),
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder outside the checkout")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if commit().endswith(("-dirty", "unknown")):
        raise SystemExit(f"the checkout is {commit()}; commit first, or use a fresh worktree.")
    take_over(RESULTS, options.work)
    end = time.monotonic() + 60.0 * options.minutes
    for suite, *choice in PLAN:
        left = end - time.monotonic()
        if left < 5.0:
            break
        print(f"== {suite} {' '.join(choice)} ({left / 60:.0f} min left)", flush=True)
        run_part(suite, choice, options.work / suite, workers=options.workers, seconds=left)
    take_over(options.work, RESULTS)
    for words in (("-m", "tacit", "arena", "report", RESULTS), ("benchmarks/results_page.py",)):
        subprocess.run([sys.executable, *map(str, words)], check=True)
    return 0


def run_part(suite: str, choice: list[str], out: Path, *, workers: int, seconds: float) -> None:
    """One `tacit arena run`, ended with its workers when the time is over."""
    words = [sys.executable, "-m", "tacit", "arena", "run", suite, "--out", str(out), "--resume"]
    process = subprocess.Popen([*words, "--workers", str(workers), *choice], start_new_session=True)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()


def take_over(source: Path, target: Path) -> None:
    """Copy every suite's lines; refuse where that would lose one, for lines are never edited."""
    for path in sorted(source.glob("*/results.jsonl")):
        other = target / path.parent.name / path.name
        new, old = path.read_bytes(), other.read_bytes() if other.exists() else b""
        if old.startswith(new):
            continue
        if not new.startswith(old):
            raise SystemExit(f"{path} and {other} have both grown; keep one of them.")
        other.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, other)


if __name__ == "__main__":
    raise SystemExit(main())
