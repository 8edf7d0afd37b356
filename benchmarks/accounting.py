"""How fast and how tight the shuffle accounting is: seconds, and ratios to other routes.

One JSON line per case: the numerical bound, the closed form over it (where its condition holds),
composition over many rounds over the plain sum of the same rounds, and seconds of this process.
For reports of a known kind, the privacy blanket and what clones of an arbitrary randomizer say.

    python benchmarks/accounting.py
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from tacit.accounting import (
    closed_form_epsilon,
    closed_form_limit,
    compose_shuffled,
    privunit_cap,
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
            for kind in ({"n_symbols": 8}, {"cap": privunit_cap(local_epsilon)}):
                known = known_case(local_epsilon, n, kind, general=line["central_epsilon"])
                slowest = max(slowest, known["seconds"])
                print(json.dumps(known))
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


def known_case(
    local_epsilon: float, n: int, kind: dict[str, Any], *, general: float
) -> dict[str, float]:
    start = time.process_time()
    bound = shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=DELTA, **kind).central_epsilon
    seconds = time.process_time() - start
    start = time.process_time()
    compose_shuffled([(local_epsilon, n)] * 100, delta=DELTA, **kind)
    return {
        "local_epsilon": local_epsilon,
        "n": n,
        **kind,
        "central_epsilon": bound,
        "seconds": seconds,
        "any_randomizer_ratio": general / bound,
        "compose_seconds": time.process_time() - start,
    }


if __name__ == "__main__":
    sys.exit(main())
