"""Which classes a device confuses, and how often: estimates for small training sets.

Expected accuracy is linear in the joint shares of (device label, class), so the channel that is
best on average over what the shares may be is the best one for their posterior mean. A training
set of 24 series in four classes says little about which class is rare: counts of 8, 8, 3 and 5 are
no surprise from equal shares. The prior therefore has an unknown strength that the data decide:
counts that equal shares would produce are drawn to equal shares, others are left alone; likewise
for how well each class is recognised.

It was chosen among 15 rules (docs/decisions/2026-11-16-label-channel.md) by accuracy on held-out
series of the training parts of 29 UCR sets that no benchmark here reports.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Codes, Floats

# Grids that cover "no shrinking" to "all alike" evenly on a logarithmic scale.
_SHARE_STRENGTHS = np.geomspace(0.3, 1000.0, 25)  # pseudo-series per class
_RECOGNITION_STRENGTHS = np.geomspace(1.0, 300.0, 20)  # pseudo-series per class


def design_gain(held_out: Floats, y: Codes) -> Floats:
    """Posterior mean of the joint shares (device label, class), from held-out posteriors.

    The confusion is that of the calibrated posteriors, which says the same as counting errors with
    less variance: a series called k with posterior p counts as p[c] series of each class c.
    """
    n_classes = held_out.shape[1]
    called = np.zeros((n_classes, n_classes))
    np.add.at(called, held_out.argmax(axis=1), held_out)
    shares = class_shares(np.bincount(y, minlength=n_classes).astype(np.float64))
    joint: Floats = (shares[:, None] * confusion_given_class(called.T)).T
    return joint


def with_class_shares(joint: Floats, shares: Floats) -> Floats:
    """The same confusion of every class, where the classes have other shares."""
    moved: Floats = joint / joint.sum(axis=0) * shares
    return moved


def class_shares(counts: Floats) -> Floats:
    """Posterior mean under a symmetric Dirichlet prior whose strength is integrated out."""
    from scipy.special import gammaln

    n_classes, strength = len(counts), _SHARE_STRENGTHS
    column = counts[:, None]
    evidence = gammaln(n_classes * strength) - gammaln(n_classes * strength + counts.sum())
    evidence += (gammaln(column + strength) - gammaln(strength)).sum(axis=0)
    estimates = (column + strength) / (counts.sum() + n_classes * strength)
    shares: Floats = estimates @ _normalised(evidence)
    return shares


def confusion_given_class(counts: Floats) -> Floats:
    """P(device label | class) from (soft) counts (class, device label).

    Each class is recognised about as often as all are, as far as the counts do not say otherwise
    (a beta prior around the overall rate, its strength integrated out). Errors go where errors
    of this class went, with two pseudo-errors spread like the errors of all classes.
    """
    right, total = np.diag(counts), counts.sum(axis=1)
    recognised = _recognition(right, total)
    errors = counts - np.diag(right)
    common = np.tile(errors.sum(axis=0) + 1.0, (len(counts), 1))
    errors = errors + 2.0 * _off_diagonal_rows(common)
    given: Floats = np.diag(recognised)
    given += (1.0 - recognised)[:, None] * _off_diagonal_rows(errors)
    return given


def _recognition(right: Floats, total: Floats) -> Floats:
    from scipy.special import betaln

    overall = (right.sum() + 1.0) / (total.sum() + 2.0)
    hit, miss = (_RECOGNITION_STRENGTHS * share for share in (overall, 1.0 - overall))
    wrong = (total - right)[:, None]
    evidence = (betaln(right[:, None] + hit, wrong + miss) - betaln(hit, miss)).sum(axis=0)
    estimates = (right[:, None] + hit) / (total[:, None] + _RECOGNITION_STRENGTHS)
    recognised: Floats = estimates @ _normalised(evidence)
    return recognised


def _off_diagonal_rows(table: Floats) -> Floats:
    """Rows that sum to one with nothing on the diagonal."""
    off = table * (1.0 - np.eye(len(table)))
    rows: Floats = off / off.sum(axis=1, keepdims=True)
    return rows


def _normalised(log_weights: Floats) -> Floats:
    weights = np.exp(log_weights - log_weights.max())
    normalised: Floats = weights / weights.sum()
    return normalised
