"""Audit a release of the local family: a saved bundle, or a model trained here for the audit.

The device's encoder is a function of the series, so it runs once per candidate; what is run a
million times is the randomizer itself, on the worst inputs that were found: candidate series that
look like nothing in particular or like trouble, and the extremes that no series need reach.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.audit.bounds import DpClaim
from tacit.audit.engine import Audited
from tacit.audit.finite_laws import channel_law
from tacit.audit.laws import Law, PrivUnitLaw, vector_law
from tacit.audit.setting import Setting
from tacit.errors import BundleError, check_epsilon
from tacit.guarantee import Guarantee
from tacit.local.release import SYMBOL_KINDS
from tacit.noise import SYSTEM_NOISE, NoiseSource, float_laplace
from tacit.system.progress import silent

if TYPE_CHECKING:
    from tacit.local.model import LocalModel
    from tacit.local.releases.label import LabelHead
    from tacit.local.releases.place import PlaceHead
    from tacit.local.releases.shapes import ShapesHead
    from tacit.local.releases.vector import VectorHead

    Head = LabelHead | PlaceHead | VectorHead | ShapesHead

Pair = tuple[Any, Any]

_MOST_PAIRS = 8
_PATCH_VALUES = 8  # coordinates of a published patch that are looked at: enough to tell


def audited_bundle(path: Path, *, claim: float | None = None) -> Audited:
    """Load a bundle as a device would and audit its release against the epsilon it states.

    A published bundle states no guarantee: it is refuted whatever its nominal epsilon, and the
    runs show how much of that can be seen.
    """
    from tacit.local.bundle import read_bundle
    from tacit.local.model import load_model

    file = _bundle_file(path)
    arrays, values = read_bundle(file)
    if "published" in values:
        return _audited_published(arrays, values["published"], name=str(path), claim=claim)
    model = load_model(file)
    tested = model.head.epsilon if claim is None else check_epsilon(claim, name="claim")
    return audited_model(model, name=str(path), claim=tested)


def audited_model(
    model: LocalModel, *, name: str, claim: float, source: NoiseSource = SYSTEM_NOISE
) -> Audited:
    """The release of `model` on the worst pairs found among candidate series and extremes."""
    series = candidate_series(model.n_channels, model.n_timepoints)
    reached = model.head.summarise(model.check_series(series))
    return _audited_head(
        model.head, reached, name=name, claim=claim, source=source, guarantee=model.guarantee
    )


def candidate_series(n_channels: int, n_timepoints: int, *, seed: int = 0) -> Floats:
    """Series (n, channels, T) of many kinds: noise, walks, waves, spikes, steps, tiny and huge."""
    rng = np.random.default_rng(seed)
    shape = (4, n_channels, n_timepoints)
    steps = np.arange(n_timepoints) / n_timepoints
    spike = np.zeros((2, n_channels, n_timepoints))
    spike[0, :, 0], spike[1, :, n_timepoints // 2] = 1.0, -1.0
    waves = [np.sin(2.0 * np.pi * k * steps + 0.1) for k in (1, 2, 5)]
    noise, walks = rng.normal(size=shape), rng.normal(size=shape).cumsum(axis=2)
    level = np.where(steps < 0.5, -1.0, 1.0) + 1e-3 * steps
    shaped = np.broadcast_to(
        np.array([*waves, steps, level])[:, None, :], (5, n_channels, n_timepoints)
    )
    return np.concatenate([noise, walks, shaped, -shaped, spike, 1e4 * walks[:2], 1e-4 * noise[:2]])


def local_release(kind: str, setting: Setting) -> Audited:
    """A release of this kind from a model trained on a small embedded data set."""
    from tacit.data import load_dataset

    dataset = load_dataset("ItalyPowerDemand")
    classes, y = np.unique(dataset.y_train, return_inverse=True)
    head = _train_head(kind, dataset.X_train, y, n_classes=len(classes), epsilon=setting.epsilon)
    series = [candidate_series(*dataset.X_train.shape[1:]), dataset.X_test[:40]]
    reached = head.summarise(np.concatenate(series))
    name = f"local-{kind}"
    return _audited_head(head, reached, name=name, claim=setting.claim, source=setting.source)


def _train_head(
    kind: str, X: Floats, y: NDArray[np.intp], *, n_classes: int, epsilon: float
) -> Head:
    from tacit.local.encoding.body import train_kernels
    from tacit.local.releases.label import fit_label
    from tacit.local.releases.place import fit_place
    from tacit.local.releases.shapes import fit_shapes
    from tacit.local.releases.vector import fit_vector

    rng = np.random.default_rng(0)
    if kind == "shapes":
        return fit_shapes(X, y, n_classes=n_classes, epsilon=epsilon, rng=rng, progress=silent)
    trained = train_kernels(X, y, n_classes=n_classes, rng=rng)
    body, held_out = trained.body, trained.held_out
    if kind == "place":
        return fit_place(body, held_out, X, y, epsilon=epsilon, rng=rng)
    if kind == "vector":
        return fit_vector(body, held_out, y, epsilon=epsilon, rng=rng, progress=silent)
    return fit_label(body, held_out, y, epsilon=epsilon, channel="optimal")


def _audited_head(
    head: Head,
    reached: NDArray[Any],
    *,
    name: str,
    claim: float,
    source: NoiseSource,
    guarantee: Guarantee | None = None,
) -> Audited:
    def run(x: Any, count: int) -> NDArray[Any]:
        rows = np.repeat(np.asarray(x)[None], count, axis=0)
        return np.asarray(head.randomize(rows, source=source))

    pairs = _symbol_pairs(head) if head.kind in SYMBOL_KINDS else _vector_pairs(reached)
    return Audited(name, DpClaim(epsilon=claim), run, pairs, guarantee, _law_of(head))


def _law_of(head: Any) -> Law:
    """What the head says of its own outputs."""
    if head.kind in SYMBOL_KINDS:
        return channel_law(head.channel)
    if head.kind == "shapes":
        budgets = head.epsilon * head.shares[head.shares > 0.0]
        width = head.projection.shape[-1]
        return vector_law(np.repeat(budgets, width).tolist(), parts=budgets.size)
    if head.privunit is not None:
        return PrivUnitLaw(head.privunit, single=True)
    return vector_law([head.epsilon] * head.dimension)


def _audited_published(
    arrays: dict[str, NDArray[Any]], values: dict[str, Any], *, name: str, claim: float | None
) -> Audited:
    """One patch of the published release; less than what leaves, so the bound stands."""
    from tacit.local.softshape.leakage import release_law
    from tacit.local.softshape.published import from_state_arrays

    trained = from_state_arrays(arrays, values)
    if trained.epsilon is None:
        raise BundleError(f"{name} holds a network without noise; there is no epsilon to test.")
    nominal = trained.epsilon
    series = candidate_series(trained.network.n_channels, trained.network.length)
    centres, scales = release_law(trained, series, epsilon=nominal)
    patch = int(np.argmax(scales.max(axis=0) / scales.min(axis=0)))
    centres, scales = centres[:, patch, :_PATCH_VALUES], scales[:, patch]

    def run(i: int, count: int) -> Floats:
        shape = (count, centres.shape[1])
        return np.asarray(centres[i] + float_laplace(shape, scale=scales[i], source=SYSTEM_NOISE))

    order = np.argsort(scales)
    pairs = [(int(order[0]), int(order[-1])), (int(order[0]), int(order[len(order) // 2]))]
    tested = nominal if claim is None else check_epsilon(claim, name="claim")
    return Audited(name, DpClaim(epsilon=tested), run, pairs, trained.guarantee)


def _symbol_pairs(head: Any) -> list[Pair]:
    """For each output the device labels most and least likely to give it: the worst of all."""
    most, least = head.channel.argmax(axis=0), head.channel.argmin(axis=0)
    ratio = head.channel.max(axis=0) / np.maximum(head.channel.min(axis=0), 1e-300)
    worst = np.argsort(-ratio)[:_MOST_PAIRS]
    pairs = {(int(most[k]), int(least[k])) for k in worst if most[k] != least[k]}
    return sorted(pairs) or [(0, len(head.channel) - 1)]


def _vector_pairs(reached: Floats) -> list[Pair]:
    """Summaries of candidate series that lie farthest apart, and opposite extremes."""
    flat = reached.reshape(len(reached), -1)
    # By direction: clipping makes lengths alike.
    unit = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
    apart = np.triu(np.linalg.norm(unit[:, None] - unit[None], axis=2), k=1)
    order = np.argsort(apart, axis=None)[::-1][: _MOST_PAIRS // 2]
    found = [divmod(int(index), len(flat)) for index in order]
    pairs: list[Pair] = [(reached[i], reached[j]) for i, j in found]
    extreme = np.zeros(reached.shape[1:])
    extreme[..., 0] = 1.0  # norm 1 in every released part, whatever the norm
    return [*pairs, (extreme, -extreme), (extreme, np.zeros_like(extreme))]


def _bundle_file(path: Path) -> Path:
    """The bundle itself, or the one bundle in a folder that a training wrote."""
    if not path.is_dir():
        return path
    files = [file for kind in ("*.tacit", "*.safetensors") for file in sorted(path.glob(kind))]
    if len(files) != 1:
        raise BundleError(
            f"{path} holds {len(files)} bundles (.tacit or .safetensors); name the file to audit."
        )
    return files[0]
