"""The `vector` release: class evidence as a few noisy numbers, for servers that need more.

The device turns its class posterior into a vector of a few dimensions with a learned, public
linear map, brings it into a ball of known radius, and randomises it once: by PrivUnitG on the unit
sphere, or by Laplace noise on the L1 ball, whichever is better at this epsilon and dimension.
The map and the server's classifier are trained together with the noise in the loop, on posteriors
of training series that the body had not seen.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError
from tacit.local.encoding.body import Body
from tacit.local.release import Kind
from tacit.local.releases.decoder import ServerNetwork, train_through_noise
from tacit.mechanisms import (
    SECRET_NOISE,
    PrivUnitG,
    calibrate_privunit,
    laplace_vectors,
    randomize_directions,
    second_moment,
)
from tacit.noise import NoiseSource
from tacit.system.progress import Progress

if TYPE_CHECKING:
    import torch


_CLIP_NORM = 1.0
_LARGEST_DIMENSION = 12


@dataclass(frozen=True, slots=True, eq=False)
class VectorHead:
    """A public map to d dimensions, a vector randomizer, and the server's classifier.

    Guarantee: `randomize` is `epsilon`-LDP (pure) when the whole series is replaced: its input
    lies on the unit sphere (PrivUnitG) or in the L1 ball of radius 1 (Laplace, sensitivity 2),
    whatever the series. Both are exact.
    Assumes: a secret, uniform noise source.
    Composes: releases about one series add up.
    Not covered: the training series; whether and when a device releases.
    """

    kind: ClassVar[Kind] = "vector"

    body: Body
    projection: Floats  # (classes, d)
    privunit: PrivUnitG | None  # None: Laplace
    server: ServerNetwork
    epsilon: float

    def __post_init__(self) -> None:
        if self.privunit is None:
            return
        if self.privunit.epsilon > self.epsilon or self.privunit.dimension != self.dimension:
            raise TacitError(
                f"the randomizer was calibrated for epsilon = {self.privunit.epsilon:g} and "
                f"{self.privunit.dimension} dimensions, not {self.epsilon:g} and "
                f"{self.dimension}; train again."
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on."""
        return (SECRET_NOISE,)

    @property
    def dimension(self) -> int:
        """How many numbers leave per series."""
        return int(self.projection.shape[1])

    @property
    def mechanism(self) -> str:
        """Which randomizer was chosen."""
        return "laplace" if self.privunit is None else "privunit"

    def summarise(self, X: Floats) -> Floats:
        """The private vector of each series, before clipping and noise."""
        return centred(self.body.posterior(X)) @ self.projection

    def randomize(self, summary: Floats, *, source: NoiseSource) -> Floats:
        """What leaves: d noisy numbers per series."""
        if self.privunit is None:
            return laplace_vectors(
                summary, clip_norm=_CLIP_NORM, epsilon=self.epsilon, source=source
            )
        noisy = randomize_directions(scaled_to_sphere(summary), self.privunit, source=source)
        return noisy.astype(np.float32).astype(np.float64)

    def check_values(self, values: NDArray[Any]) -> None:
        """Refuse vectors that this head cannot have released."""
        self.server.check_values(values)

    def decide(self, values: Floats) -> Codes:
        """The server's label: the most likely class."""
        return np.asarray(self.posterior(values).argmax(axis=1))

    def posterior(self, values: Floats) -> Floats:
        """The server's class probabilities given the noisy vector."""
        return self.server.posterior(values)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays for a bundle."""
        return {"projection": self.projection, **self.server.arrays()}

    def values(self) -> dict[str, Any]:
        """Plain values for a bundle."""
        return {"privunit": None if self.privunit is None else asdict(self.privunit)}

    @classmethod
    def from_arrays(
        cls, body: Body, arrays: dict[str, NDArray[Any]], values: dict[str, Any], *, epsilon: float
    ) -> VectorHead:
        """Rebuild what `arrays` and `values` described."""
        given = values["privunit"]
        privunit = None if given is None else PrivUnitG(**given)
        server = ServerNetwork.from_arrays(arrays)
        return cls(body, arrays["projection"], privunit, server, epsilon)


def centred(posterior: Floats) -> Floats:
    """The posterior minus the uniform one: what is left carries the evidence."""
    evidence: Floats = posterior - 1.0 / posterior.shape[1]
    return evidence


def scaled_to_sphere(vectors: Floats) -> Floats:
    """Each row divided by its L2 norm; the zero vector stays and is randomised to any sign."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    sphere: Floats = np.where(norms > 1e-12, vectors / np.maximum(norms, 1e-12), 0.0)
    return sphere


