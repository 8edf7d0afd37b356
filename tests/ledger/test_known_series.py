"""Data that grow, shrink or change names are recognised, and a shared series makes no two one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import LedgerError
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger
from tacit.ledger.known_series import marks_of, person_of, remembered
from tacit.ledger.persons import ledger_path, open_person_ledger

ONE = DpGuarantee(epsilon=1.0, model="local", unit="client")


def series(first: int, last: int) -> NDArray[Any]:
    """Numbered series: the same number is the same series."""
    return np.stack([np.random.default_rng(i).normal(size=(1, 6)) for i in range(first, last)])


def whose(folder: Path, X: NDArray[Any], name: str = "") -> str:
    return person_of(folder, marks_of(X), name=name, otherwise="new")


def known(folder: Path, person: str, X: NDArray[Any]) -> None:
    """As callers do: the ledger is there before the list."""
    open_person_ledger(ledger_path(folder, person), budget_epsilon=8.0, budget_delta=None)
    with remembered(folder, person, marks_of(X)):
        pass  # a debit that fails: the list is ahead of the ledger then


def debited(folder: Path, person: str, X: NDArray[Any]) -> Path:
    """The list of series after a debit."""
    path = ledger_path(folder, person)
    with (
        open_person_ledger(path, budget_epsilon=8.0, budget_delta=None) as ledger,
        remembered(folder, person, marks_of(X)) as state,
    ):
        ledger.debit(
            subject=person,
            guarantee=ONE,
            purpose="a run",
            subject_kind="client",
            series_list=state,
        )
    return path.with_suffix(".series")


def test_nothing_is_known_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert whose(tmp_path / "none", series(0, 5)) == "new"


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 10), (0, 11), (0, 40), (3, 7), (5, 15)],
    ids=["same", "one more", "many more", "fewer", "half"],
)
def test_data_are_recognised_by_their_series(tmp_path: Path, first: int, last: int) -> None:
    known(tmp_path, "Ann", series(0, 10))
    assert whose(tmp_path, series(first, last)[::-1]) == "Ann"
    assert whose(tmp_path, series(first, last), name=" ann") == " ann"
    with pytest.raises(LedgerError, match="another name"):
        whose(tmp_path, series(first, last), name="Bert")


def test_data_of_which_most_changed_are_new_unless_they_are_named(tmp_path: Path) -> None:
    """A limit that the guarantees state: six of ten are new, and no name says whose they are."""
    known(tmp_path, "Ann", series(0, 10))
    assert whose(tmp_path, series(6, 16)) == "new"
    assert whose(tmp_path, series(6, 16), name="Ann") == "Ann"


def test_a_window_that_moves_is_followed(tmp_path: Path) -> None:
    """However far it has come: every step keeps most of the series of the step before."""
    for start in range(0, 60, 4):
        person = whose(tmp_path, series(start, start + 10)) if start else "Ann"
        assert person == "Ann"
        known(tmp_path, person, series(start, start + 10))
    assert len(list(tmp_path.glob("*.series"))) == 1


def test_one_series_in_common_or_a_constant_one_makes_no_two_persons_one(tmp_path: Path) -> None:
    known(tmp_path, "Ann", series(0, 10))
    assert whose(tmp_path, series(9, 19)) == "new"
    flat = np.zeros((10, 1, 6))
    known(tmp_path, "Bert", np.concatenate([series(20, 25), flat]))
    assert whose(tmp_path, np.concatenate([series(30, 35), flat])) == "new"
    assert not marks_of(flat)
    assert whose(tmp_path, flat) == "new"


@pytest.mark.parametrize(
    "exported",
    [
        lambda X: X.astype(np.float32),
        lambda X: np.nextafter(X, np.inf),
        lambda X: X * 1000.0,
        lambda X: -5.0 + X / 3.0,
        lambda X: (X - X.mean(axis=2, keepdims=True)) / X.std(axis=2, keepdims=True),
        lambda X: X * 1e-300,
    ],
    ids=["float32", "last bit", "unit", "offset", "z-scored", "tiny"],
)
def test_another_export_of_the_same_recording_is_recognised(
    tmp_path: Path, exported: Callable[[NDArray[Any]], NDArray[Any]]
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2, 120))
    known(tmp_path, "Ann", X)
    assert whose(tmp_path, exported(X)) == "Ann"
    with pytest.raises(LedgerError, match="another name"):
        whose(tmp_path, exported(X), name="Bert")
    assert whose(tmp_path, exported(rng.normal(size=X.shape))) == "new"


def test_short_series_are_compared_by_value_alone(tmp_path: Path) -> None:
    """Two steps z-scored are always the same two numbers."""
    known(tmp_path, "Ann", np.array([[[0.0, 1.0]], [[1.0, 5.0]]]))
    assert whose(tmp_path, np.array([[[0.0, 2.0]], [[1.0, 6.0]]])) == "new"


def test_a_list_that_is_gone_is_noticed_once_something_was_debited(tmp_path: Path) -> None:
    path = ledger_path(tmp_path, "Ann")
    with closing(open_person_ledger(path, budget_epsilon=8.0, budget_delta=None)) as ledger:
        assert whose(tmp_path, series(0, 10)) == "new"  # opened, and nothing spent
        for X in (np.zeros((2, 1, 6)), series(0, 10)):  # a list of no series is a list
            known(tmp_path, "Ann", X)
            assert path.with_suffix(".series").exists()
        ledger.debit(subject="Ann", guarantee=ONE, purpose="a run", subject_kind="client")
        assert whose(tmp_path, series(0, 10)) == "Ann"
    path.with_suffix(".series").unlink()
    for name in ("", "Ann", "Bert"):
        with pytest.raises(LedgerError, match="is gone"):
            whose(tmp_path, series(0, 10), name=name)


def test_a_ledger_that_is_gone_is_no_new_budget(tmp_path: Path) -> None:
    """Its list still knows the series, and would have opened a fresh ledger for them."""
    known(tmp_path, "Ann", series(0, 10))
    path = ledger_path(tmp_path, "Ann")
    path.unlink()
    for name in ("", "Ann", "Bert"):
        with pytest.raises(LedgerError, match=r"ledger .* is gone"):
            whose(tmp_path, series(0, 10), name=name)
    with pytest.raises(LedgerError, match=r"ledger .* is gone"):
        open_person_ledger(path, budget_epsilon=8.0, budget_delta=None)
    assert not path.exists()


def _first_half(lines: list[str]) -> list[str]:
    return lines[: len(lines) // 2]


@pytest.mark.parametrize(
    "edited",
    [
        _first_half,
        lambda lines: lines[:1],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [lines[0], "0" * 32, *lines[1:]],
        lambda lines: ['"Bert"', *lines[1:]],
    ],
    ids=["half", "all", "one", "order", "added before", "name"],
)
def test_an_edited_list_is_refused(
    tmp_path: Path, edited: Callable[[list[str]], list[str]]
) -> None:
    """Without its hashes the series would be new, with a budget of their own."""
    path = debited(tmp_path, "Ann", series(0, 10))
    path.write_text("\n".join(edited(path.read_text().split("\n"))))
    for name in ("", "Ann", "Bert"):
        with pytest.raises(LedgerError, match="edited"):
            whose(tmp_path, series(0, 10), name=name)
    with pytest.raises(LedgerError, match="edited"):
        debited(tmp_path, "Ann", series(0, 10))
    with pytest.raises(LedgerError, match="edited"):
        whose(tmp_path, series(20, 30), name="Bert")


def test_a_list_from_before_a_debit_is_refused(tmp_path: Path) -> None:
    path = debited(tmp_path, "Ann", series(0, 10))
    before = path.read_bytes()
    debited(tmp_path, "Ann", series(5, 15))
    path.write_bytes(before)
    with pytest.raises(LedgerError, match="old copy"):
        whose(tmp_path, series(5, 15))


def test_a_list_may_be_ahead_of_its_ledger(tmp_path: Path) -> None:
    """A process died between list and debit, or the budget was exceeded."""
    debited(tmp_path, "Ann", series(0, 10))
    known(tmp_path, "Ann", series(5, 15))
    assert whose(tmp_path, series(10, 15)) == "Ann"
    debited(tmp_path, " ANN", series(5, 20))
    assert whose(tmp_path, series(15, 20)) == "Ann"
    assert len(list(tmp_path.glob("*.series"))) == 1


def test_lists_from_before_debits_recorded_them_go_on(tmp_path: Path) -> None:
    known(tmp_path, "Ann", series(0, 10))
    with closing(Ledger.open(ledger_path(tmp_path, "Ann"), create=False)) as ledger:
        ledger.debit(subject="Ann", guarantee=ONE, purpose="a run", subject_kind="client")
        assert whose(tmp_path, series(0, 10)) == "Ann"
        debited(tmp_path, "Ann", series(0, 12))
        assert ledger.verify()
        assert whose(tmp_path, series(0, 12)) == "Ann"


def test_a_list_that_grows_while_it_is_looked_at_was_not_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on the same machine debits between the look at the list and that at its ledger."""
    debited(tmp_path, "Ann", series(0, 10))
    really, others = Ledger.last_debit, [series(0, 12)]

    def debited_meanwhile(ledger: Ledger, subject: str) -> Any:
        if others:
            debited(tmp_path, "Ann", others.pop())
        return really(ledger, subject)

    monkeypatch.setattr(Ledger, "last_debit", debited_meanwhile)
    assert whose(tmp_path, series(0, 10)) == "Ann"
    assert not others


