"""Whether a plan can be computed at all, from what is public, before anything is shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.errors import TacitError
from tacit.silo.fedst.parameters import public_parameters
from tacit.silo.fedst.settings import settings_from
from tacit.silo.plan import Plan

# What an engine takes before any data (measured), the two words of a replicated share of each value
# and of its square, and those of each distance.
BASE_BYTES = 250 * 10**6
BYTES_PER_STEP = 32
BYTES_PER_DISTANCE = 16


def check_params(params: Mapping[str, Any]) -> None:
    """Refuse settings that no federation can run; they are known before the parties meet."""
    try:
        settings_from(params)
    except TypeError as error:
        raise TacitError(f"a setting of the plan has the wrong type: {error}.") from error


def check_plan(plan: Plan) -> None:
    """Refuse sizes that the shared arithmetic cannot hold; every party says the same."""
    public_parameters(
        settings_from(plan.params),
        counts=plan.counts,
        n_classes=len(plan.classes),
        series_length=plan.series_length,
    )


def memory_of(plan: Plan) -> int:
    """How many bytes an engine takes at least for this plan, whatever its blocks are."""
    n_series = sum(plan.counts)
    steps = n_series * plan.series_length * plan.n_channels
    distances = n_series * settings_from(plan.params).n_candidates
    return BASE_BYTES + BYTES_PER_STEP * steps + BYTES_PER_DISTANCE * distances
