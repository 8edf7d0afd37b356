"""How a verdict on a claim is worded; docs/results.md states the same rules before its tables."""

from __future__ import annotations

import re

from tacit.arena.results.tables import WITHIN

Row = tuple[str, str, str, str, str]  # paper, claim, verdict, figure, command
NOTHING = ("not tested here", "no records")
MOST = 0.5  # "most of the gain" is more than half of it
ERRORS = 2.0  # standard errors that a gain must lie above 0 to have its sign
_PRESET = re.compile(r" ?\((?:preset )?(paper|tuned)(?: preset)?\)")


def against(ours: float, theirs: float) -> str:
    """Within .02 of the paper's number is reproduced."""
    if ours > theirs + WITHIN:
        return "exceeded"
    return "reproduced" if ours >= theirs - WITHIN else "not reached"


def so_far(verdict: str, have: int, need: int, *, of: str = "sets") -> str:
    """The verdict, marked where records are missing that the whole comparison needs."""
    if have >= need:
        return verdict
    return f"{verdict} so far ({incomplete(have, need, of=of)})"


def so_far_in_runs(verdict: str, *, sets: tuple[int, int], runs: tuple[int, int]) -> str:
    """The same, by sets while any is missing, then by runs: one set, budget and seed each."""
    return so_far(verdict, *sets) if sets[0] < sets[1] else so_far(verdict, *runs, of="runs")


def incomplete(have: int, need: int, *, of: str = "sets") -> str:
    """What stands where the records do not allow a verdict."""
    return f"incomplete: {have} of {need} {of}"


def in_short(rows: list[Row]) -> list[tuple[str, str, str]]:
    """One line for each claim: the verdicts on both presets in one cell."""
    found: dict[tuple[str, str], list[str]] = {}
    for paper, claim, verdict, _, _ in rows:
        preset = _PRESET.search(claim)
        told = f"{verdict} ({preset[1]})" if preset else verdict
        found.setdefault((paper, _PRESET.sub("", claim)), []).append(told)
    return [(*key, "; ".join(told)) for key, told in found.items()]
