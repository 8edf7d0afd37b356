"""Every answer of the three questions counts, and every way begins on a page that is there."""

from __future__ import annotations

from itertools import product
from urllib.parse import parse_qs, urlsplit

import pytest

from tacit.studio.advice import ADVICE, GOALS, HOLDERS, TRAINING, plain_advice
from tacit.studio.pages.train import METHODS


def test_all_answers_lead_somewhere() -> None:
    assert set(ADVICE) == set(product(HOLDERS, TRAINING, GOALS))
    assert plain_advice()["fleet no population"]["path"] == "/train?method=hybrid"
    for one in ADVICE.values():
        place = urlsplit(one.path)
        assert place.path in ("/plan", "/train")
        for method in parse_qs(place.query).get("method", []):
            assert method in METHODS
        assert "`" not in one.sentence


@pytest.mark.parametrize("holder", HOLDERS)
def test_each_question_changes_the_answer(holder: str) -> None:
    """A question whose answer changes nothing need not be asked."""
    for goal in GOALS:
        assert ADVICE[holder, "yes", goal] != ADVICE[holder, "no", goal]
    for training in TRAINING:
        assert ADVICE[holder, training, "population"] != ADVICE[holder, training, "model"]


def test_without_a_training_set_nothing_is_trained_on_collected_series() -> None:
    for (_, training, _), one in ADVICE.items():
        if training == "no":
            assert one.family != "local"
