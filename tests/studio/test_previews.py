"""What the data page says of a dropped table is what the importer then does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tacit.studio.previews import preview_of


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = ["who,kind," + ",".join(f"t{n}" for n in range(30))]
    lines += [
        f"p{n % 5},{'ab'[n % 2]}," + ",".join(f"{v:.3f}" for v in rng.normal(size=30))
        for n in range(40)
    ]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines))
    return path


def roles(path: Path, **said: str) -> dict[str, str]:
    found = preview_of(path, said)
    assert found is not None
    return {column.name: column.role for column in found.columns}


def test_what_is_unclear_is_said_and_settled_by_a_click(table: Path) -> None:
    first = preview_of(table, {})
    assert first is not None
    assert "nothing says which is the label" in first.trouble
    assert {"who", "kind"} <= {column.name for column in first.columns}
    settled = preview_of(table, {"label": "kind", "subject": "who"})
    assert settled is not None
    assert settled.trouble == ""
    assert dict(settled.summary)["2 classes"] == "a (20), b (20)"
    assert "5 people" in dict(settled.summary)
    assert dict(settled.summary)["1 channel"] == "of 30 samples"


def test_roles_follow_what_is_said(table: Path) -> None:
    assert roles(table, label="kind", subject="who") == {
        "who": "person", "kind": "label", "'t0' to 't29' (30 columns)": "samples",
    }  # fmt: skip
    assert roles(table, label="kind", ignore="who")["who"] == "left out"


def test_only_tables_are_shown_before_the_import(tmp_path: Path) -> None:
    (tmp_path / "x.edf").write_bytes(b"0")
    assert preview_of(tmp_path / "x.edf", {}) is None
    (tmp_path / "empty.csv").write_text("")
    found = preview_of(tmp_path / "empty.csv", {})
    assert found is not None
    assert "is empty" in found.trouble
