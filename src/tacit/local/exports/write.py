"""Write an export whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from tacit.errors import BundleError, TacitError, check_path
from tacit.local.exports.c import c_files
from tacit.local.exports.golden import Golden, golden_series, golden_vectors
from tacit.local.exports.portable import PortableModel, portable_model
from tacit.local.exports.web import web_files
from tacit.local.model import LocalModel
from tacit.system.files import write_folder

Format = Literal["npz", "web", "c"]
FORMATS: tuple[Format, ...] = get_args(Format)

Writer = Callable[[PortableModel, Sequence[Golden]], dict[str, str]]
_WRITERS: dict[str, Writer] = {"web": web_files, "c": c_files}


def export_model(
    model: LocalModel, path: str | os.PathLike[str], *, format: Format = "npz"
) -> None:
    """Write what a device needs: one file for `npz`, a new folder for `web` and `c`.

    Guarantee: a device of any format releases with the probabilities of the model's channel, to
    the unit of 2**-62. Golden vectors are made-up series: no recording goes into an export.
    """
    check_path(path, name="path")
    if format not in FORMATS:
        raise TacitError(f"format must be one of {', '.join(FORMATS)}, got {format!r}.")
    if format == "npz":
        model.save(path)
        return
    portable = portable_model(model, format=format)
    vectors = golden_vectors(portable, golden_series(portable))
    _write_folder(Path(path).absolute(), _WRITERS[format](portable, vectors))


def _write_folder(target: Path, files: dict[str, str]) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BundleError(f"{target} exists; choose a new folder, or remove it first.")
    try:
        target.parent.resolve(strict=True)  # a typing error must not make folders
        write_folder(target, {name: text.encode() for name, text in files.items()})
    except OSError as error:
        raise BundleError(
            f"cannot write the export to {target}: {error.strerror or error}; choose another "
            "folder."
        ) from error
