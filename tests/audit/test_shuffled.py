"""The fleet's randomizers and a shuffled batch under audit, each beside a weakened twin.

False alarm 1e-6 per audit of a sound mechanism.
"""

from __future__ import annotations

import pytest

from tacit.audit import audit, build


# The distributed audit makes few trials, so its twin must be weaker than 10 % to be noticed. The
# others have exact laws, and runs only check the code; the privacy blanket loses less than 10 %.
@pytest.mark.seconds
@pytest.mark.parametrize(
    ("name", "trials", "twin"),
    [
        ("fleet-privunit", 200_000, 1.0 / 0.9),
        ("fleet-distributed", 200_000, 2.0),
        ("shuffled-krr", 200_000, 1.0 / 0.9),
    ],
)
def test_sound_is_consistent_and_the_twin_refuted(name: str, trials: int, twin: float) -> None:
    sound = audit(build(name), trials=trials)
    assert sound.verdict == "consistent"
    assert sound.lower_bound > 0.1  # it measures something; around 0.4 at the loosest
    weak = audit(build(name, epsilon=twin, claim=1.0), trials=trials)
    assert weak.verdict == "refuted"
