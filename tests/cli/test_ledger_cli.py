"""`tacit ledger`: budgets, entries, verification and export from the command line."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from command import assert_refused, tacit
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def db(tmp_path: Path, capsys: Capture) -> Path:
    path = tmp_path / "spend.db"
    tacit(capsys, "ledger", "init", "--db", path, "--per-subject-epsilon", 4)
    guarantee = DpGuarantee(epsilon=1.5, delta=1e-7, model="local", unit="series")
    with Ledger.open(path) as ledger:
        ledger.debit(subject="a", guarantee=guarantee, purpose="demo")
        ledger.debit(subject="b", guarantee=guarantee, purpose="demo")
    return path


def test_show_gives_entries_spent_and_remaining(capsys: Capture, db: Path) -> None:
    found = tacit(capsys, "ledger", "show", "--db", db, "--json").json
    assert [entry["subject"] for entry in found["entries"]] == ["", "a", "b"]
    assert found["entries"][1]["guarantee"]["epsilon"] == 1.5
    assert found["spent"] == {"epsilon": 3.0, "delta": 2e-7}
    assert found["remaining"]["epsilon"] is None  # no budget for the whole store
    one = tacit(capsys, "ledger", "show", "--db", db, "--subject", "a", "--json").json
    assert (one["spent"]["epsilon"], one["remaining"]["epsilon"]) == (1.5, 2.5)
    shown = tacit(capsys, "ledger", "show", "--db", db).out
    assert "spent:     epsilon 3" in shown
    assert "by 2 subjects together, at most epsilon 1.5 by each of them" in shown


def test_show_rounds_what_is_spent_up_and_what_is_left_down(
    capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "spend.db"
    budgets = ("--budget-epsilon", 200, "--budget-delta", 1e-4)
    tacit(capsys, "ledger", "init", "--db", path, *budgets)
    spent = DpGuarantee(epsilon=100.0004, delta=1.0000004e-5, model="local", unit="series")
    with Ledger.open(path) as ledger:
        ledger.debit(subject="a", guarantee=spent, purpose="demo")
    shown = tacit(capsys, "ledger", "show", "--db", path).out
    assert "spent:     epsilon 100.01, delta 1.0001e-05\n" in shown
    assert "remaining: epsilon 99.999, delta 8.9999e-05\n" in shown


def test_verify_reports_an_edit_with_exit_code_1(capsys: Capture, db: Path) -> None:
    before = tacit(capsys, "ledger", "verify", "--db", db, "--json")
    assert before.code == 0
    assert before.json["intact"] is True
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE entries SET epsilon = '0.1' WHERE id = 2")
    connection.close()
    after = tacit(capsys, "ledger", "verify", "--db", db, "--json")
    assert after.code == 1
    assert after.json["intact"] is False
    assert after.json["problem"] == "entry 2 was altered"


def test_verify_against_an_anchor(capsys: Capture, db: Path) -> None:
    anchor = tacit(capsys, "ledger", "verify", "--db", db, "--json").json["anchor"]
    same = tacit(capsys, "ledger", "verify", "--db", db, "--anchor", anchor, "--json")
    assert same.json["intact"] is True
    other = "3:" + "f" * 64
    assert tacit(capsys, "ledger", "verify", "--db", db, "--anchor", other, "--json").code == 1
    assert_refused(tacit(capsys, "ledger", "verify", "--db", db, "--anchor", "x"), "COUNT:HASH")


def test_budgets_change_only_on_the_record(capsys: Capture, db: Path) -> None:
    assert_refused(tacit(capsys, "ledger", "init", "--db", db), "exists")
    changed = tacit(
        capsys, "ledger", "budget", "--db", db, "--per-subject-epsilon", 6, "--reason", "study 2",
        "--json",
    ).json  # fmt: skip
    assert changed["budgets"]["per_subject_epsilon"] == 6.0
    shown = tacit(capsys, "ledger", "show", "--db", db, "--json").json
    assert (shown["entries"][-1]["kind"], shown["entries"][-1]["purpose"]) == ("budget", "study 2")
    assert tacit(capsys, "ledger", "verify", "--db", db, "--json").json["intact"] is True


def test_export_as_csv_and_json(capsys: Capture, db: Path, tmp_path: Path) -> None:
    for ending in ("csv", "json"):
        out = tmp_path / f"spend.{ending}"
        found = tacit(capsys, "ledger", "export", "--db", db, "--out", out, "--json").json
        assert found["entries"] == 3
    with (tmp_path / "spend.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    entries = json.loads((tmp_path / "spend.json").read_text())
    assert [row["hash"] for row in rows] == [entry["hash"] for entry in entries]
    assert sorted(path.name for path in tmp_path.iterdir() if "export" in path.name) == []
    bad = tacit(capsys, "ledger", "export", "--db", db, "--out", tmp_path / "x.xml")
    assert_refused(bad, ".csv or .json")
    bad = tacit(capsys, "ledger", "export", "--db", db, "--out", tmp_path / "no" / "spend.csv")
    assert_refused(bad, "cannot write")
    assert not (tmp_path / "no").exists()
    assert (tmp_path / "spend.csv").stat().st_mode & 0o077 == 0  # it names subjects


def test_a_missing_or_foreign_file_is_refused(capsys: Capture, tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    for command in ("show", "verify"):
        assert_refused(tacit(capsys, "ledger", command, "--db", missing), "no ledger")
    assert not missing.exists()
    foreign = tmp_path / "foreign.db"
    foreign.write_text("this is not a database, but it is long enough to look like one" * 100)
    assert_refused(tacit(capsys, "ledger", "show", "--db", foreign), "cannot be used")


@pytest.mark.seconds
def test_an_anchor_file_shows_a_restored_copy(capsys: Capture, db: Path, tmp_path: Path) -> None:
    out = tmp_path / "other disk" / "spend.anchor"
    wrote = tacit(capsys, "ledger", "anchor", "--db", db, "--out", out, "--json").json
    assert out.read_text().strip() == wrote["anchor"]
    assert tacit(capsys, "ledger", "show", "--db", db, "--anchor", out).code == 0
    assert tacit(capsys, "ledger", "verify", "--db", db, "--anchor", out, "--json").json["intact"]
    changed = ("--per-subject-epsilon", 9, "--reason", "more", "--anchor", out)
    assert tacit(capsys, "ledger", "budget", "--db", db, *changed).code == 0
    assert out.read_text().startswith("4:")
    other = tmp_path / "fresh.db"
    tacit(capsys, "ledger", "init", "--db", other)
    assert_refused(tacit(capsys, "ledger", "show", "--db", other, "--anchor", out), "restored")
    again = tacit(capsys, "ledger", "verify", "--db", other, "--anchor", out, "--json")
    assert (again.code, again.json["intact"]) == (1, False)
    refused = tacit(capsys, "ledger", "anchor", "--db", other, "--out", out)
    assert_refused(refused, "no anchor was written")
    missing = tacit(capsys, "ledger", "verify", "--db", db, "--anchor", tmp_path / "none")
    assert_refused(missing, "no anchor")


def test_a_ledger_with_a_colon_in_its_name_is_verified_with_its_configured_anchor(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The anchor's file has it too, and is no COUNT:HASH."""
    monkeypatch.setenv("TACIT_ANCHORS", str(tmp_path / "anchors"))
    path = tmp_path / "study:1.db"
    assert tacit(capsys, "ledger", "init", "--db", path, "--per-subject-epsilon", 4).code == 0
    assert tacit(capsys, "ledger", "verify", "--db", path, "--json").json["intact"]


