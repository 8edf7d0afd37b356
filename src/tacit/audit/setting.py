"""What a registry entry is built from."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.noise import SYSTEM_NOISE, NoiseSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What to build and what it claims: `claim` is the epsilon under test."""

    epsilon: float = 1.0
    delta: float = 1e-5
    claim: float = 1.0
    source: NoiseSource = SYSTEM_NOISE
