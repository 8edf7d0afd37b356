"""What every training says of its test part: accuracy with an interval."""

from __future__ import annotations

from typing import Any


def accuracy_interval(right: int, n: int, *, level: float = 0.95) -> dict[str, float]:
    """Clopper and Pearson's interval of the accuracy on series like the test part's."""
    from tacit.audit.bounds import proportion_above, proportion_below

    tail = (1.0 - level) / 2.0
    return {
        "low": proportion_above(right, n, false_alarm=tail),
        "high": proportion_below(right, n, false_alarm=tail),
        "level": level,
    }


def accuracy_words(result: dict[str, Any]) -> str:
    """The accuracy of a result with its interval, as people read it."""
    interval = result["accuracy_interval"]
    return (
        f"{result['accuracy']:.3f} ({interval['low']:.3f} to {interval['high']:.3f} at "
        f"{interval['level']:.0%})"
    )
