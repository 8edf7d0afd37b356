"""How fast and how tight the shuffle accounting is: seconds, and ratios to two other routes.

One JSON line per case: the numerical bound, the closed form over it (where its condition holds),
composition over many rounds over the plain sum of the same rounds, and seconds of this process.

    python benchmarks/accounting.py
"""

from __future__ import annotations

import json
import sys
import time

from tacit.accounting import (
    closed_form_epsilon,
    closed_form_limit,
    compose_shuffled,
    shuffle_epsilon,
)

DELTA = 1e-10
LIMIT_SECONDS = 2.0


def main() -> int:
    slowest = 0.0
    for n in (2, 10, 100, 10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9):
        for local_epsilon in (0.1, 1.0, 4.0, 8.0):
            line = one_case(local_epsilon, n)
            slowest = max(slowest, line["seconds"])
            print(json.dumps(line))
    print(json.dumps({"slowest_seconds": slowest, "limit_seconds": LIMIT_SECONDS}))
    return 0 if slowest < LIMIT_SECONDS else 1


def one_case(local_epsilon: float, n: int) -> dict[str, float]:
    start = time.process_time()
    bound = shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=DELTA).central_epsilon
    seconds = time.process_time() - start
    line = {"local_epsilon": local_epsilon, "n": n, "central_epsilon": bound, "seconds": seconds}
    if local_epsilon <= closed_form_limit(n=n, delta=DELTA):
        closed = closed_form_epsilon(local_epsilon=local_epsilon, n=n, delta=DELTA)
        line["closed_form_ratio"] = closed.central_epsilon / bound
    start = time.process_time()
    hundred = compose_shuffled([(local_epsilon, n)] * 100, delta=DELTA)
    line["compose_seconds"] = time.process_time() - start
    line["sum_over_composed_100"] = 100 * bound / hundred
    return line


if __name__ == "__main__":
    sys.exit(main())
