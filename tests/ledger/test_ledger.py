"""The ledger: exact sums, budgets that hold, a chain that shows every change."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BudgetExceeded, LedgerError, TacitError
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.ledger import Ledger


def cost(epsilon: float, delta: float = 0.0) -> DpGuarantee:
    return DpGuarantee(epsilon=epsilon, delta=delta, model="local", unit="series")


def test_ten_times_a_tenth_is_one_and_the_eleventh_is_refused(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=1.0) as ledger:
        for _ in range(10):
            ledger.debit(subject="a", guarantee=cost(0.1), purpose="test")
        assert ledger.spent("a").epsilon == 1.0
        assert ledger.remaining("a").epsilon == 0.0
        with pytest.raises(BudgetExceeded, match="nothing was released"):
            ledger.debit(subject="a", guarantee=cost(0.1), purpose="test")
        assert ledger.spent("a").epsilon == 1.0
        assert ledger.debit(subject="b", guarantee=cost(0.5), purpose="test") == 12
        assert ledger.spent().epsilon == 1.5
        assert ledger.remaining().epsilon == math.inf
        assert ledger.verify()


def test_a_batch_is_debited_whole_or_not_at_all(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db", budget_epsilon=1.0) as ledger:
        with pytest.raises(BudgetExceeded):
            ledger.debit_many(["a", "b", "c"], guarantee=cost(0.4), purpose="test")
        assert ledger.spent().epsilon == 0.0
        assert len(ledger.entries()) == 1
        ids = ledger.debit_many(["a", "b"], guarantee=cost(0.4), purpose="test")
        assert ids == [2, 3]


@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_must_be_finite_and_positive(tmp_path: Path, budget: float) -> None:
    with pytest.raises(TacitError, match="budget_epsilon"):
        Ledger.open(tmp_path / "l.db", budget_epsilon=budget)


def test_what_has_no_epsilon_cannot_be_debited(tmp_path: Path) -> None:
    with (
        Ledger.open(tmp_path / "l.db") as ledger,
        pytest.raises(LedgerError, match="Unprotected"),
    ):
        ledger.debit(subject="a", guarantee=Unprotected(reason="x"), purpose="p")  # type: ignore[arg-type]


def test_amounts_are_exact_decimals_that_round_up(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db") as ledger:
        for epsilon in (0.1, 0.2, 1e-30):
            ledger.debit(subject="a", guarantee=cost(epsilon, 1e-9), purpose="test")
        entry = ledger.entries("a")[-1]
        assert entry.subject_epsilon == "0.3" + "0" * 28 + "1"
        assert ledger.spent("a").epsilon == math.nextafter(0.3, 1.0)
        assert ledger.spent("a").delta == 3e-9


@pytest.mark.seconds
@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1e-12, 50.0), min_size=1, max_size=20))
def test_spent_is_never_below_the_true_sum(epsilons: list[float]) -> None:
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "l.db") as ledger:
        for epsilon in epsilons:
            ledger.debit(subject="a", guarantee=cost(epsilon), purpose="test")
        written = sum(Fraction(repr(epsilon)) for epsilon in epsilons)
        spent = ledger.spent("a").epsilon
        assert Fraction(repr(spent)) >= written
        assert Fraction(repr(math.nextafter(spent, 0.0))) < written


@pytest.mark.parametrize("which", ["epsilon", "delta", "subject_epsilon", "subject_delta"])
def test_every_budget_holds(tmp_path: Path, which: str) -> None:
    budgets: dict[str, Any] = {
        "epsilon": {"budget_epsilon": 2.0},
        "delta": {"budget_delta": 2e-6},
        "subject_epsilon": {"per_subject_epsilon": 2.0},
        "subject_delta": {"per_subject_delta": 2e-6},
    }[which]
    with Ledger.open(tmp_path / "l.db", **budgets) as ledger:
        for _ in range(2):
            ledger.debit(subject="a", guarantee=cost(1.0, 1e-6), purpose="test")
        for refused in ("a", "b")[: 1 if "subject" in which else 2]:
            with pytest.raises(BudgetExceeded):
                ledger.debit(subject=refused, guarantee=cost(1.0, 1e-6), purpose="test")
        assert len(ledger.entries()) == 3


@pytest.mark.parametrize("value", [-1.0, 0.0, math.nan])
def test_a_delta_budget_that_is_none_is_told_what_a_delta_is(tmp_path: Path, value: float) -> None:
    for name in ("budget_delta", "per_subject_delta"):
        budgets: dict[str, Any] = {name: value}
        with pytest.raises(TacitError, match=name) as refused:
            Ledger.open(tmp_path / "l.db", **budgets)
        assert "privacy budget" not in str(refused.value)


def test_a_subjects_delta_of_one_or_more_promises_nothing_and_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TacitError, match="per_subject_delta must lie strictly between 0 and 1"):
        Ledger.open(tmp_path / "l.db", per_subject_delta=5.0)
    assert list(tmp_path.iterdir()) == []
    with Ledger.open(tmp_path / "l.db", budget_delta=5.0) as ledger:  # over many subjects it may
        with pytest.raises(TacitError, match="per_subject_delta"):
            ledger.change_budgets(reason="more", per_subject_delta=1.0)
        assert ledger.budgets()["budget_delta"] == 5.0


def test_budgets_are_fixed_unless_a_change_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    Ledger.open(path, per_subject_epsilon=1.0).close()
    with pytest.raises(LedgerError, match=r"per_subject_epsilon = 1\.0, not 2"):
        Ledger.open(path, per_subject_epsilon=2.0)
    with Ledger.open(path, per_subject_epsilon=1.0) as ledger:
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        with pytest.raises(BudgetExceeded):
            ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        with pytest.raises(LedgerError, match="reason"):
            ledger.change_budgets(reason=" ", per_subject_epsilon=2.0)
        ledger.change_budgets(reason="second study", per_subject_epsilon=2.0)
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        assert [entry.kind for entry in ledger.entries()] == ["genesis", "debit", "budget", "debit"]
        assert ledger.verify()
    Ledger.open(path, per_subject_epsilon=2.0).close()


def test_amounts_of_different_units_are_not_added(tmp_path: Path) -> None:
    other = DpGuarantee(epsilon=1.0, model="local", unit="series", neighbours="add-remove")
    with Ledger.open(tmp_path / "l.db") as ledger:
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        with pytest.raises(LedgerError, match="cannot be added") as refused:
            ledger.debit(subject="a", guarantee=other, purpose="test")
        assert "another subject" not in str(refused.value)  # which would be a second budget
        ledger.debit(subject="b", guarantee=other, purpose="test")


def test_what_protects_a_whole_client_is_added_to_what_protects_its_series(tmp_path: Path) -> None:
    """One budget for data in a silo and in a fleet; the unit of the sum is the weaker one."""
    client = DpGuarantee(epsilon=1.0, model="local", unit="client")
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=4.0) as ledger:
        for guarantee in (cost(1.0), client, cost(1.0), client):
            ledger.debit(subject="a", guarantee=guarantee, purpose="test")
        with pytest.raises(BudgetExceeded):
            ledger.debit(subject="a", guarantee=client, purpose="test")
        assert ledger.verify()
        assert {entry.relation for entry in ledger.entries("a")} == {("series", "replace")}
        counted = [json.loads(entry.guarantee).get("counted_as") for entry in ledger.entries("a")]
        assert counted == [None, "series", None, "series"]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("client", "replace"), ("series", "replace")),
        (("series", "add-remove"), ("client", "add-remove")),
        (("series", "replace"), ("client", "add-remove")),
        (("symbol", "replace"), ("client", "replace")),
    ],
)
def test_nothing_else_is_added_across_units(
    tmp_path: Path, first: tuple[Any, Any], then: tuple[Any, Any]
) -> None:
    """A sum with a series in it says nothing about whole clients."""
    one, other = (
        DpGuarantee(epsilon=1.0, model="local", unit=unit, neighbours=neighbours)
        for unit, neighbours in (first, then)
    )
    with Ledger.open(tmp_path / "l.db") as ledger:
        ledger.debit(subject="a", guarantee=one, purpose="test")
        with pytest.raises(LedgerError, match="cannot be added"):
            ledger.debit(subject="a", guarantee=other, purpose="test")


@pytest.mark.parametrize("subject", ["", None, 7])
def test_a_subject_must_be_named(tmp_path: Path, subject: Any) -> None:
    with Ledger.open(tmp_path / "l.db") as ledger:
        with pytest.raises(LedgerError, match="subject"):
            ledger.debit(subject=subject, guarantee=cost(1.0), purpose="test")
        with pytest.raises(LedgerError, match="subject_kind"):
            ledger.debit(subject="a", guarantee=cost(1.0), purpose="t", subject_kind="cat")  # type: ignore[arg-type]
        with pytest.raises(LedgerError, match="subject"):
            ledger.debit_many([], guarantee=cost(1.0), purpose="t")


def test_what_was_debited_survives_closing(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with Ledger.open(path) as ledger:
        ledger.debit(subject="a 'quoted' \u00e9\u4e16", guarantee=cost(1.0), purpose="why\nnot")
    with Ledger.open(path, create=False) as again:
        assert again.spent("a 'quoted' \u00e9\u4e16").epsilon == 1.0
        assert again.verify()
        assert again.subjects().keys() == {"a 'quoted' \u00e9\u4e16"}


def test_the_file_is_for_its_owner_and_syncs_every_commit(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db") as ledger:
        assert ledger.path.stat().st_mode & 0o077 == 0
        with ledger._transaction("DEFERRED") as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


EDITS = {
    "amount": "UPDATE entries SET epsilon = '0.5' WHERE id = 3",
    "subject": "UPDATE entries SET subject = 'z' WHERE id = 3",
    "guarantee": "UPDATE entries SET guarantee = replace(guarantee, '1.0', '0.5') WHERE id = 3",
    "time": "UPDATE entries SET time = '2020-01-01' WHERE id = 3",
    "purpose": "UPDATE entries SET purpose = 'other' WHERE id = 4",
    "budget": "UPDATE entries SET guarantee = replace(guarantee, '9.0', '90.0') WHERE id = 1",
    "removed": "DELETE FROM entries WHERE id = 3",
    "first removed": "DELETE FROM entries WHERE id = 1",
    "last removed": "DELETE FROM entries WHERE id = 5",
    "last two removed": "DELETE FROM entries WHERE id >= 4",
    "all removed": "DELETE FROM entries",
    "head": "UPDATE head SET count = 4",
    "head removed": "DELETE FROM head",
    "swapped": "UPDATE entries SET id = CASE id WHEN 3 THEN 104 ELSE id END",
    "unreadable": "UPDATE entries SET total_epsilon = 'many' WHERE id = 5",
}


def _five_entries(path: Path) -> None:
    with Ledger.open(path, per_subject_epsilon=9.0) as ledger:
        for subject in "abca":
            ledger.debit(subject=subject, guarantee=cost(1.0), purpose="test")
        assert ledger.verify()


def _execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_and_removal_is_found(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    _execute(path, EDITS[edit])
    with Ledger.open(path, create=False) as ledger:
        found = ledger.verify()
    assert not found
    assert found.problem


@pytest.mark.parametrize(
    "edit", ["budget", "last removed", "all removed", "head", "head removed", "unreadable"]
)
def test_no_debit_on_a_ledger_that_was_visibly_altered(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    _execute(path, EDITS[edit])
    with (
        Ledger.open(path, create=False) as ledger,
        pytest.raises(LedgerError, match="nothing was released"),
    ):
        ledger.debit(subject="new", guarantee=cost(1.0), purpose="test")


def test_an_anchor_finds_a_history_that_was_rewritten_or_restored(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    with Ledger.open(path) as ledger:
        anchor = ledger.anchor()
        ledger.debit(subject="d", guarantee=cost(1.0), purpose="later")
        assert ledger.verify(anchor)
    for side in (path, path.with_name("l.db-wal"), path.with_name("l.db-shm")):
        side.unlink(missing_ok=True)
    _five_entries(path)  # somebody starts over with the same entries: alone, it looks intact
    with Ledger.open(path) as ledger:
        assert ledger.verify()
        assert not ledger.verify(anchor)
        assert "chain ends" in str(ledger.verify("9:" + "0" * 64).problem)


IN_ANOTHER_PROCESS = """
import sys
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger
with Ledger.open(sys.argv[1]) as ledger:
    print(ledger.spent("a").epsilon)
