"""The sound fleets under the one-run audit: not refuted, and refuted with too little noise.

`confidence` is the false-alarm bound of the sound case, 1e-6. The twins are calibrated for a far
larger epsilon than they claim; `privunit` never has very little noise, so its twin trains longer.
In ten runs of it bounds lay between 0.75 and 1.45, in 25 of the other between 1.1 and 1.8, far
above the quarter that is claimed.
"""

from __future__ import annotations

import json

import pytest

from command import assert_refused, tacit
from tacit.audit import audit_fleet, training_names
from tacit.errors import TacitError

pytestmark = pytest.mark.core


@pytest.mark.parametrize("name", training_names())
def test_a_sound_fleet_is_consistent(name: str) -> None:
    result = audit_fleet(name, epsilon=4.0)
    assert result.verdict == "consistent"
    assert result.trials == 1


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("name", "noise_for", "n_rounds"),
    [("privunit-training", 1000.0, 80), ("distributed-training", 100.0, 20)],
)
def test_a_fleet_with_too_little_noise_is_refuted(
    name: str, noise_for: float, n_rounds: int
) -> None:
    result = audit_fleet(name, epsilon=noise_for, claim=0.25, n_rounds=n_rounds)
    assert result.verdict == "refuted"
    assert result.lower_bound > 0.25
    assert 0.25 < result.detectable_epsilon < 1.5


def test_an_unknown_training_is_refused() -> None:
    with pytest.raises(TacitError, match="there is no training 'sgd'"):
        audit_fleet("sgd", epsilon=1.0)


def test_the_command_audits_a_training(capsys: pytest.CaptureFixture[str]) -> None:
    done = tacit(capsys, "audit", "distributed-training", "--epsilon", "2", "--json")
    found = json.loads(done.out)
    assert found["verdict"] == "consistent"
    assert found["delta"] == 1e-10


def test_the_command_refuses_a_bad_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(tacit(capsys, "audit", "privunit-training", "--epsilon", "-1"), "epsilon")