@pytest.mark.seconds
def test_the_configured_anchor_shows_a_restored_copy(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever command looks at it; without its anchor nothing is called intact."""
    (tmp_path / "anchors").mkdir()
    monkeypatch.setenv("TACIT_ANCHORS", str(tmp_path / "anchors"))
    path, old, out = tmp_path / "spend.db", tmp_path / "old.db", tmp_path / "out.csv"
    tacit(capsys, "ledger", "init", "--db", path, "--per-subject-epsilon", 4)
    shutil.copy(path, old)
    raised = ("--per-subject-epsilon", 9, "--reason", "more")
    assert tacit(capsys, "ledger", "budget", "--db", path, *raised).code == 0
    assert tacit(capsys, "ledger", "verify", "--db", path, "--json").json["intact"]
    assert tacit(capsys, "ledger", "export", "--db", path, "--out", out).code == 0
    shutil.copy(old, path)
    found = tacit(capsys, "ledger", "verify", "--db", path, "--json")
    assert (found.code, found.json["intact"]) == (1, False)
    for command in ("show", "export", "anchor"):
        given = () if command == "show" else ("--out", tmp_path / f"{command}.csv")
        refused = tacit(capsys, "ledger", command, "--db", path, *given)
        assert_refused(refused, "restored an old copy")
    next((tmp_path / "anchors").iterdir()).unlink()
    assert_refused(tacit(capsys, "ledger", "verify", "--db", path), "no anchor")


def test_init_begins_an_anchor(capsys: Capture, tmp_path: Path) -> None:
    path, anchor = tmp_path / "new.db", tmp_path / "new.anchor"
    made = tacit(capsys, "ledger", "init", "--db", path, "--anchor", anchor, "--json").json
    assert anchor.read_text().strip() == made["anchor"]


def test_without_a_total_budget_nothing_is_infinite(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    assert tacit(capsys, "ledger", "init", "--db", path, "--per-subject-epsilon", 4).code == 0
    shown = tacit(capsys, "ledger", "show", "--db", path).out
    assert "remaining: epsilon without limit, delta without limit" in shown
