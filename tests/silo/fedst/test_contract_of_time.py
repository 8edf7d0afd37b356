"""The time contract on real processes: the search ends at the batch boundary nearest to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from silo_parties import environment, plan_of
from tacit.silo.fedst.settings import Settings
from tacit.silo.party.localhost import run_federation

CONTRACT = 1.5
N_CANDIDATES = 800  # one per batch; each takes several message rounds, in all much more than 1.5 s


@pytest.mark.slow
def test_the_search_ends_within_one_batch_of_the_contract(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No chance is involved: the bounds hold for the batches that this run had, fast or slow."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    asked, inputs = plan_of("unused", 3)
    settings = Settings(
        n_candidates=N_CANDIDATES,
        n_shapelets=2,
        lengths=(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
        batch_size=1,
        time_contract=CONTRACT,
        classifier="forest",
        n_trees=1,
        depth=1,
    )
    plan = replace(asked, program="fedst", params=settings.to_params(), counts=(40, 5, 6))
    rng = np.random.default_rng(0)
    many = replace(inputs[0], X=rng.normal(size=(40, 1, 12)), y=np.arange(40) % 2)
    result = run_federation(plan, [many, *inputs[1:]])

    ends = np.array(result.info["batch_ends"])
    assert len(ends) == result.info["n_examined"] < N_CANDIDATES
    durations = np.diff(ends, prepend=0.0)
    assert ends[-1] - CONTRACT <= durations[-1]
    assert CONTRACT - ends[-1] <= durations.mean()
    announced = [o for o in result.receipts[2].opened if o.what == "end of the search"]
    assert len(announced) == len(ends)
    assert [o.what for o in result.receipts[0].opened][-1] == "forest leaf labels"
