"""What a participant sees does not depend on P0's candidates: equal sizes, equal counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from silo_parties import environment, plan_of
from tacit.silo.federation import run_federation
from tacit.silo.session import LocalInputs

pytestmark = pytest.mark.slow
SIDES = ("bytes_sent", "bytes_received", "messages_sent", "messages_received")


def _transcripts(inputs: list[LocalInputs], plan: Any, cache: Path) -> list[list[tuple[Any, ...]]]:
    result = run_federation(plan, inputs, cache=cache)
    return [
        [(step["step"], *(step[side] for side in SIDES)) for step in receipt.traffic]
        for receipt in result.receipts
    ]


def test_the_transcript_depends_on_shapes_and_not_on_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    plan, inputs = plan_of("distances_program", 3, k=3, length=5)
    first = _transcripts(inputs, plan, tmp_path)
    assert all(sum(step[1] for step in steps) > 0 for steps in first)

    other = LocalInputs(X=-3.0 * inputs[0].X + 1.0, y=inputs[0].y)
    assert not np.allclose(other.X[:3], inputs[0].X[:3])
    assert _transcripts([other, *inputs[1:]], plan, tmp_path) == first

    # The twin: another length is seen, so the comparison above can fail.
    longer, _ = plan_of("distances_program", 3, k=3, length=6)
    assert _transcripts(inputs, longer, tmp_path) != first