def test_debits_at_once_leave_a_list_that_fits(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: debited(tmp_path, "Ann", series(0, 10 + i)), range(6)))
    assert whose(tmp_path, series(0, 10)) == "Ann"


def test_a_debit_that_knows_no_list_does_not_set_it_free(tmp_path: Path) -> None:
    """As of `tacit release --ledger`, under the same subject."""
    path = debited(tmp_path, "Ann", series(0, 10))
    with closing(Ledger.open(path.with_suffix(".db"), create=False)) as ledger:
        ledger.debit(subject="Ann", guarantee=ONE, purpose="other", subject_kind="client")
        assert ledger.verify()
    assert whose(tmp_path, series(0, 10)) == "Ann"
    path.write_text(path.read_text().split("\n")[0])
    with pytest.raises(LedgerError, match="edited"):
        whose(tmp_path, series(0, 10))


@pytest.mark.parametrize("died", ["created", "opened"])
def test_who_dies_while_creating_a_ledger_may_begin_again(tmp_path: Path, died: str) -> None:
    path = ledger_path(tmp_path, "Ann")
    path.touch(mode=0o600)
    if died == "opened":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    assert whose(tmp_path, series(20, 30), name="Bert") == "Bert"
    debited(tmp_path, "Bert", series(20, 30))
    assert whose(tmp_path, series(0, 10), name="Ann") == "Ann"
    debited(tmp_path, "Ann", series(0, 10))
    with closing(Ledger.open(path, create=False)) as ledger:
        assert ledger.budgets()["budget_epsilon"] == 8.0
        assert ledger.spent().epsilon == 1.0


