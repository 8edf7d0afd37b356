from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.data import hold_out_subjects, split_clients, split_parties
from tacit.errors import TacitError


@given(st.integers(6, 80), st.integers(1, 6), st.integers(1, 5), st.integers(0, 99))
def test_parties_are_equal_and_stratified(n: int, parties: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, size=n)
    owners = split_parties(y, n_parties=parties, rng=rng)
    sizes = np.bincount(owners, minlength=parties)
    assert sizes.max() - sizes.min() <= 1
    for label in np.unique(y):
        share = np.bincount(owners[y == label], minlength=parties)
        assert share.max() - share.min() <= 1


@pytest.mark.parametrize("how", ["iid", "subject", "dirichlet"])
@pytest.mark.parametrize("n_clients", [1, 3, 40])
def test_every_client_has_a_series_and_a_seed_repeats(how: str, n_clients: int) -> None:
    y = np.arange(200) % 4
    subject = np.repeat(np.arange(10), 20)

    def split() -> NDArray[Any]:
        return split_clients(
            y,
            n_clients=n_clients,
            how=how,  # type: ignore[arg-type]
            subject=subject,
            rng=np.random.default_rng(3),
        )

    owners = split()
    assert set(owners.tolist()) == set(range(n_clients))
    np.testing.assert_array_equal(owners, split())


def test_a_person_is_never_mixed_with_another_when_clients_abound() -> None:
    subject = np.repeat(np.arange(5), [10, 20, 30, 5, 35])
    owners = split_clients(
        np.zeros(100), n_clients=12, how="subject", subject=subject, rng=np.random.default_rng(0)
    )
    for client in range(12):
        assert len(set(subject[owners == client])) == 1


def test_a_person_stays_whole_when_persons_abound() -> None:
    subject = np.repeat(np.arange(9), 4)
    owners = split_clients(
        np.zeros(36), n_clients=4, how="subject", subject=subject, rng=np.random.default_rng(0)
    )
    for person in range(9):
        assert len(set(owners[subject == person])) == 1


def test_small_alpha_skews_labels_more_than_large_alpha() -> None:
    y = np.arange(2000) % 5

    def purity(alpha: float) -> float:
        owners = split_clients(
            y, n_clients=20, how="dirichlet", alpha=alpha, rng=np.random.default_rng(1)
        )
        tops = [np.bincount(y[owners == c]).max() / np.sum(owners == c) for c in range(20)]
        return float(np.mean(tops))

    assert purity(0.05) > 0.6
    assert purity(100.0) < 0.35


def test_impossible_splits_are_refused() -> None:
    rng = np.random.default_rng(0)
    y = np.zeros(5)
    with pytest.raises(TacitError, match="at most 5"):
        split_clients(y, n_clients=6, rng=rng)
    with pytest.raises(TacitError, match="one subject per series"):
        split_clients(y, n_clients=2, how="subject", rng=rng)
    with pytest.raises(TacitError, match="alpha"):
        split_clients(y, n_clients=2, how="dirichlet", alpha=float("nan"), rng=rng)
    with pytest.raises(TacitError, match="unknown split"):
        split_clients(y, n_clients=2, how="odd", rng=rng)  # type: ignore[arg-type]
    with pytest.raises(TacitError, match="n_parties"):
        split_parties(y, n_parties=0, rng=rng)


def test_held_out_subjects_show_every_class_and_are_nowhere_else() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        subject = rng.integers(0, 10, size=200)
        y = rng.integers(0, 3, size=200)
        test = hold_out_subjects(y, subject, share=0.3, rng=np.random.default_rng(seed), where="it")
        assert not set(subject[test]) & set(subject[~test])
        assert len(set(subject[test])) == 3
        assert set(y[test]) == set(y[~test]) == {0, 1, 2}


def test_a_class_that_one_person_has_stays_in_training() -> None:
    subject = np.repeat(np.arange(5), 4)
    y = np.where(subject == 3, "rare", np.tile(["a", "b"], 10))
    test = hold_out_subjects(y, subject, share=0.3, rng=np.random.default_rng(0), where="it")
    assert 3 not in subject[test]
    assert set(y[test]) == {"a", "b"}


def test_subjects_that_cannot_be_held_out_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(TacitError, match="one subject, '7'"):
        hold_out_subjects(np.arange(4) % 2, np.full(4, 7), share=0.3, rng=rng, where="it")
    with pytest.raises(TacitError, match="too few of its 2 subjects"):
        hold_out_subjects(np.arange(4) // 2, np.arange(4) // 2, share=0.3, rng=rng, where="it")
