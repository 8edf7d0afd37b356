"""The one-file bundle: exact round trip, and no damaged or foreign file gets through."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tacit.errors import BundleError, TacitError
from tacit.local.bundle import read_bundle, write_bundle
from tacit.local.release import Release, load_release, local_guarantee

ARRAYS = {
    "weights": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4),
    "steps": np.arange(5),
    "mask": np.array([[True], [False]]),
    "empty": np.zeros((0, 3)),
    "scalar": np.array(2.5),
}
VALUES = {"epsilon": 1.5, "classes": ["a", "b"], "nested": {"x": None}}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "model.tacit"
    write_bundle(path, ARRAYS, VALUES)
    return path


def test_round_trip_is_exact(bundle: Path) -> None:
    arrays, values = read_bundle(bundle)
    assert values == VALUES
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape


def test_the_safetensors_library_reads_the_same(bundle: Path) -> None:
    for name, array in load_file(bundle).items():
        np.testing.assert_array_equal(array, ARRAYS[name])


def test_no_scratch_file_is_left(bundle: Path) -> None:
    assert [file.name for file in bundle.parent.iterdir()] == ["model.tacit"]


def test_every_truncation_is_refused(bundle: Path) -> None:
    data = bundle.read_bytes()
    for size in [0, 3, 8, 20, len(data) // 2, len(data) - 1]:
        bundle.write_bytes(data[:size])
        with pytest.raises(BundleError):
            read_bundle(bundle)


def test_every_flipped_byte_is_refused(bundle: Path) -> None:
    """Except padding: whitespace after the header means nothing."""
    data = bundle.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    end = 8 + len(data[8 : 8 + size].rstrip())
    for place in [*range(0, end, 3), *range(8 + size, len(data))]:
        changed = bytearray(data)
        changed[place] ^= 0x01
        bundle.write_bytes(bytes(changed))
        with pytest.raises(BundleError):
            read_bundle(bundle)


def test_added_bytes_are_refused(bundle: Path) -> None:
    bundle.write_bytes(bundle.read_bytes() + b"\0")
    with pytest.raises(BundleError):
        read_bundle(bundle)


def rewrite_metadata(path: Path, **changes: str) -> None:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"].update(changes)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])


def test_another_version_is_named(bundle: Path) -> None:
    rewrite_metadata(bundle, format_version="99")
    with pytest.raises(BundleError, match="version '99'"):
        read_bundle(bundle)


def test_another_format_is_named(bundle: Path) -> None:
    rewrite_metadata(bundle, format="other")
    with pytest.raises(BundleError, match="not a Tacit bundle"):
        read_bundle(bundle)


def test_a_changed_value_is_found(bundle: Path) -> None:
    rewrite_metadata(bundle, values=json.dumps({**VALUES, "epsilon": 0.1}, sort_keys=True))
    with pytest.raises(BundleError, match="altered"):
        read_bundle(bundle)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot read"):
        read_bundle(tmp_path / "nothing")
    with pytest.raises(BundleError, match="cannot write"):
        write_bundle(tmp_path / "no" / "folder", ARRAYS, VALUES)
    assert not (tmp_path / "no").exists()


def test_releases_are_written_to_a_folder_that_exists(tmp_path: Path) -> None:
    guarantee = local_guarantee(1.0, assumptions=())
    release = Release(kind="label", values=np.array([1, 0]), model="m", guarantee=guarantee)
    release.save(tmp_path / "releases.json")
    assert load_release(tmp_path / "releases.json").to_dict() == release.to_dict()
    with pytest.raises(TacitError, match="cannot write releases"):
        release.save(tmp_path / "no" / "releases.json")
    assert [file.name for file in tmp_path.iterdir()] == ["releases.json"]
