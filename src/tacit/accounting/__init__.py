"""Privacy accounting: amplification by shuffling, composition, calibration, changes of unit.

Every number is an upper bound with its theorem: computed epsilons are rounded up, and what a
calibration returns is accounted again before it is handed out.
"""

from tacit.accounting.batch import privunit_cap
from tacit.accounting.channel import (
    equivalent_cap,
    shuffled_channel_delta,
    shuffled_channel_epsilon,
)
from tacit.accounting.compose import (
    calibrate_shuffle,
    change_unit,
    compose_channel,
    compose_mixed,
    compose_pure,
    compose_shuffled,
    group_privacy,
    subsample_without_replacement,
)
from tacit.accounting.gaussian import (
    calibrate_gaussian,
    compose_discrete,
    compose_gaussian,
    summed_noise_gap,
    zcdp_epsilon,
)
from tacit.accounting.shuffle import (
    ShuffleBound,
    closed_form_epsilon,
    closed_form_limit,
    mixed_epsilons,
    shuffle_delta,
    shuffle_epsilon,
)
from tacit.accounting.timefl import timefl_table_1, timefl_theorem_1

__all__ = [
    "ShuffleBound",
    "calibrate_gaussian",
    "calibrate_shuffle",
    "change_unit",
    "closed_form_epsilon",
    "closed_form_limit",
    "compose_channel",
    "compose_discrete",
    "compose_gaussian",
    "compose_mixed",
    "compose_pure",
    "compose_shuffled",
    "equivalent_cap",
    "group_privacy",
    "mixed_epsilons",
    "privunit_cap",
    "shuffle_delta",
    "shuffle_epsilon",
    "shuffled_channel_delta",
    "shuffled_channel_epsilon",
    "subsample_without_replacement",
    "summed_noise_gap",
    "timefl_table_1",
    "timefl_theorem_1",
    "zcdp_epsilon",
]