def _candidates(*, epsilon: float, dimension: int) -> list[PrivUnitG | None]:
    """PrivUnitG, Laplace (None), or both where neither is clearly noisier.

    Compared by the expected squared norm of a release of a unit vector, for Laplace after shrinking
    into the L1 ball by up to sqrt(d). Within a factor of four, accuracy under noise decides.
    """
    privunit = calibrate_privunit(epsilon=epsilon, dimension=dimension)
    scale = 2.0 * math.sqrt(dimension) / epsilon
    ratio = second_moment(privunit) / (1.0 + 2.0 * dimension * scale**2)
    both: list[PrivUnitG | None] = [privunit, None]
    return [privunit] if ratio < 0.25 else [None] if ratio > 4.0 else both


def fit_vector(
    body: Body,
    held_out: Floats,
    y: Codes,
    *,
    epsilon: float,
    rng: np.random.Generator,
    progress: Progress,
) -> VectorHead:
    """Train map and server for a few dimensions; keep the one with the best noisy accuracy."""
    n_classes = held_out.shape[1]
    most = min(n_classes - 1, _LARGEST_DIMENSION)
    heads = [
        _fit_one(body, held_out, y, d, privunit, epsilon=epsilon, rng=rng, progress=progress)
        for d in sorted({1, min(2, most), math.ceil(most / 2), most})
        for privunit in _candidates(epsilon=epsilon, dimension=d)
    ]
    return max(heads, key=lambda found: found[1])[0]


def _fit_one(
    body: Body,
    held_out: Floats,
    y: Codes,
    dimension: int,
    privunit: PrivUnitG | None,
    *,
    epsilon: float,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[VectorHead, float]:
    import torch

    n_classes = held_out.shape[1]
    start = np.linalg.qr(rng.standard_normal((n_classes, dimension)))[0]
    projection = torch.nn.Parameter(torch.from_numpy(start.astype(np.float32)))
    noise = torch.Generator()
    noise.manual_seed(int(rng.integers(2**31)))

    def release(evidence: torch.Tensor) -> torch.Tensor:
        vectors = evidence @ projection
        if privunit is None:
            return _noisy_laplace(vectors, epsilon, noise)
        return _noisy_privunit(vectors, privunit, noise)

    spread = 2.0 / epsilon if privunit is None else privunit.sigma
    scale = torch.full((dimension,), 1.0 / max(1.0, spread))
    server, accuracy = train_through_noise(
        release,
        [projection],
        centred(held_out),
        y,
        scale=lambda: scale,
        n_classes=n_classes,
        rng=rng,
        progress=progress,
    )
    learned = projection.detach().double().numpy().copy()
    return VectorHead(body, learned, privunit, server, epsilon), accuracy


def _noisy_laplace(vectors: torch.Tensor, epsilon: float, noise: torch.Generator) -> torch.Tensor:
    import torch

    norms = vectors.abs().sum(1, keepdim=True).clamp_min(_CLIP_NORM)
    uniform = torch.rand(vectors.shape, generator=noise).clamp(1e-6, 1.0 - 1e-6) - 0.5
    draws = -uniform.sign() * torch.log1p(-2.0 * uniform.abs())
    return vectors * (_CLIP_NORM / norms) + (2.0 * _CLIP_NORM / epsilon) * draws


def _noisy_privunit(
    vectors: torch.Tensor, params: PrivUnitG, noise: torch.Generator
) -> torch.Tensor:
    """The release of `randomize_directions`, with gradients to the direction."""
    import torch

    sphere = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-6)
    normal = torch.randn(vectors.shape, generator=noise)
    inside = torch.rand(len(vectors), generator=noise) < params.p
    mass = torch.rand(len(vectors), generator=noise, dtype=torch.float64).clamp(1e-12, 1.0)
    mass = mass * torch.where(inside, params.q, 1.0 - params.q)
    along = torch.special.ndtri(mass).float()
    wanted = torch.where(inside, -along, along)
    along_input = (wanted - (normal * sphere).sum(1))[:, None] * sphere
    noisy: torch.Tensor = params.sigma * (normal + along_input)
    return noisy
