"""Pi_DP computes dot products, leaks the shapelet, and shares do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tacit.audit.attacks.pidp import (
    Message,
    Q,
    attack_pidp,
    dot_product,
    first_message,
    recover_shapelet,
    replicated_shares,
    share_view,
    to_fixed_point,
)
from tacit.noise import SYSTEM_NOISE

pytestmark = pytest.mark.core

L = 12


def shapelet(seed: int, length: int = L) -> list[int]:
    return to_fixed_point(np.random.default_rng(seed).normal(size=length))


@pytest.mark.parametrize("d", [1, 2, 5, L, L + 1, L + 4])
def test_the_protocol_computes_the_dot_product(d: int) -> None:
    x, y = shapelet(0), shapelet(1)
    message, secrets = first_message(x, d=d, source=SYSTEM_NOISE)
    expected = sum(a * b for a, b in zip(x, y, strict=True)) % Q
    assert dot_product(message, secrets, y, source=SYSTEM_NOISE) == expected


@pytest.mark.parametrize("d", [1, 2, 5, L, L + 1, L + 4])
def test_the_shapelet_is_recovered_exactly(d: int) -> None:
    for seed in range(3):
        x = shapelet(seed)
        message, _ = first_message(x, d=d, source=SYSTEM_NOISE)
        assert recover_shapelet(message) == x


def test_one_changed_entry_of_the_message_spoils_the_recovery() -> None:
    # The twin: the solver reads the message, it does not know the answer otherwise.
    x = shapelet(0)
    message, _ = first_message(x, d=3, source=SYSTEM_NOISE)
    c = [*message.c[:-1], (message.c[-1] + 1) % Q]
    assert recover_shapelet(Message(message.U, c, message.g)) != x


@pytest.mark.parametrize("party", [0, 1, 2])
@pytest.mark.parametrize("d", [3, L + 2])
def test_shares_give_the_same_solver_nothing(d: int, party: int) -> None:
    x = shapelet(0)
    assert recover_shapelet(share_view(x, rows=d, party=party, source=SYSTEM_NOISE)) != x


def test_shares_add_up_and_each_pair_is_uniform_for_two_secrets() -> None:
    # Chi-square over 64 bins of every share and of every difference of two, for two secrets;
    # false alarm 1e-8 per check, 12 checks.
    for secret in (0, Q - 5):
        shares = replicated_shares([secret] * 20_000, source=SYSTEM_NOISE)
        assert all(sum(parts) % Q == secret for parts in zip(*shares, strict=True))
        for i in range(3):
            one, two = shares[i], shares[(i + 1) % 3]
            gaps = [(a - b) % Q for a, b in zip(one, two, strict=True)]
            for values in (one, gaps):
                bins = np.bincount([v * 64 // Q for v in values], minlength=64)
                assert stats.chisquare(bins).pvalue > 1e-8


def test_the_whole_attack_is_exact_and_quick() -> None:
    result = attack_pidp(length=20, runs=3)
    assert result.succeeded
    assert result.rate == 1.0
    assert result.sound.rate == 0.0
    assert result.sound.within
    assert result.details["example"]["secret"] == result.details["example"]["recovered"]
    assert result.seconds < 10
