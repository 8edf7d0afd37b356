"""What a recipe for a raw archive is: how to recognise it, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import Material

Made = tuple[Material, ImportOptions]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to recognise an archive by its files, and how to read it.

    `read` also returns the options with the archive's usual window, rate and channels wherever
    the user said nothing.
    """

    name: str
    recognises: Callable[[Sequence[Path]], bool]
    read: Callable[[Sequence[Path], ImportOptions], Made]
