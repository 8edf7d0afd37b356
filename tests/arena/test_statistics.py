from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.arena import statistics as st
from tacit.errors import TacitError


def record(method: str, data: str, accuracy: float, **changes: Any) -> dict[str, Any]:
    task = {"method": method, "data": data, "options": {}, "epsilon": None, "seed": 0}
    return {"task": task, "accuracy": accuracy, "status": "done", "commit": "abc", **changes}


RECORDS = [
    record(method, f"d{i}", base + 0.01 * i)
    for method, base in (("good", 0.8), ("fair", 0.7), ("poor", 0.5))
    for i in range(8)
]


def test_seeds_are_averaged_and_incomplete_rows_left_out() -> None:
    more = [*RECORDS, record("good", "d0", 0.9), record("good", "lonely", 0.1)]
    table = st.grid(more)
    assert table.data == tuple(f"d{i}" for i in range(8))
    column = table.methods.index("good")
    assert table.accuracy[0, column] == pytest.approx(0.85)
    assert table.spread[0, column] == pytest.approx(0.05)


def test_ranks_wins_and_intervals() -> None:
    table = st.grid(RECORDS)
    assert dict(zip(table.methods, st.average_ranks(table), strict=True)) == {
        "good": 1.0, "fair": 2.0, "poor": 3.0,
    }  # fmt: skip
    assert st.wins(table).tolist() == [0, 8, 0]
    interval = st.bootstrap_means(table, rng=np.random.default_rng(0))
    means = table.accuracy.mean(axis=0)
    assert np.all(interval[:, 0] < means)
    assert np.all(means < interval[:, 1])


def test_wilcoxon_with_holm_against_known_values() -> None:
    """Eight pairs all of one sign: p = 2 / 2**8, doubled for two comparisons."""
    p = st.wilcoxon_holm(st.grid(RECORDS), reference="good")
    assert p == {"fair": pytest.approx(4 / 256), "poor": pytest.approx(4 / 256)}
    assert st.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == {
        "a": pytest.approx(0.03), "c": pytest.approx(0.06), "b": pytest.approx(0.06),
    }  # fmt: skip


def test_nemenyi_against_the_published_table() -> None:
    """Demsar (2006), Table 5a: q = 2.569 for four methods; CD = q sqrt(k (k + 1) / 6 N)."""
    four = st.Grid(
        data=tuple("abcdefghijklmn"),
        methods=tuple("wxyz"),
        accuracy=np.zeros((14, 4)),
        spread=np.zeros((14, 4)),
    )
    assert st.critical_difference(four) == pytest.approx(2.569 * np.sqrt(20 / 84), abs=2e-3)
    assert st.cliques([1.0, 1.5, 3.0, 3.2], 0.6) == [(0, 1), (2, 3)]


def test_uncommitted_and_failed_runs_are_not_ranked() -> None:
    mixed = [
        *RECORDS,
        record("good", "d0", 0.0, commit="abc-dirty"),
        record("good", "d0", 0.0, status="failed"),
        record("good", "d0", 0.0, commit="unknown"),
    ]
    assert len(st.ranked(mixed)) == len(RECORDS)


def test_nothing_to_compare_is_said() -> None:
    with pytest.raises(TacitError, match="no result"):
        st.grid([])
    with pytest.raises(TacitError, match="every method"):
        st.grid([record("a", "x", 0.1), record("b", "y", 0.2)])
    with pytest.raises(TacitError, match="among the methods"):
        st.wilcoxon_holm(st.grid(RECORDS), reference="best")
