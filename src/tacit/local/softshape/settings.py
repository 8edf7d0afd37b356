"""The settings of the SoftShape network and of its training: plain values, two presets.

`paper` is DP-SoftShape to the letter, `tuned` the network of better accuracy; both are one setting
for every data set. docs/guarantees/published-softshape.md has the source of every value.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from tacit.errors import TacitError, check_at_least

Schedule = Literal["onecycle", "cosine"]
Preset = Literal["paper", "tuned"]
KernelBasis = Literal["fitted", "free"]
Pooling = Literal["mean-max", "mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftShapeSettings:
    """One setting for every data set; names follow the paper's notation section.

    The defaults are the preset `tuned`; `preset_settings` has both.
    `patch_fraction`: m / T; `patch_stride`: s, or None for m / `patch_overlap`; `rho`: the share of
    patches kept (Eq. 5); `clip`: L1 bound of one patch's embedding (Section 3.1.3), or None.
    `kernel_basis`: W_e is a free kernel, or coefficients of `basis_dim` axes fitted to the patches;
    `unit_tokens`: each series' tokens are scaled to unit size before the paths of Eq. 11;
    `pooling`: what the head sees of the tokens; `dropout`: on the embeddings, in training.
    `epochs`: passes over the training series, or None for `steps` batches whatever their number.
    The three switches are the paper's ablations: `use_moe` (Eq. 8-9), `soft` (fused background
    token and scores as weights, Eq. 6-7), `attention_guided` (Eq. 4; off: scale 1/epsilon).
    `views`: randomly shifted, warped, scaled and jittered copies of each training series.
    """

    embed_dim: int = 128
    n_blocks: int = 1
    patch_fraction: float = 0.15
    min_patch: int = 8
    patch_overlap: int = 6
    patch_stride: int | None = None
    kernel_basis: KernelBasis = "fitted"
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
    dropout: float = 0.0
    unit_tokens: bool = True
    pooling: Pooling = "mean-max"
    use_moe: bool = True
    soft: bool = True
    attention_guided: bool = True
    attention_bias: float = 0.0
    balance_weight: float = 0.001
    steps: int = 300
    epochs: int | None = None
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
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise TacitError(
                    f"{name} must be {' or '.join(allowed)}, got {getattr(self, name)!r}."
                )
        for name in ("epochs", "patch_stride"):
            if getattr(self, name) is not None:
                check_at_least(getattr(self, name), 1, name=name)
        self._check_ranges()

    def _check_ranges(self) -> None:
        _check_range("patch_fraction", self.patch_fraction, 0.0, 1.0)
        _check_range("rho", self.rho, 0.0, 1.0)
        _check_range("learning_rate", self.learning_rate, 0.0, 1.0)
        if self.clip is not None:
            _check_range("clip", self.clip, 0.0, math.inf)
        if not 0.0 <= self.dropout < 1.0:
            raise TacitError(f"dropout must lie in [0, 1), got {self.dropout!r}.")
        for name in _NOT_NEGATIVE:
            if not 0.0 <= getattr(self, name) < math.inf:
                raise TacitError(f"{name} must be at least 0, got {getattr(self, name)!r}.")

    def patch_length(self, length: int) -> int:
        """The patch length m for series of `length` steps."""
        wanted = max(self.min_patch, round(self.patch_fraction * length))
        return max(1, min(wanted, length))

    def stride(self, length: int) -> int:
        """The stride s between two patches."""
        if self.patch_stride is not None:
            return self.patch_stride
        return max(1, self.patch_length(length) // self.patch_overlap)

    def n_patches(self, length: int) -> int:
        """P = floor((T - m) / s) + 1."""
        return (length - self.patch_length(length)) // self.stride(length) + 1

    def n_kept(self, n_patches: int) -> int:
        """k = ceil(rho P), Eq. 5."""
        return math.ceil(self.rho * n_patches)

    def n_steps(self, n_series: int) -> int:
        """How many batches the training takes."""
        if self.epochs is None:
            return self.steps
        return self.epochs * math.ceil(n_series / self.batch_size)

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


# What the paper says, then what SoftShape's own code has, then what one global choice on training
# series gave; everything else is as in `tuned` because the paper fixes it there too.
_PAPER: dict[str, Any] = {
    "clip": 1.0,
    "learning_rate": 1e-3,
    "batch_size": 32,
    "schedule": "cosine",
    "unit_tokens": False,
    "pooling": "mean",
    "views": 0,
    "kernel_basis": "free",
    "n_experts": 8,
    "patch_stride": 4,
    "rho": 0.5,
    "expert_dim": 128,
    "kernels": (39, 19, 9),
    "dropout": 0.15,
    "epochs": 500,
    "patch_fraction": 0.15,
}
PRESETS: dict[str, dict[str, Any]] = {"paper": _PAPER, "tuned": {}}


def preset_settings(preset: str, **changes: Any) -> SoftShapeSettings:
    """The settings of a preset, `paper` or `tuned`, with some of them changed by name.

    `steps` takes the place of the preset's epochs.
    """
    if preset not in PRESETS:
        raise TacitError(f"preset must be paper or tuned, got {preset!r}.")
    known = {field.name for field in fields(SoftShapeSettings)}
    unknown = set(changes) - known
    if unknown:
        raise TacitError(f"unknown settings {sorted(unknown)}; use some of {sorted(known)}.")
    if "steps" in changes:
        changes = {"epochs": None, **changes}
    return SoftShapeSettings(**{**PRESETS[preset], **changes})


_CHOICES = {
    "schedule": ("onecycle", "cosine"),
    "kernel_basis": ("fitted", "free"),
    "pooling": ("mean-max", "mean"),
}
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