"""


DEBIT_OFTEN = """
    cost = DpGuarantee(epsilon=1.0, model="local", unit="series")
    for _ in range(25):
        ledger.debit(subject="a", guarantee=cost, purpose="test")
"""


def spent_elsewhere(path: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


@pytest.mark.seconds
def test_copying_the_file_does_not_lose_debits(tmp_path: Path) -> None:
    """Closing any descriptor drops a process's locks; then others may delete the log under it."""
    path = tmp_path / "l.db"
    with Ledger.open(path) as ledger:
        for expected in (1.0, 2.0):
            shutil.copy(path, tmp_path / "backup.db")
            spent_elsewhere(path)
            ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
            assert spent_elsewhere(path) == expected


@pytest.mark.seconds
def test_no_debit_is_lost_while_another_thread_opens_and_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with Ledger.open(path):
        done = threading.Event()

        def disturb() -> None:
            while not done.wait(0.001):
                path.read_bytes()

        def debit(subject: str) -> None:
            with Ledger.open(path) as ledger:
                for _ in range(25):
                    ledger.debit(subject=subject, guarantee=cost(1.0), purpose="test")

        disturber = threading.Thread(target=disturb)
        disturber.start()
        code = IN_ANOTHER_PROCESS.replace('print(ledger.spent("a").epsilon)', DEBIT_OFTEN)
        others = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(debit, "bc"))
        assert [other.wait(60) for other in others] == [0, 0]
        done.set()
        disturber.join()
        with Ledger.open(path) as ledger:
            assert ledger.spent().epsilon == 100.0
            assert ledger.verify()


