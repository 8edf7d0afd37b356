"""The attack that joins shuffled reports to their senders, and what keeps it at chance."""

from __future__ import annotations

import numpy as np
import pytest

from seeded import SeededNoise
from tacit.errors import TacitError
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.linking import link_reports, reidentification_rate, sound_rate
from tacit.fleet.reports.mechanisms import report_of


def test_linking_finds_the_permutation_and_pure_noise_hides_it() -> None:
    rng = np.random.default_rng(0)
    references = rng.standard_normal((40, 200))
    senders = rng.permutation(40)
    noisy = references[senders] + 0.3 * rng.standard_normal((40, 200))
    assert reidentification_rate(noisy, references, senders) == 1.0
    np.testing.assert_array_equal(link_reports(noisy, references), senders)
    # By chance one report is right on average; 12 or more has probability below 1e-8.
    assert reidentification_rate(rng.standard_normal((40, 200)), references, senders) < 0.3
    with pytest.raises(TacitError, match="references"):
        link_reports(noisy, references[:3])


@pytest.mark.parametrize(("mechanism", "epsilon"), [("privunit", 1.0), ("distributed", 8.0)])
def test_sound_reports_are_seen_singly_or_not_at_all(mechanism: str, epsilon: float) -> None:
    plan = make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=24,
        mechanism=mechanism,
        n_clients=40,
        epsilon=epsilon,
        n_rounds=4,
        n_kernels=20,
    )
    directions = np.random.default_rng(0).standard_normal((40, plan.dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    report = report_of(plan)
    rate = sound_rate(directions, report, source=SeededNoise(0))
    assert (rate is not None) == report.shows_single_reports
    assert rate is None or rate < 0.3  # by chance 1/40; 12 or more have probability below 1e-8
