"""What every export shares: refusals in one sentence, golden vectors, and the NumPy runtime."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from exported import exported, golden, model, portable, problem
from local_problems import label_head, trained
from tacit.arrays import Floats, Floats32
from tacit.data import load_dataset
from tacit.errors import BundleError, TacitError
from tacit.local.device import Device
from tacit.local.encoding.body import Body
from tacit.local.encoding.softshape_numpy import SoftShapeEncoder
from tacit.local.exports.golden import (
    NUMPY_TOLERANCE,
    NUMPY_TOLERANCE_SHARE,
    feature_hash,
    golden_json,
    golden_series,
    golden_vectors,
)
from tacit.local.exports.reference import reference_features
from tacit.local.exports.write import Format, export_model
from tacit.local.model import LocalModel
from tacit.local.releases.vector import VectorHead

NAMES = ("italy 2.0", "gunpoint label", "gunpoint place", "channels")


def numpy_features(name: str, rows: list[Floats]) -> Floats32:
    encoder = model(name).head.body.encoder  # type: ignore[union-attr]
    return np.concatenate([encoder.encode(row[None]) for row in rows])


@pytest.mark.seconds
@pytest.mark.parametrize("name", NAMES)
def test_numpy_finds_the_golden_features_labels_and_places(name: str) -> None:
    vectors = (*golden(name), *golden_vectors(portable(name), golden_series(portable(name))[:1]))
    rows = [vector.series for vector in vectors]
    gap = np.abs(numpy_features(name, rows) - [vector.features for vector in vectors])
    assert np.mean(gap > NUMPY_TOLERANCE) <= NUMPY_TOLERANCE_SHARE
    # Where one lies outside, a kernel won, lost or was counted at a few steps more or less.
    assert gap.max() <= np.sqrt(4.0 / portable(name).n_timepoints)
    found = model(name).head.summarise(np.stack(rows))
    assert found.tolist() == [vector.symbol for vector in vectors]


def test_the_comparison_notices_another_dilation_or_bias() -> None:
    body, vectors = portable("italy 2.0").body, golden("italy 2.0")
    for pool in (body.pools[0], body.pools[-1]):
        values, kept = pool.values.copy(), pool.values
        object.__setattr__(pool, "values", values + np.float32(0.05))
        changed = np.stack([reference_features(body, vector.series) for vector in vectors])
        object.__setattr__(pool, "values", kept)
        gap = np.abs(changed - [vector.features for vector in vectors])
        assert np.mean(gap > NUMPY_TOLERANCE) > NUMPY_TOLERANCE_SHARE


def test_the_golden_file_says_what_the_reference_says() -> None:
    vectors = golden("gunpoint place")[:2]
    plain = json.loads(golden_json(portable("gunpoint place"), vectors))
    assert plain["model"] == model("gunpoint place").identity
    for told, vector in zip(plain["vectors"], vectors, strict=True):
        assert np.array_equal(told["series"], vector.series)
        assert base64.b64decode(told["features"]) == vector.features.astype("<f4").tobytes()
        label, place = divmod(vector.symbol, 4)
        assert (told["label"], told["place"]) == (model("gunpoint place").classes[label], place)


def test_golden_series_are_made_up_and_the_same_each_time() -> None:
    made = golden_series(portable("italy 2.0"))
    again = golden_series(portable("italy 2.0"))
    assert all(np.array_equal(a, b) for a, b in zip(made, again, strict=True))
    data = load_dataset("ItalyPowerDemand")
    for recorded in (data.X_train, data.X_test):
        assert min(np.abs(recorded - series).max(axis=(1, 2)).min() for series in made) > 0.1


def test_the_hash_is_fnv_1a() -> None:
    """Values that the authors of the hash publish, for no letters and for "foob"."""
    letters = np.frombuffer(b"foob", dtype="<f4")
    assert feature_hash(letters[:0]) == 0xCBF29CE484222325
    assert feature_hash(letters) == 0xDD120E790C2512AF


def other_models() -> dict[str, LocalModel]:
    """What the formats cannot hold, put together without training."""
    known = model("italy 2.0")
    head = label_head(trained("label"))
    body = head.body
    empty = np.zeros(0)
    network = SoftShapeEncoder(
        weights={}, offset=empty, spread=empty, per_series=True, n_channels=1, n_timepoints=24,
        patch_length=4, stride=2, rho=0.5, top_k=1, clip=None, use_moe=False, soft=True,
        kernels=(3, 3, 3), n_blocks=0,
    )  # fmt: skip
    encoded = replace(head, body=Body("softshape", network, body.classifier))
    vector = VectorHead(body, np.zeros((2, 1)), None, None, 2.0)  # type: ignore[arg-type]
    return {
        "encoder 'softshape'; export it with format 'npz'": replace(known, head=encoded),
        "'vector' releases; export it with format 'npz'": replace(known, head=vector),
    }


@pytest.mark.parametrize("format", ["web", "c"])
def test_other_releases_and_encoders_are_refused(format: Format, tmp_path: Path) -> None:
    for sentence, other in other_models().items():
        with pytest.raises(TacitError, match=sentence) as refused:
            export_model(other, tmp_path / "out", format=format)
        assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_and_a_full_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TacitError, match="must be one of npz, web, c, got 'wasm'"):
        trained("label").export_device(tmp_path / "out", format="wasm")  # type: ignore[arg-type]
    place = exported("italy 2.0", tmp_path, "web")
    before = sorted(place.iterdir())
    with pytest.raises(BundleError, match="exists"):
        trained("label").export_device(place, format="web")
    assert sorted(place.iterdir()) == before
    with pytest.raises(BundleError, match="cannot write the export"):
        trained("label").export_device(tmp_path / "no" / "such", format="c")
    assert not (tmp_path / "no").exists()


def test_npz_is_the_file_that_the_numpy_runtime_loads(tmp_path: Path) -> None:
    problem("italy 2.0")[0].export_device(tmp_path / "italy.tacit", format="npz")
    assert Device.load(tmp_path / "italy.tacit").model.identity == model("italy 2.0").identity
    assert [file.name for file in tmp_path.iterdir()] == ["italy.tacit"]
