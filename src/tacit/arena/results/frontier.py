"""The records of the frontier: its releases are the ones that docs/results.md shows."""

from __future__ import annotations

from tacit.arena.results.records import Record, Results

_RELEASES = ("softshape-label", "softshape-place", "softshape-vector", "softshape-shapes")


def frontier_records(results: Results) -> list[Record]:
    """The suite's records; a release that `softshape-sound` has too is taken from there.

    Both measure the same thing, and that suite's accuracies are means over many draws.
    """
    frontier = results.suite("frontier")
    if not frontier:
        return []
    drawn = [
        {**record, "task": {**record["task"], "options": {}}}
        for record in results.suite("softshape-sound")
    ]
    known = {_cell(record) for record in drawn}
    own = [record for record in frontier if _cell(record) not in known]
    return [*own, *(r for r in drawn if r["task"]["method"] in _RELEASES)]


def _cell(record: Record) -> tuple[str, str, float]:
    task = record["task"]
    return task["method"], task["data"], task["epsilon"]