@pytest.mark.seconds
def test_many_threads_may_create_one_ledger(tmp_path: Path) -> None:
    def create(path: Path) -> int:
        with Ledger.open(path, budget_epsilon=100.0) as ledger:
            return ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")

    for number in range(5):
        path = tmp_path / f"{number}.db"
        with ThreadPoolExecutor(32) as pool:
            ids = list(pool.map(create, [path] * 32))
        assert sorted(ids) == list(range(2, 34))
        assert spent_elsewhere(path) == 32.0
    assert {found.suffix for found in tmp_path.iterdir()} == {".db", ".lock"}


def test_a_ledger_stays_the_one_that_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        ledger = Ledger.open("l.db", per_subject_epsilon=1.0 if folder == "one" else None)
        if folder == "one":
            first = ledger
    first.debit(subject="a", guarantee=cost(1.0), purpose="test")
    assert spent_elsewhere(tmp_path / "one/l.db") == 1.0
    (tmp_path / "two/l.db").replace(tmp_path / "one/l.db")
    with pytest.raises(LedgerError, match="not the ledger that was opened"):
        first.debit(subject="a", guarantee=cost(1.0), purpose="test")


def test_a_trigger_that_undoes_debits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    _execute(
        path, "CREATE TRIGGER undo AFTER INSERT ON head BEGIN DELETE FROM entries WHERE id > 5; END"
    )
    with (
        Ledger.open(path) as ledger,
        pytest.raises(LedgerError, match="changed after it was created"),
    ):
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")


