"""The channel from a device's label to the released one: as accurate as epsilon-LDP allows.

A channel is a row-stochastic matrix Q: row = the device's own label, column = what it releases.
It is epsilon-LDP exactly when every column's largest entry is at most e**epsilon times its
smallest. Expected accuracy is linear in Q, so the best channel is a linear program; at small
epsilon it releases only a few of the labels. The solver meets constraints up to a tolerance, so its
result is tightened and then checked in whole numbers; a channel that fails is never used.

SciPy is loaded when a channel is computed: devices only apply one.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError, check_epsilon
from tacit.local.releases.confusion import design_gain, with_class_shares
from tacit.mechanisms import channel_epsilon, krr_matrix, tighten_channel

ChannelKind = Literal["optimal", "krr"]

# Beyond this, one released label is wrong less often than once in 10^13 at 25 classes: k-RR and
# the optimum agree, and the solver would only see numbers of too different size.
SOLVER_EPSILON = 30.0
_POSTERIOR_SHARE = 0.5  # of `label_gain`: averaged posteriors; the rest: counts
_PSEUDO_COUNT = 1.0  # symmetric-error observations per class


def choose_channel(
    held_out: Floats,
    y: Codes,
    *,
    epsilon: float,
    kind: ChannelKind = "optimal",
    shares: Floats | None = None,
) -> Floats:
    """The channel for a classifier with these held-out posteriors (n, classes) and true labels.

    The optimum leaves out labels that were rare or badly recognised in training, as far as the
    training set is large enough to say so (`tacit.local.releases.confusion`); with little
    evidence either way it is k-RR. `shares` are class shares that are expected
    instead of the training set's.

    Guarantee: `channel_epsilon` of the result is at most `epsilon`.
    """
    gain = design_gain(held_out, y)
    if shares is not None:
        gain = with_class_shares(gain, shares)
    return design_channel(gain, epsilon=epsilon, kind=kind)


def design_channel(gain: Floats, *, epsilon: float, kind: ChannelKind = "optimal") -> Floats:
    """The epsilon-LDP channel with the largest sum of gain * Q, or k-ary randomized response.

    `gain[k, y]` is the mass of series that the device calls k and that belong to class y.
    Falls back to k-RR when the solver fails or finds nothing better.

    Guarantee: `channel_epsilon` of the result is at most `epsilon`.
    """
    check_epsilon(epsilon)
    # Rounding can leave k-RR a few units of 2^-62 above e**epsilon.
    plain = tighten_channel(krr_matrix(len(gain), epsilon), epsilon=epsilon)
    if kind == "krr" or epsilon > SOLVER_EPSILON:
        return check_channel(plain, epsilon=epsilon)
    solved = _solve(gain, epsilon=epsilon)
    if solved is None:
        return check_channel(plain, epsilon=epsilon)
    best = tighten_channel(solved, epsilon=epsilon)
    if channel_epsilon(best) > epsilon or (best * gain).sum() < (plain * gain).sum():
        best = plain
    return check_channel(best, epsilon=epsilon)


def check_channel(channel: Floats, *, epsilon: float) -> Floats:
    """Return the channel if it is epsilon-LDP as it is sampled, else refuse."""
    found = channel_epsilon(channel)
    if not found <= epsilon:
        raise TacitError(
            f"the channel has epsilon = {found:.17g}, above the {epsilon:.17g} asked for; "
            "nothing can be released through it, train again."
        )
    return channel


def posterior_table(joint: Floats, channel: Floats) -> Floats:
    """P(thing | released symbol), one row per released symbol, by Bayes' rule.

    `joint[k, y]` is the share of series with the device's symbol k and the thing y. A symbol that
    the channel never releases gets the shares of the things.
    """
    mixed = joint.T @ channel  # (thing, released symbol)
    shares = mixed.sum(axis=0)
    prior = joint.sum(axis=0)[:, None]
    table = np.where(shares > 0.0, mixed / np.where(shares > 0.0, shares, 1.0), prior)
    return np.asarray(table.T)


def label_gain(held_out: Floats, y: Codes) -> Floats:
    """Shares of each (device label, class) pair on held-out series, for the server's decoding.

    Unlike `design_gain` it stays close to what was counted: half counts of predicted and true
    labels, half averaged posteriors, plus one pseudo-observation per class with errors spread
    evenly.
    """
    n, n_classes = held_out.shape
    prior = smoothed_prior(y, n_classes)
    predicted = held_out.argmax(axis=1)
    counts, soft = np.zeros((2, n_classes, n_classes))
    np.add.at(counts, (predicted, y), 1.0)
    np.add.at(soft, predicted, (n * held_out + prior) / (n + 1))
    right = (np.count_nonzero(predicted == y) + 1.0) / (n + 2.0)
    symmetric = np.full((n_classes, n_classes), (1.0 - right) / max(n_classes - 1, 1))
    np.fill_diagonal(symmetric, right)
    gain = (1.0 - _POSTERIOR_SHARE) * counts + _POSTERIOR_SHARE * soft
    gain += _PSEUDO_COUNT * symmetric
    normalised: Floats = gain / gain.sum()
    return normalised


def smoothed_prior(y: Codes, n_classes: int) -> Floats:
    """Class shares of the training labels with one pseudo-count per class."""
    counts = np.bincount(y, minlength=n_classes) + 1.0
    prior: Floats = counts / counts.sum()
    return prior


def accuracy_ceiling(prior: NDArray[Any], *, epsilon: float) -> float:
    """The accuracy that no epsilon-LDP release of a series can exceed for these class shares.

    Any release followed by any decision is an epsilon-LDP channel from series to labels; averaged
    within classes it is one from classes to labels. The best of these is the linear program with
    a perfect classifier. Counts of the classes do as well as shares.
    """
    check_epsilon(epsilon)
    shares = np.asarray(prior, dtype=np.float64)
    gain = np.diag(shares / shares.sum())
    plain = float((krr_matrix(len(prior), epsilon) * gain).sum())
    if epsilon > SOLVER_EPSILON:
        return plain
    solved = _solve(gain, epsilon=epsilon)
    return plain if solved is None else max(plain, float((solved * gain).sum()))


def _solve(gain: Floats, *, epsilon: float) -> Floats | None:
    """The linear program over Q and a floor m: m_y <= Q_ky <= e**epsilon m_y, rows sum to 1."""
    from scipy import sparse
    from scipy.optimize import linprog

    rows, columns = gain.shape
    cells = rows * columns
    here = sparse.identity(cells, format="csr")
    floor = sparse.csr_matrix(
        (np.ones(cells), (np.arange(cells), np.tile(np.arange(columns), rows)))
    )
    upper = sparse.hstack([here, -math.exp(epsilon) * floor])
    lower = sparse.hstack([-here, floor])
    sums = sparse.hstack(
        [
            sparse.kron(sparse.identity(rows), np.ones((1, columns))),
            sparse.csr_matrix((rows, columns)),
        ]
    )
    found = linprog(
        np.concatenate([-gain.ravel(), np.zeros(columns)]),
        A_ub=sparse.vstack([upper, lower], format="csr"),
        b_ub=np.zeros(2 * cells),
        A_eq=sums.tocsr(),
        b_eq=np.ones(rows),
        bounds=(0.0, 1.0),
        method="highs",
    )
    if not found.success:
        return None
    channel = np.clip(found.x[:cells].reshape(rows, columns), 0.0, 1.0)
    normalised: Floats = channel / channel.sum(axis=1, keepdims=True)
    return normalised