def test_a_ledger_that_was_emptied_is_no_new_budget(tmp_path: Path) -> None:
    listed = debited(tmp_path, "Ann", series(0, 10))
    path = listed.with_suffix(".db")
    for beside in tmp_path.glob(f"{path.name}-*"):
        beside.unlink()
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="not a ledger"):
        whose(tmp_path, series(0, 10))
    with pytest.raises(LedgerError, match="not a ledger"):
        open_person_ledger(path, budget_epsilon=8.0, budget_delta=None)


def test_an_old_copy_without_its_list_is_behind_its_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_ANCHORS", str(tmp_path / "anchors"))
    folder = tmp_path / "persons"
    path = ledger_path(folder, "Ann")
    open_person_ledger(path, budget_epsilon=8.0, budget_delta=None)
    before = path.read_bytes()
    debited(folder, "Ann", series(0, 10)).unlink()
    path.write_bytes(before)
    with pytest.raises(LedgerError, match="anchor"):
        whose(folder, series(0, 10), name="Bert")


def test_data_of_two_persons_are_refused(tmp_path: Path) -> None:
    known(tmp_path, "Ann", series(0, 10))
    known(tmp_path, "Bert", series(10, 20))
    with pytest.raises(LedgerError, match="under 2 names"):
        whose(tmp_path, series(0, 20))


def test_two_runs_at_once_cannot_give_one_series_two_names(tmp_path: Path) -> None:
    """Both asked before either remembered; only one of them may go on."""

    for i in range(8):
        path = ledger_path(tmp_path, f"person {i}")
        open_person_ledger(path, budget_epsilon=8.0, budget_delta=None)

    def attempt(name: str) -> bool:
        try:
            with remembered(tmp_path, name, marks_of(series(0, 10))):
                pass
        except LedgerError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, [f"person {i}" for i in range(8)])) == 1


def test_a_list_is_for_its_owner_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    known(tmp_path, "Zoë", series(0, 3))
    (path,) = tmp_path.glob("*.series")
    assert path.stat().st_mode & 0o077 == 0
    assert "Zo" not in path.name
    path.write_bytes(b"\xff")
    with pytest.raises(LedgerError, match="restore it"):
        whose(tmp_path, series(0, 3))


def test_a_list_that_cannot_be_written_refuses_the_debit(tmp_path: Path) -> None:
    unwritable = remembered(tmp_path / "none", "Ann", marks_of(series(0, 3)))
    with pytest.raises(LedgerError, match="cannot write"), unwritable:
        pass
