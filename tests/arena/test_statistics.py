from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.arena import statistics as st
from tacit.arena.results.tables import Results
from tacit.errors import TacitError


def record(method: str, data: str, accuracy: float, **changes: Any) -> dict[str, Any]:
    task: dict[str, Any] = {
        "method": method,
        "data": data,
        "options": {},
        "epsilon": None,
        "seed": 0,
    }
    return {"task": task, "accuracy": accuracy, "status": "done", "commit": "abc", **changes}


FED = {"scope": "federated", "quality": "f", "classifier": "logistic", "engine": "twin"}
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


def test_the_decision_on_the_silo_states_the_gaps_of_the_record() -> None:
    """The table under 'Accuracy': means, 95 % intervals and p values, from 216 records."""
    root = Path(__file__).parents[2]
    records = Results(root / "results" / "current").suite("fedst-scopes")
    table = st.grid(records)
    fed = st.label_of({"method": "fedst", "options": FED})
    gaps = st.paired_gaps(table, reference=fed)
    page = root / "docs" / "decisions" / "2026-11-16-silo-accuracy.md"
    told = page.read_text(encoding="utf-8")
    for scope, quality, words in (
        ("federated", "ig", "| 0.8170 | -0.0040 (-0.0116 to +0.0036) | 0.74 |"),
        ("global", "f", "| 0.8121 | +0.0009 (-0.0051 to +0.0068) | 0.51 |"),
        ("local-search", "f", "| 0.8117 | +0.0013 (-0.0052 to +0.0078) | 0.31 |"),
        ("local-transform", "f", "| 0.7742 | +0.0388 (+0.0227 to +0.0548) | 4.2e-06 |"),
        ("local", "f", "| 0.7687 | +0.0443 (+0.0288 to +0.0597) | 1.3e-06 |"),
    ):
        name = st.label_of(
            {"method": "fedst", "options": {**FED, "scope": scope, "quality": quality}}
        )
        mean = table.accuracy[:, table.methods.index(name)].mean()
        gap = gaps[name]
        p_value = f"{gap.p_greater:.2f}" if gap.p_greater > 0.01 else f"{gap.p_greater:.1e}"
        assert words in told
        assert words == (
            f"| {mean:.4f} | {gap.mean:+.4f} ({gap.low:+.4f} to {gap.high:+.4f}) | {p_value} |"
        )


def test_gaps_against_known_values() -> None:
    """Three equal gaps have no spread; the one-sided Wilcoxon p of n pairs of one sign is 2**-n."""
    gaps = st.paired_gaps(st.grid(RECORDS), reference="good")
    assert gaps["fair"].mean == pytest.approx(0.1)
    assert gaps["fair"].low == pytest.approx(gaps["fair"].high)
    assert gaps["poor"].p_greater == pytest.approx(2.0**-8)
    spread = [record("a", f"d{i}", x) for i, x in enumerate((0.5, 0.6, 0.7))]
    spread += [record("b", f"d{i}", 0.5) for i in range(3)]
    gap = st.paired_gaps(st.grid(spread), reference="a")["b"]
    # t(0.975, 2) = 4.3027; the standard error of 0, .1, .2 is .1 / sqrt(3).
    assert gap.high - gap.mean == pytest.approx(4.3027 * 0.1 / np.sqrt(3), abs=1e-4)
    with pytest.raises(TacitError, match="among the methods"):
        st.paired_gaps(st.grid(RECORDS), reference="best")
    with pytest.raises(TacitError, match="at least two"):
        st.paired_gaps(st.grid([record("a", "x", 0.1), record("b", "x", 0.2)]), reference="a")
