"""Audits, attacks and explanations in a notebook: the numbers, escaped, with the guarantee."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.audit.attacks.result import AttackResult, SoundCheck
from tacit.audit.engine import AuditResult
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.silo.explain import Explanation, Match

pytestmark = pytest.mark.core
COST = DpGuarantee(epsilon=2.0, model="local", unit="series")


def test_an_audit_shows_claim_and_proof() -> None:
    one = AuditResult(
        mechanism="<krr>", claimed_epsilon=2.0, delta=0.0, lower_bound=1.23456, confidence=0.99,
        trials=1000, verdict="consistent", tpr=0.5, fpr=0.1, n_pairs=1, seconds=1.0,
        guarantee=COST,
    )  # fmt: skip
    shown = one._repr_html_()
    for words in ("&lt;krr&gt;", "consistent", "<td>2</td>", "1.234", "1,000 trials"):
        assert words in shown, words
    assert COST._repr_html_() in shown
    assert "too few" in shown
    told = replace(one, detectable_epsilon=2.34567, detectable_event=3.2e-5)._repr_html_()
    for words in ("95% power", "epsilon from 2.3457", "3.2e-05"):
        assert words in told, words


def test_an_attack_shows_both_rates() -> None:
    sound = SoundCheck.of(hits=20, runs=1000, bound=0.07, what="x", guarantee=COST)
    broken = Unprotected(reason="of the test")
    shown = AttackResult(
        attack="softshape", succeeded=True, rate=0.97, chance=0.01, seconds=1.0,
        guarantee=broken, sound=sound,
    )._repr_html_()  # fmt: skip
    for words in ("97.0%", "guessing: 1.0%", "2.0% of 1,000 tries", "7.0%", "within it"):
        assert words in shown, words
    assert broken._repr_html_() in shown


def test_an_explanation_shows_its_features() -> None:
    match = Match(
        shapelet=2, influence=0.4, position=-1, distance=1.0, values=np.zeros(1), series=-1,
        start=0, class_distances={}, kind="word", description="a < b",
    )  # fmt: skip
    shown = Explanation(
        prediction="<b>", probabilities={"<b>": 0.9}, matches=(match,), series=np.zeros((1, 2)),
        compared=np.zeros((1, 2)),
    )._repr_html_()  # fmt: skip
    for words in ("<b>&lt;b&gt;</b>", "word 3", "a &lt; b", "40.0%", "nowhere"):
        assert words in shown, words
