"""Raw archives by name: each recipe knows one archive's own layout and the usual way to cut it."""

from __future__ import annotations

from tacit.data.importers.archives.recipe import Recipe


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
