"""Tokens: made by one node for one report in one round, and good for nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.fleet.deployment.tokens import make_token, new_secret, node_key, token_fits

SECRET = new_secret()
KEY = node_key(SECRET, run="r", node="a")
TOKEN = make_token(KEY, run="r", round_number=1, sealed=b"sealed")


def test_its_own_report_and_round_fit() -> None:
    assert token_fits(KEY, TOKEN, run="r", round_number=1, sealed=b"sealed")


def test_another_report_round_run_node_or_secret_does_not() -> None:
    assert not token_fits(KEY, TOKEN, run="r", round_number=1, sealed=b"sealeD")
    assert not token_fits(KEY, TOKEN, run="r", round_number=2, sealed=b"sealed")
    assert not token_fits(KEY, TOKEN, run="s", round_number=1, sealed=b"sealed")
    for other in (
        node_key(SECRET, run="r", node="b"),
        node_key(SECRET, run="s", node="a"),
        node_key(new_secret(), run="r", node="a"),
    ):
        assert not token_fits(other, TOKEN, run="r", round_number=1, sealed=b"sealed")


@pytest.mark.seconds
@given(st.text(max_size=80))
def test_nonsense_does_not_fit_and_does_not_crash(token: str) -> None:
    assert not token_fits(KEY, token, run="r", round_number=1, sealed=b"sealed")


def test_run_and_round_cannot_be_shifted_into_each_other() -> None:
    one = make_token(KEY, run="r1", round_number=1, sealed=b"")
    other = make_token(KEY, run="r", round_number=11, sealed=b"")
    assert one != other


def test_secrets_are_fresh() -> None:
    assert len({new_secret() for _ in range(100)}) == 100
