"""What a run of DP-TimeFL as published is told: Table II of the paper, and two presets.

paper: 40 local epochs and the network of about 200,000 weights. tuned: 5 local epochs and a network
of about 11,000 weights, at about a hundredth of the cost. Everything else is the same in both: the
mechanism, the accountant and its stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon, check_positive

Method = Literal["dptimefl", "fedavg", "cdpfl"]
Network = Literal["paper", "light"]
Preset = Literal["paper", "tuned"]
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"local_epochs": 40, "network": "paper"},
    "tuned": {"local_epochs": 5, "network": "light"},
}
MOST_ROUNDS = 400
CENTRAL_ROUNDS = (40, 100)  # of CDP-FL at N = 100 and 1000: its noise is calibrated beforehand
_MANY_CLIENTS = 500  # Table II has 100 and 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedConfig:
    """Table II where it says; `n_rounds` is a ceiling that the accountant or convergence undercuts.

    Converged: over the last `window` rounds the asked clients' training accuracy was on average
    less than `least_gain` above that of the `window` rounds before. CDP-FL runs `n_rounds` rounds.
    """

    method: Method = "dptimefl"
    n_rounds: int = MOST_ROUNDS
    clients_per_round: int = 40
    local_epochs: int = 40
    batch_size: int = 28
    rate: float = 0.1
    clip_norm: float = 5.0
    epsilon_0: float = 8.0
    delta_limit: float = 0.1
    noise_multiplier: float = 1.0
    network: Network = "paper"
    window: int = 10
    least_gain: float = 0.005

    def __post_init__(self) -> None:
        if self.method not in ("dptimefl", "fedavg", "cdpfl"):
            raise TacitError(f"unknown method {self.method!r}; use dptimefl, fedavg or cdpfl.")
        if self.network not in ("paper", "light"):
            raise TacitError(f"unknown network {self.network!r}; use paper or light.")
        for name in ("n_rounds", "clients_per_round", "local_epochs", "batch_size", "window"):
            check_at_least(getattr(self, name), 1, name=name)
        for name in ("rate", "clip_norm", "noise_multiplier", "least_gain"):
            check_positive(getattr(self, name), name=name)
        check_epsilon(self.epsilon_0, name="epsilon_0")
        check_delta(self.delta_limit, name="delta_limit")


def table_two(*, n_clients: int, preset: Preset = "paper", **changes: Any) -> PublishedConfig:
    """The paper's settings for N = 100 or 1000; fewer clients keep the rate of 40 in 100.

    A change that is None keeps the preset's value.
    """
    if preset not in PRESETS:
        raise TacitError(f"unknown preset {preset!r}; use paper or tuned.")
    many = n_clients >= _MANY_CLIENTS
    settings: dict[str, Any] = {
        "clients_per_round": 100 if many else max(1, round(0.4 * min(n_clients, 100))),
        "delta_limit": 0.001 if many else 0.1,
        **PRESETS[preset],
    }
    if many and preset == "tuned":
        settings["batch_size"] = 8  # two steps an epoch: a client holds as few as three series
    if changes.get("method") == "cdpfl":
        settings["n_rounds"] = CENTRAL_ROUNDS[many]
    asked = {name: value for name, value in changes.items() if value is not None}
    return PublishedConfig(**{**settings, **asked})
