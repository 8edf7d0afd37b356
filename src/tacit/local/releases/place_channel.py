"""The channel of the `place` release: one symbol for the class and for where its evidence lies.

A symbol is a pair (class, place). Any channel over pairs that is epsilon-LDP may be used, so the
budget is not split: a linear program looks for the channel that most often gets the class right,
and the place with it, among those that lose no more than a stated share of the label release's
accuracy. Like the label channel it is tightened and then checked in whole numbers.

SciPy is loaded when a channel is computed: devices only apply one.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError, check_epsilon
from tacit.local.releases.channel import (
    SOLVER_EPSILON,
    ChannelKind,
    check_channel,
    design_channel,
)
from tacit.mechanisms import channel_epsilon, krr_matrix, tighten_channel

SLACK = 0.05  # share of the label release's expected accuracy that may be given for the place
# 160 x 160 pairs take the solver some 10 s; its time grows faster than the square of the cells.
MOST_PAIRS = 160


def check_pairs(n_classes: int, n_places: int) -> None:
    """Refuse more pairs of class and place than the linear program can be solved for."""
    if n_classes * n_places > MOST_PAIRS:
        raise TacitError(
            f"a place release of {n_classes} classes and {n_places} places has "
            f"{n_classes * n_places} symbols, above the {MOST_PAIRS} whose channel can be "
            "computed; use release='label'."
        )


def design_place_channel(
    gain: Floats,
    place_shares: Floats,
    *,
    epsilon: float,
    slack: float = SLACK,
    kind: ChannelKind = "optimal",
) -> Floats:
    """The epsilon-LDP channel over pairs (class, place), numbered class by class.

    `gain[k, y]` is the mass of series that the device calls k and that belong to class y;
    `place_shares[k, s]` the share of place s among those it calls k. Maximises the probability
    of the right class plus that of the right class with the right place, such that the former is
    at least 1 - slack of what the label channel reaches. Where the solver fails, or finds nothing
    better, the label channel is used and the place is the commonest one of the released class.

    Guarantee: `channel_epsilon` of the result is at most `epsilon`.
    """
    check_epsilon(epsilon)
    check_slack(slack)
    check_pairs(*place_shares.shape)
    if kind == "krr" or epsilon > SOLVER_EPSILON:
        plain = krr_matrix(place_shares.size, epsilon)
        return check_channel(tighten_channel(plain, epsilon=epsilon), epsilon=epsilon)
    label = design_channel(gain, epsilon=epsilon)
    right_class, right_pair = pair_gains(gain, place_shares)
    worth = right_class + right_pair
    least = (1.0 - slack) * float((label * gain).sum())
    table = place_table(gain, place_shares, label)
    plain = with_public_places(label, table, n_places=place_shares.shape[1])
    # Whole numbers are rounded row by row, and wider rows may round otherwise.
    plain = tighten_channel(plain, epsilon=epsilon)
    solved = _solve(worth, right_class, least, epsilon=epsilon)
    best = plain if solved is None else tighten_channel(solved, epsilon=epsilon)
    if channel_epsilon(best) > epsilon or (best * worth).sum() < (plain * worth).sum():
        best = plain
    return check_channel(best, epsilon=epsilon)


def check_slack(slack: float) -> None:
    """Refuse a slack that is no share."""
    if not 0.0 <= slack <= 1.0:
        raise TacitError(f"slack must lie between 0 and 1, got {slack!r}; the default is {SLACK}.")


def pair_gains(gain: Floats, place_shares: Floats) -> tuple[Floats, Floats]:
    """What each cell of the channel adds to P(class right), and to P(class and place right)."""
    n_classes, n_places = place_shares.shape
    size = n_classes * n_places
    cells = gain[:, None, :, None] * place_shares[:, :, None, None]
    right_class = np.broadcast_to(cells, (n_classes, n_places, n_classes, n_places))
    right_pair = right_class * np.eye(n_places)[None, :, None, :]
    return right_class.reshape(size, size), right_pair.reshape(size, size)


def place_table(gain: Floats, place_shares: Floats, label_channel: Floats) -> Codes:
    """The likeliest place of each released label: what a label release says about the place."""
    together = (gain.sum(axis=1)[:, None] * place_shares).T @ label_channel
    return np.asarray(together.argmax(axis=0))


def with_public_places(label_channel: Floats, table: Codes, *, n_places: int) -> Floats:
    """A label channel as one over pairs: the place is a public function of the released label."""
    pairs: Floats = np.kron(label_channel, np.ones((n_places, 1)))[:, :, None]
    return (pairs * np.eye(n_places)[table]).reshape(len(pairs), -1)


def _solve(worth: Floats, kept: Floats, least: float, *, epsilon: float) -> Floats | None:
    """Maximise sum of worth * Q such that sum of kept * Q >= least and Q is epsilon-LDP.

    Written with Q[i, j] = x[i, j] + e**-epsilon top[j] and 0 <= x[i, j] <= (1 - e**-epsilon)
    top[j]: half as many constraints as with bounds on both sides, and numbers of one size.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    size = len(worth)
    cells, low = size * size, math.exp(-epsilon)
    column = (np.arange(cells), np.tile(np.arange(size), size))
    top = sparse.csr_matrix((np.full(cells, low - 1.0), column))
    below_top = sparse.hstack([sparse.identity(cells), top])
    enough = sparse.csr_matrix(-_of_variables(kept, low)[None])
    sums = sparse.hstack(
        [
            sparse.kron(sparse.identity(size), np.ones((1, size))),
            sparse.csr_matrix(np.full((size, size), low)),
        ]
    )
    found = linprog(
        -_of_variables(worth, low),
        A_ub=sparse.vstack([below_top, enough], format="csr"),
        b_ub=np.append(np.zeros(cells), -least),
        A_eq=sums.tocsr(),
        b_eq=np.ones(size),
        bounds=(0.0, None),
        method="highs",
    )
    if not found.success:
        return None
    channel = np.maximum(found.x[:cells].reshape(size, size) + low * found.x[cells:], 0.0)
    normalised: Floats = channel / channel.sum(axis=1, keepdims=True)
    return normalised


def _of_variables(weights: Floats, low: float) -> Floats:
    """Coefficients of x and top in the sum of weights * Q."""
    return np.concatenate([weights.ravel(), low * weights.sum(axis=0)])
