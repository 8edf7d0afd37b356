"""The demonstration on the real engines: every installed family is trained and tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import tacit
from tacit.guarantee import from_dict
from tacit.report.demo import FAMILIES, installed_families

# What a curious outsider gets of the page's day, by family.
STORY = {
    "local": "What 1000 releases of this day would say",
    "silo": "What another organisation holds of this day",
    "fleet": "What the sums have cost a device",
}


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
    assert len(page) < 1_500_000
    assert "<script" not in page
    assert "ranking" not in page
    assert page.rindex("tacit studio") > page.rindex("guarantee"), "the next step comes last"
    assert result["next"].startswith("tacit studio --workspace ")
    for name, words in STORY.items():
        assert (words in page) == (name in names)
    for name in names:
        assert from_dict(result["families"][name]["guarantee"]).sentence[:40] in page
