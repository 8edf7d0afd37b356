"""`tacit export` writes a device, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import assert_refused, tacit
from local_problems import model_of, trained
from tacit.local.device import Device

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    trained("label").save(tmp_path / "bundle")
    return tmp_path / "bundle"


@pytest.mark.parametrize(
    ("format", "files"),
    [
        ("web", {"device.mjs", "golden.json"}),
        (
            "c",
            {
                "Makefile", "example.c", "golden.c", "golden.json", "tacit_device.c",
                "tacit_device.h", "tacit_golden.h", "tacit_model.h", "tacit_weights.h",
            },
        ),
    ],
)  # fmt: skip
def test_an_export_is_a_folder_of_these_files(
    format: str, files: set[str], bundle: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    found = tacit(capsys, "export", bundle, "--format", format, "--out", out, "--json")
    assert found.code == 0, found.err
    assert {file.name for file in out.iterdir()} == files
    assert {Path(file).name for file in found.json["files"]} == files
    assert found.json["bytes"] == sum(file.stat().st_size for file in out.iterdir())
    assert found.json["guarantee"]["epsilon"] == 2.0
    assert found.json["model"] == model_of(trained("label")).identity


def test_npz_is_one_file_that_a_device_loads(bundle: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "italy.tacit"
    found = tacit(capsys, "export", bundle, "--out", out, "--json")
    assert found.json["format"] == "npz"
    assert Device.load(out).model.identity == found.json["model"]


def test_refusals_are_one_sentence_and_write_nothing(
    bundle: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert_refused(tacit(capsys, "export", bundle, "--format", "wasm", "--out", out), "wasm")
    assert_refused(tacit(capsys, "export", tmp_path / "no", "--out", out), "cannot read the bundle")
    assert not out.exists()
    out.mkdir()
    assert_refused(tacit(capsys, "export", bundle, "--format", "c", "--out", out), "exists")
    assert list(out.iterdir()) == []
    missing = tmp_path / "no" / "out"
    assert_refused(tacit(capsys, "export", bundle, "--format", "web", "--out", missing), "cannot")
