"""Deal the series of a data set out to parties or clients, as owners would hold them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError, check_at_least, check_positive

Owners = NDArray[np.int64]
Split = Literal["iid", "subject", "dirichlet"]
_DRAWS = 500  # of persons to hold out, before a class is said to belong to too few of them


def hold_out_subjects(
    y: NDArray[Any], subject: NDArray[Any], *, share: float, rng: np.random.Generator, where: str
) -> NDArray[np.bool_]:
    """Which series to test on, so that nobody has series on both sides.

    A share of the persons is drawn, again and again until the rest show every class and, where
    that can be had, those held out do too.
    """
    persons = np.unique(subject)
    if len(persons) < 2:
        raise TacitError(
            f"{where} holds one subject, {str(persons[0])!r}, who cannot be both trained and "
            "tested on; add other subjects, or leave subjects out (tacit data import --subject "
            "none) to split one person's series at random."
        )
    classes = set(np.unique(y).tolist())
    count = max(1, round(share * len(persons)))
    second_best: NDArray[np.bool_] | None = None
    for _ in range(_DRAWS):
        test = np.isin(subject, rng.choice(persons, count, replace=False))
        if set(y[~test].tolist()) == classes:
            if set(y[test].tolist()) == classes:
                return test
            second_best = test if second_best is None else second_best
    if second_best is None:
        raise TacitError(
            f"{where} has classes that too few of its {len(persons)} subjects show, so no split "
            "by subject leaves every class to train on; add subjects or drop the rare classes."
        )
    return second_best


def split_parties(y: NDArray[Any], *, n_parties: int, rng: np.random.Generator) -> Owners:
    """A party per series: stratified by class and equal in size to within one series.

    Every class is dealt out like cards, starting where the last class stopped, so sizes differ
    by at most one and each party gets its share of each class.
    """
    check_at_least(n_parties, 1, name="n_parties")
    if n_parties > len(y):
        raise TacitError(
            f"{len(y)} series cannot be dealt to {n_parties} parties; use at most {len(y)}."
        )
    owners = np.empty(len(y), dtype=np.int64)
    dealt = 0
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        owners[rows] = (dealt + np.arange(len(rows))) % n_parties
        dealt += len(rows)
    return owners


def split_clients(
    y: NDArray[Any],
    *,
    n_clients: int,
    how: Split = "iid",
    rng: np.random.Generator,
    subject: NDArray[Any] | None = None,
    alpha: float = 0.5,
) -> Owners:
    """A client per series; no client is left without one.

    iid deals at random in equal numbers; subject keeps every person's series together and cuts
    a person into several clients only when there are more clients than persons; dirichlet draws
    class shares per client from a Dirichlet(alpha): small alpha, strong label skew.
    """
    check_at_least(n_clients, 1, name="n_clients")
    if n_clients > len(y):
        raise TacitError(
            f"{len(y)} series cannot be dealt to {n_clients} clients; use at most {len(y)}."
        )
    if how == "iid":
        return rng.permutation(np.arange(len(y), dtype=np.int64) % n_clients)
    if how == "subject":
        return _by_subject(subject, len(y), n_clients, rng)
    if how == "dirichlet":
        return _dirichlet(y, n_clients, alpha, rng)
    raise TacitError(f"unknown split {how!r}; use iid, subject or dirichlet.")


def _by_subject(
    subject: NDArray[Any] | None, n_series: int, n_clients: int, rng: np.random.Generator
) -> Owners:
    if subject is None or len(subject) != n_series:
        raise TacitError(
            "a split by subject needs one subject per series and this data set has none; "
            "use the split iid or dirichlet."
        )
    persons, person_of = np.unique(subject, return_inverse=True)
    owners = np.empty(n_series, dtype=np.int64)
    if n_clients <= len(persons):
        client_of = rng.permutation(np.arange(len(persons)) % n_clients)
        owners[:] = client_of[person_of]
        return owners
    pieces = _pieces(np.bincount(person_of), n_clients)
    start = 0
    for person, count in enumerate(pieces):
        rows = rng.permutation(np.flatnonzero(person_of == person))
        owners[rows] = start + np.arange(len(rows)) % count
        start += count
    return owners


def _pieces(sizes: NDArray[np.int64], n_clients: int) -> list[int]:
    """How many clients each person is cut into: proportional to size, every one at least one."""
    pieces = np.ones(len(sizes), dtype=np.int64)
    for _ in range(n_clients - len(sizes)):
        load = np.where(pieces < sizes, sizes / pieces, -1.0)
        pieces[int(load.argmax())] += 1
    return [int(piece) for piece in pieces]


def _dirichlet(y: NDArray[Any], n_clients: int, alpha: float, rng: np.random.Generator) -> Owners:
    check_positive(alpha, name="alpha")
    owners = np.empty(len(y), dtype=np.int64)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        shares = rng.dirichlet(np.full(n_clients, alpha))
        owners[rows] = rng.choice(n_clients, size=len(rows), p=shares)
    return _fill_empty(owners, n_clients, rng)


def _fill_empty(owners: Owners, n_clients: int, rng: np.random.Generator) -> Owners:
    """Give every empty client one series of the largest client."""
    counts = np.bincount(owners, minlength=n_clients)
    for client in np.flatnonzero(counts == 0):
        giver = int(counts.argmax())
        row = int(rng.choice(np.flatnonzero(owners == giver)))
        owners[row] = client
        counts[giver] -= 1
        counts[client] += 1
    return owners
