"""Raw archives by name: each recipe knows one archive's own layout and the usual way to cut it."""

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


def recipes() -> dict[str, Recipe]:
    """All recipes by the name that --format takes."""
    from tacit.data.importers.archives import (
        hhar,
        paderborn,
        ptb_xl,
        sleep_edf,
        uci_har,
        wisdm,
    )

    found = (module.RECIPE for module in (uci_har, wisdm, hhar, sleep_edf, paderborn, ptb_xl))
    return {recipe.name: recipe for recipe in found}
