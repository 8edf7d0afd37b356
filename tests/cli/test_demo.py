"""The demonstration on the real engines: every installed family is trained and tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import tacit
from tacit.guarantee import from_dict
from tacit.report.demo import FAMILIES, installed_families


@pytest.mark.slow
def test_the_demo_shows_every_installed_family(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)
    shown = tacit(capsys, "demo", "--out", tmp_path / "page", "--json")
    assert shown.code == 0, shown.err
    result = shown.json
    names = [family.name for family in installed_families()]
    assert list(result["families"]) == names
    assert result["not_installed"] == [f.name for f in FAMILIES if f.name not in names]
    for run in result["families"].values():
        from_dict(run["guarantee"])
        assert run["accuracy"] > result["floor"]
    page = Path(result["report"]).read_text()
    for name in names:
        assert from_dict(result["families"][name]["guarantee"]).sentence[:40] in page
