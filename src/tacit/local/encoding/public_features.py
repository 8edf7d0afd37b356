"""The encoder of a model that a fleet trained: public features, rebuilt from their seed.

Nothing of the map is in a bundle but the numbers that it grows from, so a bundle stays small and
nobody's data can be in its encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32
from tacit.errors import BundleError
from tacit.features.feature_map import FEATURE_VERSION, FeatureMap, public_features


@dataclass(frozen=True, slots=True, eq=False)
class PublicEncoder:
    """Series (n, channels, T) to unit rows (n, features), the last column a constant."""

    features: FeatureMap

    def encode(self, X: NDArray[np.floating[Any]]) -> Floats32:
        """The public features of each series."""
        return self.features.transform(np.asarray(X, dtype=np.float64)).astype(np.float32)

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """No array, and the plain values that the map grows from."""
        return {}, {
            "n_channels": self.features.n_channels,
            "length": self.features.length,
            "n_kernels": self.features.n_kernels,
            "seed": self.features.seed,
            "feature_version": FEATURE_VERSION,
        }

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> PublicEncoder:
        """Rebuild what `arrays` described; another version of the features is refused."""
        if values["feature_version"] != FEATURE_VERSION:
            raise BundleError(
                f"this bundle is for version {values['feature_version']!r} of the public features "
                f"and this is version {FEATURE_VERSION}; export it again with the installed "
                "version."
            )
        grown = {name: int(values[name]) for name in ("n_channels", "length", "n_kernels", "seed")}
        return cls(public_features(**grown))
