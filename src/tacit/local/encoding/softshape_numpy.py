"""The SoftShape network without noise, in NumPy: how a device runs it as an encoder.

Same equations and parameter names as `tacit.local.softshape.network`; a test compares the two to
1e-5. The device runs it in the clear, and only what comes after (a channel or a clipped, noised
vector) leaves, so nothing here is random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Floats32

_CHUNK = 64
_EPS = float(np.finfo(np.float32).eps)  # torch's default inside RMSNorm


def scale_series(
    X: NDArray[np.floating[Any]], *, per_series: bool, offset: Floats, spread: Floats
) -> Floats32:
    """Series (n, channels, T) as the network takes them; a constant series becomes zeros.

    Each by its own mean and deviation, or every channel by those of training.
    """
    if per_series:
        centred, by = X - X.mean(axis=2, keepdims=True), X.std(axis=2, keepdims=True)
    else:
        centred, by = X - offset[:, None], spread[:, None]
    return np.asarray(centred / np.where(by > 1e-8, by, 1.0), dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class SoftShapeEncoder:
    """The network's pooled representation (n, D), from its weights by name."""

    weights: dict[str, Floats32]
    offset: NDArray[np.float64]
    spread: NDArray[np.float64]
    per_series: bool
    n_channels: int
    n_timepoints: int
    patch_length: int
    stride: int
    rho: float
    top_k: int
    clip: float | None
    use_moe: bool
    soft: bool
    kernels: tuple[int, int, int]
    n_blocks: int
    unit_tokens: bool = True  # bundles from before these two options have the defaults
    pooling: str = "mean-max"

    def encode(self, X: NDArray[np.floating[Any]]) -> Floats32:
        """Pooled representations of series (n, channels, T)."""
        parts = [self._encode(X[a : a + _CHUNK]) for a in range(0, len(X), _CHUNK)]
        return np.concatenate(parts)

    def _encode(self, X: NDArray[np.floating[Any]]) -> Floats32:
        scaled = scale_series(X, per_series=self.per_series, offset=self.offset, spread=self.spread)
        tokens = self._embed(scaled)
        for block in range(self.n_blocks):
            alpha = self._attention(tokens)
            tokens = self._block(f"blocks.{block}.", tokens, alpha)
        if self.pooling == "mean":
            averaged: Floats32 = tokens.mean(axis=1)
            return averaged
        shapes = tokens[:, :-1] if self.soft else tokens  # without the background token
        pooled: Floats32 = np.concatenate([tokens.mean(axis=1), shapes.max(axis=1)], axis=-1)
        return pooled

    def _embed(self, X: Floats32) -> Floats32:
        view = np.lib.stride_tricks.sliding_window_view(X, self.patch_length, axis=2)
        patches = view[:, :, :: self.stride].transpose(0, 2, 1, 3)
        flat = patches.reshape(len(X), patches.shape[1], -1)
        kernel = self.weights["coefficients"] @ self.weights["basis"]
        embedded = flat @ kernel.T + self.weights["bias"]
        embedded += self.weights["positions"]
        if self.clip is not None:
            norm = np.abs(embedded).sum(axis=-1, keepdims=True)
            embedded *= np.float32(self.clip) / np.maximum(norm, np.float32(self.clip))
        return embedded

    def _attention(self, tokens: Floats32) -> Floats32:
        inner = np.tanh(self._linear("gate.inner.", tokens))
        scores = self._linear("gate.outer.", inner)[..., 0]
        return 1.0 / (1.0 + np.exp(-scores))

    def _block(self, name: str, tokens: Floats32, alpha: Floats32) -> Floats32:
        normed = self._sparsify(tokens, alpha)
        if self.unit_tokens:
            normed = unit_scale(normed)
        total = normed + self._inception(f"{name}inception.", normed)
        if self.use_moe:
            total = total + self._mixture(f"{name}mixture.", normed)
        return self._rms_norm(f"{name}norm_out.weight", total)

    def _sparsify(self, tokens: Floats32, alpha: Floats32) -> Floats32:
        n_kept = math.ceil(self.rho * alpha.shape[1])
        kept = np.sort(np.argsort(-alpha, axis=1, kind="stable")[:, :n_kept], axis=1)
        if not self.soft:
            return np.take_along_axis(tokens, kept[..., None], axis=1)
        weighted = alpha[..., None] * tokens
        top = np.take_along_axis(weighted, kept[..., None], axis=1)
        fused = weighted.sum(axis=1, keepdims=True) - top.sum(axis=1, keepdims=True)
        if n_kept == alpha.shape[1]:
            fused = np.zeros_like(top[:, :1])
        return np.concatenate([top, fused], axis=1)

    def _mixture(self, name: str, tokens: Floats32) -> Floats32:
        logits = tokens @ self.weights[f"{name}router.weight"].T
        shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities = shifted / shifted.sum(axis=-1, keepdims=True)
        order = np.argsort(-probabilities, axis=-1, kind="stable")[..., : self.top_k]
        gates = np.zeros_like(probabilities)
        chosen = np.take_along_axis(probabilities, order, axis=-1)
        np.put_along_axis(gates, order, chosen, axis=-1)
        hidden = gelu(self._linear(f"{name}rise.", tokens)).reshape(*gates.shape, -1)
        mixed = (hidden * gates[..., None]).reshape(*gates.shape[:-1], -1)
        result: Floats32 = (
            mixed @ self.weights[f"{name}fall"] + gates @ self.weights[f"{name}fall_bias"]
        )
        return result

    def _inception(self, name: str, tokens: Floats32) -> Floats32:
        weight = self.weights[f"{name}weight"]
        reach = weight.shape[2]
        narrow = tokens @ self.weights[f"{name}bottleneck.weight"].T
        padded = np.pad(narrow, ((0, 0), (reach // 2, reach // 2), (0, 0)))
        view = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=1)
        flat = view.reshape(*view.shape[:2], -1)
        kernel = (weight * self._support(reach, len(weight) // 3)).reshape(len(weight), -1)
        branches = flat @ kernel.T + self.weights[f"{name}bias"]
        pooled = self._linear(f"{name}pooled.", tokens.mean(axis=1, keepdims=True))
        pooled = np.broadcast_to(pooled, (*branches.shape[:2], pooled.shape[-1]))
        return np.concatenate([branches, pooled], axis=-1)

    def _support(self, reach: int, branch: int) -> Floats32:
        distance = np.abs(np.arange(reach) - reach // 2)
        rows = [(distance <= size // 2).astype(np.float32) for size in self.kernels]
        return np.repeat(np.stack(rows), branch, axis=0)[:, None]

    def _linear(self, name: str, values: Floats32) -> Floats32:
        result: Floats32 = values @ self.weights[f"{name}weight"].T + self.weights[f"{name}bias"]
        return result

    def _rms_norm(self, name: str, values: Floats32) -> Floats32:
        size = np.sqrt(np.mean(values**2, axis=-1, keepdims=True) + np.float32(_EPS))
        result: Floats32 = values / size * self.weights[name]
        return result

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Named arrays and plain values for a bundle."""
        arrays: dict[str, NDArray[Any]] = {f"network.{k}": v for k, v in self.weights.items()}
        arrays["offset"], arrays["spread"] = self.offset, self.spread
        values = {
            name: getattr(self, name)
            for name in self.__slots__
            if name not in ("weights", "offset", "spread", "kernels")
        }
        return arrays, {**values, "kernels": list(self.kernels)}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]
    ) -> SoftShapeEncoder:
        """Rebuild what `arrays` described."""
        prefix = "network."
        weights = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        plain = {**values, "kernels": tuple(values["kernels"])}
        return cls(weights=weights, offset=arrays["offset"], spread=arrays["spread"], **plain)


def gelu(values: Floats32) -> Floats32:
    """x * Phi(x), with the error function to 2e-7 (Abramowitz and Stegun, 7.1.26)."""
    z = np.abs(values) * np.float32(math.sqrt(0.5))
    t = 1.0 / (1.0 + np.float32(0.3275911) * z)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    tail = series.astype(np.float32) * np.exp(-z * z)
    result: Floats32 = np.where(values >= 0.0, values * (1.0 - 0.5 * tail), values * 0.5 * tail)
    return result


def unit_scale(tokens: Floats32) -> Floats32:
    """Divide each series' tokens by their common root mean square."""
    size = np.sqrt(np.mean(tokens**2, axis=(1, 2), keepdims=True) + np.float32(1e-6))
    result: Floats32 = tokens / size
    return result
