"""Privacy accounting: amplification by shuffling, composition, calibration, changes of unit.

Every number is an upper bound with its theorem: computed epsilons are rounded up, and what a
calibration returns is accounted again before it is handed out.
"""

from tacit.accounting.compose import (
    calibrate_shuffle,
    change_unit,
    compose_pure,
    compose_shuffled,
    group_privacy,
    subsample_without_replacement,
)
from tacit.accounting.shuffle import (
    ShuffleBound,
    closed_form_epsilon,
    closed_form_limit,
    shuffle_delta,
    shuffle_epsilon,
)

__all__ = [
    "ShuffleBound",
    "calibrate_shuffle",
    "change_unit",
    "closed_form_epsilon",
    "closed_form_limit",
    "compose_pure",
    "compose_shuffled",
    "group_privacy",
    "shuffle_delta",
    "shuffle_epsilon",
    "subsample_without_replacement",
]
