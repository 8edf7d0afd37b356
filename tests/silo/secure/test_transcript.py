"""What a participant sees does not depend on P0's candidates: equal sizes, equal counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from silo_problems import owners, plan_for
from tacit.silo.party.localhost import run_federation
from tacit.silo.plan import Plan
from tacit.silo.secure.session import LocalInputs

pytestmark = pytest.mark.slow
SIDES = ("bytes_sent", "bytes_received", "messages_sent", "messages_received")


# Steps of ours: mail between the parties, and the protocols over replicated shares.
MAIL = ("share ", "code ", "reveal ", "announce ", "barrier")
KERNELS = (
    "distances",
    "sorted_low_bits",
    "f_quality",
    "top_indices",
    "join_",
    "select_rows",
    "standardise",
    "ridge",
)
OURS = (*MAIL, *KERNELS)


def _transcripts(inputs: list[LocalInputs], plan: Plan) -> list[tuple[Any, ...]]:
    """Step by step what each party sent and received, or all of them together.

    Together in the engine's own steps: for some operations it draws by public randomness, anew in
    every run, which party plays which part, so that even two runs on the same data differ in who
    sends how much. All together always send the same.
    """
    result = run_federation(plan, inputs)
    seen = []
    for steps in zip(*(receipt.traffic for receipt in result.receipts), strict=True):
        (name,) = {step["step"] for step in steps}
        counts = [tuple(step[side] for side in SIDES) for step in steps]
        together = tuple(sum(column) for column in zip(*counts, strict=True))
        seen.append((name, counts if name.startswith(OURS) else together))
    return seen


@pytest.mark.parametrize("quality", ["f", "ig"])
def test_the_transcript_depends_on_shapes_and_not_on_candidates(quality: str) -> None:
    inputs = owners(9, 7, 8)
    classifier = "ridge" if quality == "f" else "logistic"
    plan = plan_for(inputs, quality=quality, classifier=classifier, n_steps=3)
    first = _transcripts(inputs, plan)
    names = [name for name, _ in first]
    trained = "ridge" if quality == "f" else "train_logistic"
    assert {"distances", "top_indices", trained, "share candidates"} <= set(names)
    assert ("sorted_low_bits" in names) == (quality == "ig")
    distances = dict(first)["distances"]
    assert all(sent > 1000 and received > 1000 for sent, received, _, _ in distances)

    other = LocalInputs(X=np.flip(inputs[0].X, axis=2) ** 3, y=inputs[0].y, private={"seed": 7})
    assert not np.allclose(other.X[:3], inputs[0].X[:3])
    assert _transcripts([other, *inputs[1:]], plan) == first

    if quality == "f":  # the twin: another length is seen, so the comparison above can fail
        longer = replace(plan, params={**plan.params, "lengths": [6, 9]})
        assert _transcripts(inputs, longer) != first
