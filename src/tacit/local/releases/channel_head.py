"""What the releases of one randomised symbol have in common: `label` and `place`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError
from tacit.local.encoding.body import Body
from tacit.local.releases.channel import check_channel
from tacit.mechanisms import SECRET_NOISE, randomize_through_channel
from tacit.noise import NoiseSource


@dataclass(frozen=True, slots=True, eq=False)
class ChannelHead(ABC):
    """A classifier on the device, a public channel, and what the server decodes with.

    Guarantee: `randomize` is `epsilon`-LDP (pure) when the whole series is replaced, exactly:
    everything before the channel is a function of the series, and the channel is checked in
    whole numbers when the head is made.
    Assumes: a secret, uniform noise source.
    Composes: releases about one series add up.
    Not covered: the training series; whether and when a device releases.
    """

    assumptions: ClassVar[tuple[str, ...]] = (SECRET_NOISE,)

    body: Body
    channel: Floats  # (symbols, symbols)
    gain: Floats  # (classes, classes): joint shares of (device label, true class)
    epsilon: float

    def __post_init__(self) -> None:
        self._check_shapes()
        check_channel(self.channel, epsilon=self.epsilon)

    @abstractmethod
    def _check_shapes(self) -> None:
        """Refuse arrays that do not fit one another."""

    @abstractmethod
    def decide(self, values: Codes) -> Codes:
        """The server's label of each symbol."""

    @abstractmethod
    def label_channel(self) -> Floats:
        """P(decided label | device label), one row per device label."""

    @abstractmethod
    def labels_alone_decide(self) -> bool:
        """Whether `label_channel` holds whatever else the symbol says of a series."""

    def randomize(self, summary: Codes, *, source: NoiseSource) -> Codes:
        """What leaves: one symbol per series."""
        return randomize_through_channel(summary, channel=self.channel, source=source)

    def check_values(self, values: NDArray[Any]) -> None:
        """Refuse symbols that this head cannot have released."""
        if values.size and not 0 <= values.min() <= values.max() < len(self.channel):
            raise TacitError(
                f"released symbols span {values.min()}..{values.max()}, outside "
                f"0..{len(self.channel) - 1}; they belong to another model."
            )
