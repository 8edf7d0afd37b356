"""One page with the paper's Figs. 2-6 from the fleet's records, and who can be linked.

    python benchmarks/fleet_pictures.py [--out fleet.html]

Draws what `fleet_published.py` and `fleet_sound.py` recorded; trains nothing. Fig. 5 is about
Sleep-EDF and MFD, which are not available here.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tacit.report.fleet_charts import write_benchmark_page


def rows_of(path: Path) -> list[dict[str, Any]]:
    """One dictionary per line of a record, none if there is no record."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--published", type=Path, default=Path("results/fleet_published.jsonl"))
    parser.add_argument("--sound", type=Path, default=Path("results/fleet_sound.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("fleet.html"))
    options = parser.parse_args()
    published, sound = rows_of(options.published), rows_of(options.sound)
    print(write_benchmark_page(options.out, published=published, sound=sound))


if __name__ == "__main__":
    main()
