"""What a device without NumPy needs of a model, as plain tables: one place knows the encoders.

A portable model is read by the writers of the `web` and `c` formats and by the reference
(`tacit.local.exports.reference`). Its channel is in whole numbers already: the running sums of each
row in units of 2**-62, as `tacit.mechanisms` samples it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32
from tacit.errors import TacitError
from tacit.local.encoding.body import Body
from tacit.local.encoding.random_kernels import (
    KERNEL_LENGTH,
    N_KERNELS,
    Encoder,
    Pool,
    Proportions,
)
from tacit.local.model import LocalModel
from tacit.local.release import Kind
from tacit.local.releases.label import LabelHead
from tacit.local.releases.place import PlaceHead, edges_of
from tacit.mechanisms import channel_thresholds


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PortablePool:
    """The kernels of one dilation, over the series (order 0) or its differences (order 1).

    With `size` 0 the pool holds proportions: `values` are the biases (84, `count`), `channels`
    (84, channels) says which channels a kernel sees, and kernels whose number has the parity
    `skip` leave out the steps that would see padding. Otherwise `count` groups of `size` kernels
    compete: `values` are the kernels (size * count, channels * 9), kernel r of group g in row
    r * count + g.
    """

    order: int
    dilation: int
    count: int
    size: int
    skip: int
    values: Floats32
    channels: NDArray[np.uint8]

    @property
    def n_features(self) -> int:
        """How many features the pool gives."""
        return 2 * self.size * self.count if self.size else N_KERNELS * self.count


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PortableBody:
    """An encoder as a list of pools, and the linear classifier on its features."""

    offset: Floats32
    scale: Floats32
    pools: tuple[PortablePool, ...]
    weights: Floats32  # (features, classes)
    intercept: Floats32

    @property
    def n_features(self) -> int:
        """How many features a series has."""
        return len(self.weights)

    @property
    def padding(self) -> int:
        """The most steps beyond either end that a kernel reaches."""
        return max(pool.dilation for pool in self.pools) * (KERNEL_LENGTH // 2)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PortableModel:
    """Everything that a release needs; `locator` and `fill` only for places."""

    kind: Kind
    identity: str
    guarantee: dict[str, Any]
    epsilon: float
    classes: tuple[str, ...]
    n_channels: int
    n_timepoints: int
    body: PortableBody
    locator: PortableBody | None
    fill: Floats32 | None  # (channels, T)
    edges: tuple[int, ...]  # of the places; (0, T) without places
    thresholds: NDArray[np.int64]  # (symbols, symbols)

    @property
    def n_places(self) -> int:
        """Parts that a series is cut into, 1 for label releases."""
        return len(self.edges) - 1

    @property
    def bodies(self) -> tuple[PortableBody, ...]:
        """The body, and the locator where there is one."""
        return (self.body,) if self.locator is None else (self.body, self.locator)


def portable_model(model: LocalModel, *, format: str) -> PortableModel:
    """The tables of a model, or one sentence if the format cannot hold it."""
    head = model.head
    if not isinstance(head, (LabelHead, PlaceHead)):
        raise TacitError(
            f"format {format!r} makes label and place releases, this model makes {head.kind!r} "
            "releases; export it with format 'npz'."
        )
    places = head if isinstance(head, PlaceHead) else None
    edges = edges_of(model.n_timepoints, 1 if places is None else places.n_places)
    return PortableModel(
        kind=head.kind,
        identity=model.identity,
        guarantee=model.guarantee.to_dict(),
        epsilon=head.epsilon,
        classes=model.classes,
        n_channels=model.n_channels,
        n_timepoints=model.n_timepoints,
        body=_body(head.body, format),
        locator=None if places is None else _body(places.locator, format),
        fill=None if places is None else places.fill,
        edges=tuple(int(edge) for edge in edges),
        thresholds=channel_thresholds(head.channel),
    )


def _body(body: Body, format: str) -> PortableBody:
    """Random kernels; whoever adds an encoder to the formats dispatches on it here."""
    if body.kind == "public":
        raise TacitError(
            f"format {format!r} holds random kernels of its own, this model has the public "
            "features that a fleet trained on; export it with format 'npz', for devices with NumPy."
        )
    if not isinstance(body.encoder, Encoder):
        raise TacitError(
            f"format {format!r} holds random kernels, this model has the encoder {body.kind!r}; "
            "export it with format 'npz', or train with encoder 'kernels'."
        )
    encoder, classifier = body.encoder, body.classifier
    pools = (
        one
        for order, stacked in enumerate(encoder.pools)
        for pool in stacked
        for one in _dilations(pool, order, encoder.n_channels)
    )
    return PortableBody(
        offset=encoder.offset,
        scale=encoder.scale,
        pools=tuple(pools),
        weights=classifier.weights,
        intercept=classifier.intercept,
    )


def _dilations(pool: Pool, order: int, n_channels: int) -> Iterator[PortablePool]:
    for index, dilation in enumerate(pool.dilations):
        if isinstance(pool, Proportions):
            taps = pool.kernels[index].reshape(N_KERNELS, n_channels, KERNEL_LENGTH)
            count, size, skip = pool.biases.shape[2], 0, pool.first_valid[index]
            values, channels = pool.biases[index], taps.any(axis=2).astype(np.uint8)
        else:
            count, size, skip = pool.groups, pool.kernels.shape[1] // pool.groups, 0
            values, channels = pool.kernels[index], np.zeros((0, n_channels), dtype=np.uint8)
        yield PortablePool(
            order=order, dilation=dilation, count=count, size=size, skip=skip,
            values=values, channels=channels,
        )  # fmt: skip