def test_deltas_that_add_up_to_one_are_refused_without_any_budget(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db") as ledger:
        ledger.debit(subject="a", guarantee=cost(1.0, delta=0.6), purpose="test")
        with pytest.raises(BudgetExceeded, match="promises nothing"):
            ledger.debit(subject="a", guarantee=cost(1.0, delta=0.4), purpose="test")
        ledger.debit(subject="b", guarantee=cost(1.0, delta=0.6), purpose="test")


def test_the_budget_of_a_new_ledger_is_given_to_an_empty_file_and_to_no_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "l.db"
    path.touch()
    for asked in (1.0, 2.0):
        with Ledger.open(path, new_per_subject_epsilon=asked) as ledger:
            assert ledger.budgets()["per_subject_epsilon"] == 1.0


def test_two_ledgers_with_equal_entries_have_different_chains(tmp_path: Path) -> None:
    for name in ("one.db", "two.db"):
        _five_entries(tmp_path / name)
    with Ledger.open(tmp_path / "one.db") as one, Ledger.open(tmp_path / "two.db") as two:
        assert one.anchor() != two.anchor()


def test_a_ledger_locked_too_long_refuses(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Ledger.open(path, create=False, timeout_seconds=0.2) as ledger:
        with pytest.raises(LedgerError, match=r"locked .* more than 0.2 s"):
            ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        assert ledger.spent("a").epsilon == 2.0
        other.execute("ROLLBACK")
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
    other.close()


def test_unreadable_foreign_and_misplaced_files_are_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    foreign.write_bytes(b"not a database" * 1000)
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger.open(foreign)
    other = tmp_path / "other.db"
    _execute(other, "CREATE TABLE t (x)")
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(other)
    with pytest.raises(LedgerError, match="cannot create"):
        Ledger.open(tmp_path / "no" / "such" / "folder.db")
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(tmp_path / "none.db", create=False)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    path.write_bytes(path.read_bytes()[:4096])
    with pytest.raises(LedgerError), Ledger.open(path, create=False) as ledger:
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")


def test_a_full_disk_refuses_and_keeps_what_was_there(tmp_path: Path) -> None:
    """A real limit on file size in a child: every write beyond it fails as on a full disk."""
    path = tmp_path / "l.db"
    _five_entries(path)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, resource.RLIM_INFINITY))
            with Ledger.open(path, create=False) as ledger:
                for number in range(1000):
                    ledger.debit(subject=str(number), guarantee=cost(1.0), purpose="x" * 2000)
        except LedgerError as error:
            code = 0 if "nothing was released" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Ledger.open(path, create=False) as ledger:
        assert ledger.verify()
        assert ledger.debit(subject="after", guarantee=cost(1.0), purpose="test") > 5


