"""Kernels: no source of a protocol written by hand escapes the comparison between the parties."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tacit.silo.fedst import secure_distances
from tacit.silo.fedst.secure_distances import NARROW_DISTANCES
from tacit.silo.secure import kernels
from tacit.silo.secure.kernels import SORTED_LOW_BITS, Kernel

FOLDER = Path(kernels.__file__).parent


def load(file: Path, name: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_changed_source_of_a_program_changes_the_fingerprint_of_its_kernel(
    tmp_path: Path,
) -> None:
    source = Path(secure_distances.__file__).read_text()
    same, other = tmp_path / "same.py", tmp_path / "other.py"
    same.write_text(source)
    other.write_text(source.replace("np.uint32(16)", "np.uint32(15)", 1))
    assert other.read_text() != source
    prints = [load(file, file.stem).NARROW_DISTANCES.fingerprint for file in (same, other)]
    assert prints[0] == NARROW_DISTANCES.fingerprint
    assert prints[1] != NARROW_DISTANCES.fingerprint


@pytest.mark.parametrize("kernel", [NARROW_DISTANCES, SORTED_LOW_BITS], ids=lambda k: k.name)
def test_every_common_source_counts(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel.fingerprint
    for dropped in kernels._COMMON_SOURCES:
        left = tuple(name for name in kernels._COMMON_SOURCES if name != dropped)
        with monkeypatch.context() as patch:
            kernels._fingerprint.cache_clear()
            patch.setattr(kernels, "_COMMON_SOURCES", left)
            assert replace(kernel).fingerprint != before
    kernels._fingerprint.cache_clear()
    assert kernel.fingerprint == before


def test_what_the_common_sources_import_of_the_family_counts_too() -> None:
    for name in kernels._COMMON_SOURCES:
        tree = ast.parse((FOLDER / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tacit.silo"):
                assert str(node.module).rpartition(".")[2] in kernels._COMMON_SOURCES, name


def test_a_kernel_gives_the_shape_of_its_result_from_the_operands() -> None:
    assert NARROW_DISTANCES.output_shape((7, 2, 20), (7, 2, 20), (15,), counts=(1, 2)) == (3, 7)
    assert SORTED_LOW_BITS.output_shape((3, 5), n_bits=7) == (3, 5)
