"""The budget page: per purpose and subject, the chain verified, and what left of one subject."""

from __future__ import annotations

import html
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from collector_parts import counting_model
from studio_server import ended, running_studio
from tacit.errors import TacitError
from tacit.guarantee import DpGuarantee, from_dict
from tacit.ledger import Ledger
from tacit.ledger.anchors import Anchor, configured_anchor, write_anchor
from tacit.studio.budgets import by_purpose, by_subject, disclosure

COST = DpGuarantee(epsilon=0.1, model="local", unit="series")
N_LONG = 50_000
EVIL = "<script>alert(1)</script>"


def filled(path: Path) -> Path:
    with Ledger.open(path, per_subject_epsilon=0.5) as ledger:
        for subject, purpose in (
            ("ann", "label"),
            ("ann", "label"),
            ("ann", "place"),
            (EVIL, "label"),
        ):
            ledger.debit(subject=subject, subject_kind="series", guarantee=COST, purpose=purpose)
    return path


def test_sums_are_exact_per_purpose_and_subject(tmp_path: Path) -> None:
    with Ledger.open(filled(tmp_path / "l.db"), create=False) as ledger:
        amounts = ledger.amounts()
        assert by_purpose(amounts) == [("label", 3, 2, "0.2"), ("place", 1, 1, "0.1")]
        ann = by_subject(ledger, amounts, ledger.subjects())[0]
        assert (ann.subject, ann.purposes, ann.spent, ann.left) == (
            "ann", "label, place", "0.3", "0.2",
        )  # fmt: skip
        assert ann.share == pytest.approx(0.6)
        found = disclosure(ledger, "ann")
        assert [one["purpose"] for one in found.entries] == ["label", "label", "place"]
        assert (found.spent, found.left) == ("0.3", "0.2")
        assert [from_dict(one) for one in found.guarantees] == [COST]
        with pytest.raises(TacitError, match="no release of 'bob'"):
            disclosure(ledger, "bob")


def test_without_a_budget_there_is_no_limit(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "free.db") as ledger:
        ledger.debit(subject="ann", subject_kind="series", guarantee=COST, purpose="label")
        (ann,) = by_subject(ledger, ledger.amounts(), ledger.subjects())
        assert (ann.spent, ann.left, ann.share) == ("0.1", "no limit", None)
        assert disclosure(ledger, "ann").left == "no limit"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    (tmp_path / "ledgers").mkdir()
    (tmp_path / "models" / "italy").mkdir(parents=True)
    filled(tmp_path / "ledgers" / "device.db")
    with running_studio(tmp_path) as studio, studio.client() as opened:
        yield opened


@pytest.mark.seconds
@pytest.mark.xdist_group("studio")
def test_the_page_and_what_it_leads_to(client: httpx.Client, tmp_path: Path) -> None:
    page = client.get("/budget/device.db").text
    for words in (
        "No subject has spent more than epsilon 0.3 of 0.5",
        "intact",
        "label, place",
        "chain of 5 entries",
    ):
        assert words in page, words
    assert EVIL not in page
    told = client.get("/budget/device.db/disclosure", params={"subject": "ann"}).text
    assert "<b>3</b><span>releases" in told
    assert EVIL not in client.get("/budget/device.db/disclosure", params={"subject": EVIL}).text
    for _ in range(2):
        assert client.get("/budget/device.db/export").text.count("\n") == 6
    assert not list((tmp_path / "ledgers").glob("*.csv")), "reading leaves nothing behind"
    assert client.get("/budget/device.db/verified").json()["intact"]
    counting_model().save(tmp_path / "models" / "italy" / "model.tacit")
    assert 'data-post="/budget/device.db/document"' in client.get("/budget/device.db").text
    with closing(sqlite3.connect(tmp_path / "ledgers" / "device.db")) as database, database:
        database.execute("UPDATE entries SET epsilon='0' WHERE id=2")
    database.close()
    assert "broken" in client.get("/budget/device.db").text
    assert not client.get("/budget/device.db/verified").json()["intact"]


def test_a_restored_copy_is_not_shown_where_anchors_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "anchors").mkdir()
    (tmp_path / "ledgers").mkdir()
    path = tmp_path / "ledgers" / "device.db"
    filled(path)
    with Ledger.open(path, create=False) as ledger:
        count, _, digest = ledger.anchor().partition(":")
    monkeypatch.setenv("TACIT_ANCHORS", str(tmp_path / "anchors"))
    anchor = configured_anchor(path)
    assert anchor is not None
    write_anchor(anchor, Anchor(int(count), digest))
    with running_studio(tmp_path) as studio, studio.client() as client:
        assert (
            "No subject has spent more than epsilon 0.3 of 0.5"
            in client.get("/budget/device.db").text
        )
        write_anchor(anchor, Anchor(int(count) + 1, digest))
        for page in ("", "/disclosure?subject=ann"):
            shown = client.get(f"/budget/device.db{page}")
            assert "restored an old copy" in html.unescape(shown.text)


@pytest.mark.seconds
@pytest.mark.xdist_group("studio")
def test_a_disclosure_is_a_click_away(client: httpx.Client, tmp_path: Path) -> None:
    model = counting_model()
    model.save(tmp_path / "models" / "italy" / "model.tacit")
    with Ledger.open(tmp_path / "ledgers" / "device.db", create=False) as ledger:
        ledger.debit(subject="x", guarantee=COST, purpose=f"label release, model {model.identity}")
    job = client.post("/budget/device.db/document", json={"model": "italy"}).json()["job"]
    assert ended(client, job) == "done", client.get(f"/jobs/{job}").text
    assert "/pages/italy-disclosure" in client.get(f"/jobs/{job}").text
    written = client.get("/pages/italy-disclosure").text
    assert "Tacit" in written
    assert f'<a href="/jobs/{job}">Back' in written
    assert client.post("/budget/device.db/document", json={"model": "no"}).status_code == 422


@pytest.mark.slow
@pytest.mark.xdist_group("studio")
@pytest.mark.timeout(900)
def test_a_long_ledger_takes_no_memory(tmp_path: Path) -> None:
    """100,000 entries as objects took 700 MB and 14 s; sums and the last of each take little."""
    (tmp_path / "ledgers").mkdir()
    with Ledger.open(tmp_path / "ledgers" / "long.db") as ledger:
        ledger.debit_many([f"s{n}" for n in range(N_LONG)], guarantee=COST, purpose="label")
    with running_studio(tmp_path) as studio, studio.client() as opened:
        page = opened.get("/budget/long.db").text
        assert f"<b>{N_LONG:,}</b><span>subjects" in page
        assert "being recomputed" in page
        opened.get("/budget/long.db/export")
        kilobytes = studio.most_kilobytes()
        assert opened.get("/budget/long.db/verified").json()["entries"] == N_LONG + 1
    assert kilobytes < 300 * 1024
