"""What a user may say about a source; whatever is left out is guessed or asked for."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from tacit.errors import TacitError, check_positive

_UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, in samples or in seconds."""

    amount: float
    in_seconds: bool

    def __str__(self) -> str:
        return f"{self.amount:g}s" if self.in_seconds else f"{self.amount:g}"

    def samples(self, rate: float | None, *, name: str) -> int:
        """How many samples this is; seconds need a rate."""
        if not self.in_seconds:
            return int(self.amount)
        if rate is None:
            raise TacitError(
                f"{name} {self} is in seconds and nothing says how many samples a second has; "
                "pass --source-rate HZ, or give samples."
            )
        count = round(self.amount * rate)
        if count < 1:
            raise TacitError(f"{name} {self} is less than one sample at {rate:g} Hz; lengthen it.")
        return count


def parse_span(text: str | None, *, name: str) -> Span | None:
    """Read "256" (samples), "30s", "500ms", "2min" or "1h"."""
    if text is None:
        return None
    match = _SPAN.fullmatch(text)
    amount = float(match.group(1)) if match else 0.0
    unit = match.group(2).lower() if match else ""
    if amount <= 0 or (unit and unit not in _UNITS) or (not unit and amount != int(amount)):
        raise TacitError(
            f"{name} must be a number of samples or of seconds, got {text!r}; "
            "write for example 256, 30s or 500ms."
        )
    return Span(amount * _UNITS[unit], True) if unit else Span(amount, False)


def parse_classes(text: str | None) -> dict[str, str]:
    """Read "W,N1" or "Sleep stage W=W,Sleep stage 1=N1": the labels to keep and their new names."""
    pairs = [part.split("=", 1) for part in (text or "").split(",") if part.strip()]
    return {pair[0].strip(): pair[-1].strip() for pair in pairs}


def parse_codes(text: str | None) -> tuple[float, ...]:
    """Read "-9999" or "-9999,32767": the numbers that stand for missing values."""
    try:
        codes = tuple(float(part) for part in (text or "").split(",") if part.strip())
    except ValueError as error:
        raise TacitError(
            f"--missing-code must be numbers with commas between them, got {text!r}."
        ) from error
    if not all(map(math.isfinite, codes)):
        raise TacitError(f"--missing-code must be finite, got {text!r}; nan is missing anyway.")
    return codes


def parse_names(text: str | None) -> tuple[str, ...]:
    """Read a list of names with commas between them."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Everything that `tacit data import` can be told.

    `label` and `subject` are a column of a table, an array of a .mat, .h5 or .npz file, or a word
    that applies to files: folder, file, patient, annotations, none, or a regular expression with
    one group that is matched against the path.
    """

    format: str | None = None
    window: Span | None = None
    stride: Span | None = None
    rate: float | None = None
    source_rate: float | None = None
    channels: tuple[str, ...] = ()
    label: str | None = None
    subject: str | None = None
    series: str | None = None
    time: str | None = None
    time_unit: Literal["s", "ms", "us", "ns", "min", "h"] | None = None
    form: Literal["wide", "long"] | None = None
    ignore: tuple[str, ...] = ()
    array: str | None = None
    axes: tuple[str, ...] = ()
    classes: dict[str, str] = field(default_factory=dict)
    cut: Literal["labels", "grid"] = "labels"
    window_label: Literal["majority", "pure"] = "majority"
    points: Literal["onset", "centre", "until-next"] | None = None
    missing: Literal["drop", "interpolate"] = "drop"
    max_gap: Span | None = None
    missing_codes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("rate", "source_rate"):
            value = getattr(self, name)
            if value is not None:
                check_positive(value, name=f"--{name.replace('_', '-')}", advice="give it in Hz")
        if self.stride is not None and self.window is None:
            raise TacitError("--stride says how far apart windows begin; pass --window too.")
        if self.max_gap is not None and self.missing == "drop":
            raise TacitError("--max-gap limits what is filled; pass --missing interpolate too.")

    @property
    def unlabelled(self) -> bool:
        """Whether the series are to be imported without labels."""
        return self.label == "none"


def same_rate(first: float | None, second: float | None) -> bool:
    """Whether two rates are the same but for rounding in a header."""
    if first is None or second is None:
        return first is second
    return math.isclose(first, second, rel_tol=1e-6)
