"""The bound on linking shuffled reports; tests/cli/test_attack.py runs the whole attack."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.audit.attacks.result import best_guess_rate
from tacit.mechanisms import krr_matrix

pytestmark = pytest.mark.core


@pytest.mark.parametrize("local_epsilon", [0.5, 1.0, 2.0])
def test_no_linking_of_shuffled_symbols_exceeds_the_bound(local_epsilon: float) -> None:
    # Exact: n clients with the symbols 0..n-1, k-RR, a uniform shuffle, the optimal attacker.
    n = 4
    channel = krr_matrix(n, local_epsilon)
    orders = list(itertools.permutations(range(n)))
    rate = 0.0
    for reports in itertools.product(range(n), repeat=n):
        places = np.zeros(n)
        for order in orders:  # order[j] is the client whose report lies at place j
            likelihood = math.prod(channel[order[j], reports[j]] for j in range(n))
            places[order.index(0)] += likelihood / len(orders)
        rate += places.max()
    assert 1.0 / n < rate <= best_guess_rate(2 * local_epsilon, n)