def test_threads_share_one_ledger(tmp_path: Path) -> None:
    with (
        Ledger.open(tmp_path / "l.db", budget_epsilon=5.0) as ledger,
        ThreadPoolExecutor(8) as pool,
    ):

        def attempt(number: int) -> bool:
            try:
                ledger.debit(subject=f"s{number % 3}", guarantee=cost(0.1), purpose="test")
            except BudgetExceeded:
                return False
            return True

        granted = sum(pool.map(attempt, range(100)))
        assert granted == 50
        assert ledger.spent().epsilon == 5.0
        assert ledger.verify()


def test_a_forked_child_opens_its_own_connection(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db") as ledger:
        ledger.debit(subject="parent", guarantee=cost(1.0), purpose="test")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                ledger.debit(subject="child", guarantee=cost(1.0), purpose="test")
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ledger.debit(subject="parent", guarantee=cost(1.0), purpose="test")
        assert ledger.spent().epsilon == 3.0
        assert ledger.verify()


@pytest.mark.seconds
def test_processes_never_overspend_a_shared_budget(tmp_path: Path) -> None:
    """Twelve processes want 20 debits each, from the creation of the ledger on; 50 fit."""
    children = []
    for number in range(12):
        child = os.fork()
        if child == 0:
            granted = 0
            try:
                with Ledger.open(tmp_path / "l.db", budget_epsilon=5.0) as ledger:
                    for _ in range(20):
                        ledger.debit(subject=str(number), guarantee=cost(0.1), purpose="test")
                        granted += 1
            except BudgetExceeded:
                os._exit(granted)
            finally:
                os._exit(granted if granted == 20 else 100)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sum(codes) == 50
    with Ledger.open(tmp_path / "l.db", create=False) as ledger:
        assert ledger.verify()
        assert ledger.remaining().epsilon == 0.0


def _crash(*options: str) -> dict[str, Any]:
    script = Path(__file__).parents[2] / "benchmarks" / "ledger_crash.py"
    command = [sys.executable, str(script), "--window", "0.2", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.seconds
def test_processes_killed_at_random_moments_lose_nothing() -> None:
    found = _crash("--rounds", "8", "--processes", "40")
    assert found["processes"] == 320
    assert found["debited"] >= found["released"] > 0
    assert not found["failed"], found


@pytest.mark.seconds
def test_the_crash_check_notices_a_release_before_its_debit() -> None:
    assert _crash("--rounds", "3", "--processes", "40", "--release-first")["losses"] > 0


def test_an_amount_too_small_to_keep_exactly_still_counts(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=1.0) as ledger:
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        with pytest.raises(BudgetExceeded):
            ledger.debit(subject="a", guarantee=cost(1e-300), purpose="test")


def test_an_edit_with_its_own_hash_recomputed_breaks_the_link_after_it(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    with Ledger.open(path) as ledger:
        forged = replace(ledger.entries()[2], purpose="something harmless").sealed()
    _execute(
        path,
        f"UPDATE entries SET purpose = '{forged.purpose}', hash = '{forged.hash}' WHERE id = 3",
    )
    with Ledger.open(path, create=False) as ledger:
        found = ledger.verify()
    assert found.problem == "entry 4 does not follow from the entry before it"


def test_deleting_a_subjects_entries_is_noticed_by_the_next_debit(tmp_path: Path) -> None:
    """Without `verify`: 0.8 of 1 was spent, the rows deleted, and 0.9 more was granted once."""
    path = tmp_path / "l.db"
    with Ledger.open(path, per_subject_epsilon=1.0) as ledger:
        for subject in "abab":
            ledger.debit(subject=subject, guarantee=cost(0.4), purpose="test")
        _execute(path, "DELETE FROM entries WHERE subject = 'a'")
        with pytest.raises(LedgerError, match="entries of 'a' were removed"):
            ledger.debit(subject="a", guarantee=cost(0.9), purpose="test")
        with pytest.raises(LedgerError, match="nothing was released"):
            ledger.spent("a")
        for listed in (ledger.subjects, ledger.entries, lambda: ledger.entries("a")):
            with pytest.raises(LedgerError, match="3 entries where 5 were"):
                listed()
        assert not ledger.verify()


HIDING_A = {
    "entries renamed": "UPDATE entries SET subject = 'z' WHERE subject = 'a'",
    "last entry deleted": "DELETE FROM entries WHERE id = 4",
    "account deleted": "DELETE FROM accounts WHERE account = 'a'",
    "account renamed": "UPDATE accounts SET account = 'z' WHERE account = 'a'",
    "account moved": "UPDATE accounts SET bucket = bucket + 1 WHERE account = 'a'",
    "account rewound": "UPDATE accounts SET last = 2, hash = (SELECT hash FROM entries"
    " WHERE id = 2) WHERE account = 'a'",
    "tree emptied": "DELETE FROM nodes",
    "accounts emptied": "DELETE FROM accounts",
    "seal deleted": "DELETE FROM seal",
    "root replaced": "UPDATE seal SET root = '" + "0" * 64 + "'",
}


@pytest.mark.parametrize("edit", HIDING_A)
def test_no_way_of_hiding_a_subject_gives_it_a_new_budget(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "l.db"
    with Ledger.open(path, per_subject_epsilon=1.0) as ledger:
        for subject in "abab":
            ledger.debit(subject=subject, guarantee=cost(0.4), purpose="test")
        _execute(path, HIDING_A[edit], "DELETE FROM entries WHERE subject = 'a' AND id <> 2")
        with pytest.raises(LedgerError, match="nothing was released"):
            ledger.debit(subject="a", guarantee=cost(0.1), purpose="test")
        assert not ledger.verify()


@pytest.mark.parametrize("edit", HIDING_A)
def test_verify_finds_every_edit_of_the_accounts(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "l.db"
    with Ledger.open(path, per_subject_epsilon=1.0) as ledger:
        for subject in "abab":
            ledger.debit(subject=subject, guarantee=cost(0.4), purpose="test")
        assert ledger.verify()
        _execute(path, HIDING_A[edit])
        assert not ledger.verify()


def test_deleting_a_lowered_budget_does_not_bring_the_old_one_back(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with Ledger.open(path, per_subject_epsilon=5.0) as ledger:
        ledger.change_budgets(reason="too generous", per_subject_epsilon=1.0)
        ledger.debit(subject="a", guarantee=cost(0.5), purpose="test")
        _execute(path, "DELETE FROM entries WHERE kind = 'budget'")
        with pytest.raises(LedgerError, match="nothing was released"):
            ledger.debit(subject="a", guarantee=cost(4.0), purpose="test")


SPELLINGS = ["Ann", "Ann ", "ann", " ANN", "A\u006e\u006e", "\uff21nn", "An\u200bn", "Ann\n"]
# Seen to be budgets of their own at 037c947: what leaves no mark is not always called a format.
SPELLINGS += [f"An{unseen}n" for unseen in "\ufe0f\u034f\u1160\u3164\uffa0\u180b\u2800\U000e0100"]


def test_one_person_has_one_budget_however_the_name_is_spelled(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=1.0) as ledger:
        ledger.debit(subject="Ann", guarantee=cost(0.9), purpose="test")
        for spelling in SPELLINGS:
            with pytest.raises(BudgetExceeded):
                ledger.debit(subject=spelling, guarantee=cost(0.9), purpose="test")
            assert ledger.spent(spelling).epsilon == 0.9
            assert len(ledger.entries(spelling)) == 1
        ledger.debit(subject="ann", guarantee=cost(0.1), purpose="test")
        assert ledger.subjects().keys() == {"Ann"}  # as it was first written
        ledger.debit(subject="Anna", guarantee=cost(0.9), purpose="test")
        ledger.debit(subject="\u00c4nn", guarantee=cost(0.9), purpose="test")
        for apart in ("A\u0308nn", "A\u200b\u0308nn", "a\u034f\u0308nn"):
            assert ledger.spent(apart).epsilon == 0.9
        ledger.debit(subject="stra\u00dfe 7", guarantee=cost(0.5), purpose="test")
        ledger.debit(subject="STRASSE  7", guarantee=cost(0.5), purpose="test")
        assert ledger.remaining("strasse 7").epsilon == 0.0
        assert ledger.verify()


@pytest.mark.parametrize("subject", [" ", "\t\n", "\u200b", "\u00ad \u200d", "\u3164\ufe0f"])
def test_a_name_of_nothing_visible_is_refused(tmp_path: Path, subject: str) -> None:
    with Ledger.open(tmp_path / "l.db") as ledger, pytest.raises(LedgerError, match="not empty"):
        ledger.debit(subject=subject, guarantee=cost(1.0), purpose="test")


def _copy_of(path: Path, name: str) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(shutil.copy(path, path.with_name(name)))


def test_a_restored_copy_is_refused_where_there_is_an_anchor(tmp_path: Path) -> None:
    path, anchor = tmp_path / "l.db", tmp_path / "elsewhere" / "l.anchor"
    with Ledger.open(path, per_subject_epsilon=1.0, anchor=anchor) as ledger:
        ledger.debit(subject="a", guarantee=cost(0.5), purpose="test")
        old = _copy_of(path, "old.db")
        ledger.debit(subject="a", guarantee=cost(0.5), purpose="test")
        old.replace(path)
        with pytest.raises(LedgerError, match="restored an old copy"):
            ledger.debit(subject="a", guarantee=cost(0.5), purpose="test")
        assert "chain ends" in str(ledger.verify().problem)
    with pytest.raises(LedgerError, match="restored an old copy"):
        Ledger.open(path, create=False, anchor=anchor)
    with Ledger.open(path, create=False) as blind:  # nobody else can tell
        blind.debit(subject="a", guarantee=cost(0.5), purpose="test")


def test_a_ledger_may_be_ahead_of_its_anchor_and_catches_up(tmp_path: Path) -> None:
    path, anchor = tmp_path / "l.db", tmp_path / "l.anchor"
    Ledger.open(path, anchor=anchor).close()
    with Ledger.open(path) as ledger:  # as after a crash between the debit and its anchor
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
    assert anchor.read_text().startswith("1:")
    with Ledger.open(path, anchor=anchor) as ledger:
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        assert anchor.read_text().strip() == ledger.anchor()
        assert anchor.stat().st_mode & 0o077 == 0


def test_a_missing_or_unreadable_anchor_is_refused(tmp_path: Path) -> None:
    path, anchor = tmp_path / "l.db", tmp_path / "l.anchor"
    with Ledger.open(path, anchor=anchor) as ledger:
        ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        anchor.unlink()
        with pytest.raises(LedgerError, match="no anchor"):
            ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        anchor.write_text("nonsense")
        with pytest.raises(LedgerError, match="COUNT:HASH"):
            ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
    anchor.unlink()
    with pytest.raises(LedgerError, match="no anchor"):
        Ledger.open(path, anchor=anchor)


def _without_accounts(path: Path) -> None:
    """Turn a ledger into what the version before accounts wrote: the same entries and head."""
    _execute(
        path, "DROP TABLE accounts", "DROP TABLE nodes", "DROP TABLE seal",
        "PRAGMA user_version = 1",
    )  # fmt: skip


def test_a_ledger_from_before_accounts_is_checked_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    _without_accounts(path)
    with Ledger.open(path, create=False) as ledger:
        assert ledger.spent("a").epsilon == 2.0
        ledger.debit(subject="A", guarantee=cost(7.0), purpose="test")
        with pytest.raises(BudgetExceeded):
            ledger.debit(subject="a", guarantee=cost(1.0), purpose="test")
        assert ledger.verify()


def test_an_earlier_ledger_that_was_altered_or_counts_one_subject_twice_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "l.db"
    _five_entries(path)
    _without_accounts(path)
    _execute(path, "DELETE FROM entries WHERE subject = 'b'")
    with pytest.raises(LedgerError, match="is not intact: entry 3 is missing"):
        Ledger.open(path, create=False)
    other = tmp_path / "other.db"
    _five_entries(other)
    _without_accounts(other)
    _execute(other, "UPDATE entries SET subject = 'B ' WHERE id = 4")
    with pytest.raises(LedgerError, match="'b' and 'B ' apart"):
        Ledger.open(other, create=False)


def test_tiny_amounts_are_not_lost(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=3e-300) as ledger:
        for _ in range(3):
            ledger.debit(subject="a", guarantee=cost(1e-300), purpose="test")
        with pytest.raises(BudgetExceeded):
            ledger.debit(subject="a", guarantee=cost(1e-300), purpose="test")


@pytest.mark.seconds
def test_many_subjects_share_a_tree_that_verifies(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with Ledger.open(path, per_subject_epsilon=2.0) as ledger:
        ledger.debit_many([f"s{n}" for n in range(6000)], guarantee=cost(1.0), purpose="test")
        ledger.debit_many([f"S{n}" for n in range(0, 6000, 7)], guarantee=cost(1.0), purpose="t")
        assert ledger.verify()
        assert ledger.spent("s7").epsilon == 2.0
        _execute(path, "DELETE FROM entries WHERE subject = 's4'")
        ledger.debit(subject="s5", guarantee=cost(1.0), purpose="test")
        with pytest.raises(LedgerError, match="'s4' were removed"):
            ledger.debit(subject="s4", guarantee=cost(1.0), purpose="test")
