"""What Table II of DP-TimeFL has for single data sets; readable without PyTorch."""

from __future__ import annotations

# The batch size with 100 clients; all other fleets have that of `PublishedConfig`.
BATCH_SIZES = {"WISDM": 30, "HHAR": 30, "SleepEDF": 34}
_LISTED = 100


def batch_size_of(data: str, *, n_clients: int) -> int | None:
    """The batch size that Table II gives this data set by name, None where it gives none."""
    return BATCH_SIZES.get(data) if n_clients == _LISTED else None
