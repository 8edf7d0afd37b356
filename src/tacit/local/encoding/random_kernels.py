"""Random-kernel features of a series: what a device computes before anything is randomised.

Two kinds of features, each over the series and over its first differences, each for any number
of channels, and each a plain NumPy computation so that a device runs exactly the code that the
trainer ran:

- proportions of positive values of convolutions with the 84 fixed kernels of MiniRocket
  (Dempster et al., 2021) at many dilations, above biases drawn from the training series;
- how often and how strongly each random kernel of a group responds most at a position (the
  competing kernels of Hydra, Dempster et al., 2023).

An encoder is fitted on training series and then public. It uses no labels. The default numbers of
kernels, and that quantile features are left out, were chosen by leave-one-out accuracy on the
training parts of 15 UCR sets that no benchmark here reports.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32
from tacit.features.counting import count_true

KERNEL_LENGTH = 9
_TAPS = np.array(list(itertools.combinations(range(KERNEL_LENGTH), 3)), dtype=np.intp)
N_KERNELS = len(_TAPS)  # 84
_MAX_DILATIONS = 32
_GOLDEN = (np.sqrt(5.0) + 1.0) / 2.0
_BATCH_VALUES = 2**19  # float32 values held at once: about what the cache of one core holds
_STACK_VALUES = 2**18  # of one series; dilations beyond that are encoded one after the other


def minirocket_kernels() -> Floats32:
    """The 84 kernels of length 9 with three weights of 2 and six of -1."""
    kernels = np.full((N_KERNELS, KERNEL_LENGTH), -1.0, dtype=np.float32)
    np.put_along_axis(kernels, _TAPS, 2.0, axis=1)
    return kernels


def windows(X: Floats32, *, dilations: tuple[int, ...]) -> Floats32:
    """All nine zero-padded shifts of every channel: (n, c, T) to (dilations, n, c * 9, T)."""
    n, channels, length = X.shape
    half = KERNEL_LENGTH // 2
    pad = max(dilations) * half
    padded = np.zeros((n, channels, length + 2 * pad), dtype=np.float32)
    padded[:, :, pad : pad + length] = X
    shape = (n, channels, KERNEL_LENGTH, length)
    shifts = np.empty((len(dilations), *shape), dtype=np.float32)
    *outer, step = padded.strides
    for copy, dilation in zip(shifts, dilations, strict=True):
        first = step * (pad - dilation * half)
        copy[:] = np.ndarray(
            shape, np.float32, padded, offset=first, strides=(*outer, step * dilation, step)
        )
    by_series: Floats32 = shifts.reshape(len(dilations), n, -1, length)
    return by_series


@dataclass(frozen=True, slots=True, eq=False)
class Proportions:
    """MiniRocket's pooling at dilations that have the same number of biases, f."""

    dilations: tuple[int, ...]
    kernels: Floats32  # (dilations, 84, channels * 9)
    biases: Floats32  # (dilations, 84, f)
    first_valid: tuple[int, ...]  # 0 or 1: which half of the kernels skips the zero-padded ends

    @property
    def per_dilation(self) -> int:
        """Features at one dilation: pools that differ in it cannot be joined."""
        return N_KERNELS * self.biases.shape[2]

    @property
    def width(self) -> int:
        """Values per time step while encoding one series."""
        return int(self.biases.size + self.kernels.shape[0] * self.kernels.shape[2])

    def encode(self, X: Floats32) -> Floats32:
        """Share of positions whose response exceeds each bias: (n, dilations * 84 * f).

        Every second kernel leaves out the steps where it would see padding, unless that were all.
        """
        response = self.kernels[:, None] @ windows(X, dilations=self.dilations)
        above = response[:, :, :, None] > self.biases[:, None, :, :, None]
        length = X.shape[-1]
        steps = np.full((len(above), 1, N_KERNELS, 1), length, dtype=np.float32)
        for i, (dilation, half) in enumerate(zip(self.dilations, self.first_valid, strict=True)):
            pad = dilation * (KERNEL_LENGTH // 2)
            if length > 2 * pad:
                above[i, :, half::2, :, :pad] = above[i, :, half::2, :, length - pad :] = False
                steps[i, :, half::2] = length - 2 * pad
        return (count_true(above) / steps).swapaxes(0, 1).reshape(len(X), -1)

    def joined(self, other: Proportions) -> Proportions:
        """One pool with the dilations of both."""
        return Proportions(
            self.dilations + other.dilations,
            np.concatenate([self.kernels, other.kernels]),
            np.concatenate([self.biases, other.biases]),
            self.first_valid + other.first_valid,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Competition:
    """Hydra's pooling: at each dilation, `groups` groups of competing kernels."""

    dilations: tuple[int, ...]
    kernels: Floats32  # (dilations, size * groups, channels * 9): first ones of all groups first
    groups: int

    @property
    def per_dilation(self) -> int:
        """Features at one dilation: pools that differ in it cannot be joined."""
        return 2 * self.kernels.shape[1]

    @property
    def width(self) -> int:
        """Values per time step while encoding one series."""
        return int(self.kernels.shape[0] * (self.kernels.shape[1] + self.kernels.shape[2]))

    def encode(self, X: Floats32) -> Floats32:
        """Square roots of how strongly, and how often, each kernel wins or loses its group."""
        response = self.kernels[:, None] @ windows(X, dilations=self.dilations)
        dilations, n, _, length = response.shape
        response = response.reshape(dilations, n, -1, self.groups, length)
        # Comparing with the extreme is several times faster here than looking for its index.
        wins = response == response.max(axis=2, keepdims=True)
        losses = response == response.min(axis=2, keepdims=True)
        strength = np.einsum("...t,...t->...", wins.astype(np.float32), response)
        steps = np.float32(length)
        both = np.stack([np.maximum(strength, 0.0) / steps, count_true(losses) / steps], axis=2)
        roots: Floats32 = np.sqrt(both).transpose(1, 0, 2, 4, 3).reshape(n, -1)
        return roots

    def joined(self, other: Competition) -> Competition:
        """One pool with the dilations of both."""
        kernels = np.concatenate([self.kernels, other.kernels])
        return Competition(self.dilations + other.dilations, kernels, self.groups)


Pool = Proportions | Competition
AnyPool = TypeVar("AnyPool", Proportions, Competition)


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """A fitted encoder: per representation (series, differences) its dilated kernels."""

    n_channels: int
    n_timepoints: int
    offset: Floats32  # (channels,) mean of the training series
    scale: Floats32  # (channels,) 1 / standard deviation of the training series
    pools: tuple[tuple[Pool, ...], ...]  # one tuple per order of differencing

    def encode(self, X: NDArray[np.floating[Any]]) -> Floats32:
        """Features (n, m) of series (n, channels, T); the same on the trainer and on a device."""
        widest = max(pool.width for pools in self.pools for pool in pools)
        step = max(1, _BATCH_VALUES // (self.n_timepoints * widest))
        starts = range(0, len(X), step)
        parts = [np.concatenate(self._parts(X[a : a + step]), axis=1) for a in starts]
        return np.concatenate(parts)

    def block_sizes(self) -> tuple[int, ...]:
        """Number of features of each kind, in the order in which `encode` lays them out."""
        probe = np.zeros((1, self.n_channels, self.n_timepoints))
        return tuple(part.shape[1] for part in self._parts(probe))

    def _parts(self, X: NDArray[np.floating[Any]]) -> list[Floats32]:
        level = _standardise(X, self.offset, self.scale)
        parts = []
        for pools in self.pools:
            for _, same in itertools.groupby(pools, key=type):
                parts.append(np.concatenate([pool.encode(level) for pool in same], axis=1))
            level = differences(level)
        return parts


def differences(X: Floats32) -> Floats32:
    """First differences along time, of the same length (the first one is 0)."""
    return np.diff(X, axis=-1, prepend=X[..., :1])


def fit_encoder(
    X: NDArray[np.floating[Any]],
    *,
    rng: np.random.Generator,
    n_proportions: int = 5040,
    n_groups: int = 32,
    group_size: int = 8,
) -> Encoder:
    """Draw kernels and fit their biases on training series (n, channels, T); no labels used."""
    offset = X.mean(axis=(0, 2)).astype(np.float32)
    spread = X.std(axis=(0, 2))
    scale = (1.0 / np.where(spread > 1e-12, spread, 1.0)).astype(np.float32)
    level = _standardise(X, offset, scale)
    pools: list[tuple[Pool, ...]] = []
    for _ in range(2):
        proportions = _fit_proportions(level, n_proportions, rng)
        competitions = _draw_competitions(X.shape[1], X.shape[2], n_groups, group_size, rng)
        pools.append((*_stacked(proportions, X.shape[2]), *_stacked(competitions, X.shape[2])))
        level = differences(level)
    return Encoder(X.shape[1], X.shape[2], offset, scale, tuple(pools))


def _stacked(pools: Sequence[AnyPool], length: int) -> list[AnyPool]:
    """Neighbours of one shape as one, as long as a series in it stays in the cache."""
    stacks: list[AnyPool] = []
    for pool in pools:
        last = stacks[-1] if stacks else None
        if (
            last is not None
            and last.per_dilation == pool.per_dilation
            and length * (last.width + pool.width) <= _STACK_VALUES
        ):
            stacks[-1] = last.joined(pool)
        else:
            stacks.append(pool)
    return stacks


def _standardise(X: NDArray[np.floating[Any]], offset: Floats32, scale: Floats32) -> Floats32:
    level: Floats32 = ((X - offset[:, None]) * scale[:, None]).astype(np.float32)
    return level


def _dilations(length: int, n_per_kernel: int) -> tuple[list[int], list[int]]:
    """Dilations on a logarithmic grid and the number of biases at each, as in MiniRocket."""
    count = max(1, min(n_per_kernel, _MAX_DILATIONS))
    top = np.log2(max(1.0, (length - 1) / (KERNEL_LENGTH - 1)))
    grid = np.logspace(0, top, count, base=2.0).astype(np.intp)
    dilations, times = np.unique(grid, return_counts=True)
    features = np.maximum(1, times * n_per_kernel // count)
    return dilations.tolist(), features.tolist()


def _fit_proportions(X: Floats32, n_features: int, rng: np.random.Generator) -> list[Proportions]:
    base = minirocket_kernels()
    pools, drawn = [], 0
    for index, (dilation, count) in enumerate(
        zip(*_dilations(X.shape[-1], max(1, n_features // N_KERNELS)), strict=True)
    ):
        kernels = _spread_over_channels(base, X.shape[1], rng)
        examples = X[rng.integers(len(X), size=N_KERNELS)]
        shifts = windows(examples, dilations=(dilation,))[0]
        response = np.einsum("ks,kst->kt", kernels, shifts)
        # Golden-ratio steps: the biases of all kernels together cover (0, 1) evenly.
        ranks = ((drawn + np.arange(N_KERNELS * count)) * _GOLDEN % 1.0).reshape(N_KERNELS, count)
        drawn += ranks.size
        biases = _quantiles(response, ranks)
        pools.append(Proportions((dilation,), kernels[None], biases[None], (index % 2,)))
    return pools


def _quantiles(values: Floats32, ranks: NDArray[np.float64]) -> Floats32:
    """Row-wise quantiles with linear interpolation: values (k, T), ranks (k, f)."""
    ordered = np.sort(values, axis=1)
    place = ranks * (values.shape[1] - 1)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, values.shape[1] - 1)
    low, high = (np.take_along_axis(ordered, where, axis=1) for where in (below, above))
    between: Floats32 = (low + (place - below) * (high - low)).astype(np.float32)
    return between


def _draw_competitions(
    channels: int, length: int, groups: int, size: int, rng: np.random.Generator
) -> list[Competition]:
    top = int(np.log2(max(1.0, (length - 1) / (KERNEL_LENGTH - 1))))
    pools = []
    for exponent in range(top + 1):
        base = rng.standard_normal((groups * size, KERNEL_LENGTH))
        base -= base.mean(axis=1, keepdims=True)
        base /= np.abs(base).sum(axis=1, keepdims=True)
        kernels = _spread_over_channels(base.astype(np.float32), channels, rng)
        by_rank = kernels.reshape(groups, size, -1).swapaxes(0, 1).reshape(1, groups * size, -1)
        pools.append(Competition((2**exponent,), by_rank, groups))
    return pools


def _spread_over_channels(base: Floats32, channels: int, rng: np.random.Generator) -> Floats32:
    """Give each kernel a random subset of the channels: (k, 9) to (k, channels * 9)."""
    if channels == 1:
        return base
    most = min(channels, KERNEL_LENGTH)
    sizes = np.floor(2.0 ** rng.uniform(0.0, np.log2(most + 1), size=len(base)))
    order = rng.random((len(base), channels)).argsort(axis=1)
    chosen = (order < sizes[:, None]).astype(np.float32)
    spread: Floats32 = (chosen[:, :, None] * base[:, None, :]).reshape(len(base), -1)
    return spread


def encoder_arrays(encoder: Encoder) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The encoder as named arrays and plain values, for a bundle."""
    arrays: dict[str, NDArray[Any]] = {"offset": encoder.offset, "scale": encoder.scale}
    described = []
    for order, pools in enumerate(encoder.pools):
        for index, pool in enumerate(pools):
            name = f"pool.{order}.{index}"
            entry = {"order": order, "name": name, "dilations": pool.dilations}
            if isinstance(pool, Proportions):
                arrays[f"{name}.biases"] = pool.biases
                taps = pool.kernels.reshape(-1, N_KERNELS, encoder.n_channels, KERNEL_LENGTH)
                arrays[f"{name}.channels"] = taps.any(axis=3)
                entry["first_valid"] = pool.first_valid
            else:
                arrays[f"{name}.kernels"] = pool.kernels
                entry["groups"] = pool.groups
            described.append(entry)
    return arrays, {
        "n_channels": encoder.n_channels,
        "n_timepoints": encoder.n_timepoints,
        "pools": described,
    }


def encoder_from_arrays(arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Encoder:
    """Rebuild what `encoder_arrays` described."""
    base = minirocket_kernels()
    pools: tuple[list[Pool], list[Pool]] = ([], [])
    for entry in values["pools"]:
        name, dilations = entry["name"], tuple(entry["dilations"])
        if "groups" in entry:
            pool: Pool = Competition(dilations, arrays[f"{name}.kernels"], entry["groups"])
        else:
            chosen = arrays[f"{name}.channels"].astype(np.float32)
            kernels = (chosen[..., None] * base[:, None, :]).reshape(*chosen.shape[:2], -1)
            biases = arrays[f"{name}.biases"]
            pool = Proportions(dilations, kernels, biases, tuple(entry["first_valid"]))
        pools[entry["order"]].append(pool)
    return Encoder(
        values["n_channels"],
        values["n_timepoints"],
        arrays["offset"],
        arrays["scale"],
        tuple(tuple(found) for found in pools),
    )
