"""The settings of the SoftShape network and of its training: plain values, one global default."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from tacit.errors import TacitError, check_at_least

Schedule = Literal["onecycle", "cosine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftShapeSettings:
    """One setting for every data set; names follow the paper's notation section.

    `patch_fraction`: m / T; `patch_overlap`: m / s; `rho`: the share of patches kept (Eq. 5);
    `clip`: L1 bound of one patch's embedding, or None as in the published experiments.
    The three switches are the paper's ablations: `use_moe` (Eq. 8-9), `soft` (fused background
    token and scores as weights, Eq. 6-7), `attention_guided` (Eq. 4; off: scale 1/epsilon).
    `views`: randomly shifted, warped, scaled and jittered copies of each training series.
    """

    embed_dim: int = 128
    n_blocks: int = 1
    patch_fraction: float = 0.15
    min_patch: int = 8
    patch_overlap: int = 6
    basis_dim: int = 64
    basis_ridge: float = 0.5
    rho: float = 0.35
    attention_dim: int = 8
    n_experts: int = 4
    top_k: int = 1
    expert_dim: int = 32
    kernels: tuple[int, int, int] = (9, 5, 3)
    bottleneck_dim: int = 32
    clip: float | None = None
    use_moe: bool = True
    soft: bool = True
    attention_guided: bool = True
    attention_bias: float = 0.0
    balance_weight: float = 0.001
    steps: int = 300
    batch_size: int = 16
    learning_rate: float = 8e-3
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    schedule: Schedule = "onecycle"
    views: int = 10
    view_shift: float = 0.05
    view_warp: float = 0.1
    view_scale: float = 0.1
    view_jitter: float = 0.05

    def __post_init__(self) -> None:
        for name in _WHOLE:
            check_at_least(getattr(self, name), 1, name=name)
        if self.top_k > self.n_experts:
            raise TacitError(
                f"top_k = {self.top_k} exceeds n_experts = {self.n_experts}; lower top_k."
            )
        if self.embed_dim % 4:
            raise TacitError(
                f"embed_dim must be divisible by 4 (the four branches of Eq. 10), "
                f"got {self.embed_dim}."
            )
        if len(self.kernels) != 3 or any(size < 1 or size % 2 == 0 for size in self.kernels):
            raise TacitError(f"kernels must be three odd sizes, got {self.kernels!r}.")
        if self.schedule not in ("onecycle", "cosine"):
            raise TacitError(f"schedule must be onecycle or cosine, got {self.schedule!r}.")
        self._check_ranges()

    def _check_ranges(self) -> None:
        _check_range("patch_fraction", self.patch_fraction, 0.0, 1.0)
        _check_range("rho", self.rho, 0.0, 1.0)
        _check_range("learning_rate", self.learning_rate, 0.0, 1.0)
        if self.clip is not None:
            _check_range("clip", self.clip, 0.0, math.inf)
        for name in _NOT_NEGATIVE:
            if not 0.0 <= getattr(self, name) < math.inf:
                raise TacitError(f"{name} must be at least 0, got {getattr(self, name)!r}.")

    def patch_length(self, length: int) -> int:
        """The patch length m for series of `length` steps."""
        wanted = max(self.min_patch, round(self.patch_fraction * length))
        return max(1, min(wanted, length))

    def stride(self, length: int) -> int:
        """The stride s between two patches."""
        return max(1, self.patch_length(length) // self.patch_overlap)

    def n_patches(self, length: int) -> int:
        """P = floor((T - m) / s) + 1."""
        return (length - self.patch_length(length)) // self.stride(length) + 1

    def n_kept(self, n_patches: int) -> int:
        """k = ceil(rho P), Eq. 5."""
        return math.ceil(self.rho * n_patches)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "kernels": list(self.kernels)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> SoftShapeSettings:
        """Read back what `to_dict` wrote; refuse unknown keys."""
        unknown = set(plain) - {field.name for field in fields(cls)}
        if unknown:
            raise TacitError(
                f"unknown settings {sorted(unknown)}; was the file made by a newer version?"
            )
        kernels = tuple(plain.get("kernels", (9, 5, 3)))
        return cls(**{**plain, "kernels": kernels})


_WHOLE = (
    "embed_dim",
    "n_blocks",
    "min_patch",
    "patch_overlap",
    "basis_dim",
    "attention_dim",
    "n_experts",
    "top_k",
    "expert_dim",
    "bottleneck_dim",
    "steps",
    "batch_size",
)
_NOT_NEGATIVE = (
    "balance_weight",
    "basis_ridge",
    "label_smoothing",
    "view_jitter",
    "view_scale",
    "view_shift",
    "view_warp",
    "views",
    "weight_decay",
)


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low < value <= high:
        raise TacitError(f"{name} must lie in ({low:g}, {high:g}], got {value!r}.")
