"""A fleet's life at full size: 30 light nodes and 3 of Flower, five rounds, real services over TLS.

    python benchmarks/fleet_life.py [--light 30] [--flower 3] [--out FILE]

A node joins by one-time codes in round 2, one is revoked in round 3 while the shuffler is
killed, in round 4 the analyser is killed and the shuffler's certificates are renewed under way, in
round 5 the SuperLink is killed and its server resumed. Ends with an error unless every node ends
by itself, every round is released with the reports that it must have, and what was spent is what
left. Prints one JSON line. `tests/fleet/deployment/test_life.py` tells the same with four nodes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fleet_story import fleet_story
from tacit.arena.record import commit, versions


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--light", type=int, default=30)
    parser.add_argument("--flower", type=int, default=3)
    parser.add_argument("--slow", type=float, default=900.0, help="seconds to wait for any step")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    origin = {"commit": commit(), "versions": versions()}  # of the code that begins to run
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        fleet_story(
            Path(folder) / "fleet", light=asked.light, flower=asked.flower, slow=asked.slow
        ) as story,
    ):
        found = story.tell()
    found["seconds"] = round(time.monotonic() - start, 1)
    line = json.dumps({**found, **origin}, sort_keys=True)
    print(line)
    if asked.out:
        with asked.out.open("a") as file:
            file.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
