"""The `label` release: the device classifies its series and sends one randomised symbol.

The device runs the encoder and the classifier in the clear, takes the most likely class, and
sends one symbol drawn from the channel's row of that class. The server takes the symbol as the
label, or asks for the posterior of the classes given the symbol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError
from tacit.local.encoding.body import Body
from tacit.local.release import Kind
from tacit.local.releases.channel import (
    ChannelKind,
    choose_channel,
    label_gain,
    posterior_table,
)
from tacit.local.releases.channel_head import ChannelHead
from tacit.local.releases.confusion import with_class_shares


@dataclass(frozen=True, slots=True, eq=False)
class LabelHead(ChannelHead):
    """The symbol is the device's own label, randomised; the guarantee is `ChannelHead`'s."""

    kind: ClassVar[Kind] = "label"

    def _check_shapes(self) -> None:
        if self.channel.shape != self.gain.shape or self.channel.ndim != 2:
            raise TacitError(
                f"the channel has shape {self.channel.shape}, the confusion {self.gain.shape}; "
                "both must be square and of one size, train again."
            )

    def summarise(self, X: Floats) -> Codes:
        """The device's own label of each series: private, not yet randomised."""
        return np.asarray(self.body.posterior(X).argmax(axis=1))

    def decide(self, values: Codes) -> Codes:
        """The server's label: the channel was built so that the symbol itself is the best guess."""
        return values

    def label_channel(self) -> Floats:
        """The channel itself: its symbols are labels."""
        return self.channel

    def labels_alone_decide(self) -> bool:
        """A symbol says nothing else."""
        return True

    def posterior(self, values: Codes) -> Floats:
        """P(class | symbol) by Bayes' rule through channel, confusion and class shares."""
        return np.asarray(posterior_table(self.gain, self.channel)[values])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays for a bundle."""
        return {"channel": self.channel, "gain": self.gain}


def fit_label(
    body: Body,
    held_out: Floats,
    y: Codes,
    *,
    epsilon: float,
    channel: ChannelKind,
    shares: Floats | None = None,
) -> LabelHead:
    """Build the channel for a trained body from its held-out posteriors on training series.

    `shares` are class shares that are expected among the releases instead of the training set's.
    """
    chosen = choose_channel(held_out, y, epsilon=epsilon, kind=channel, shares=shares)
    gain = label_gain(held_out, y)
    if shares is not None:
        gain = with_class_shares(gain, shares)
    return LabelHead(body, chosen, gain, epsilon)
