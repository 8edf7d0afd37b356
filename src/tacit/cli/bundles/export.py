"""`tacit export`: a trained bundle for a device, with NumPy, in a browser or in C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.common import JsonFlag, emit
from tacit.cli.local import BundleArgument, load_bundle
from tacit.cli.manner.choices import DeviceFormat
from tacit.errors import TacitError


def export_command(
    bundle: BundleArgument,
    out: Annotated[
        Path, typer.Option("--out", help="New file (npz), or new folder (web, c) for the device.")
    ],
    format: Annotated[
        DeviceFormat,
        typer.Option("--format", help="For NumPy, as a JavaScript module, or as C99 sources."),
    ] = "npz",
    as_json: JsonFlag = False,
) -> None:
    """Write what a device needs to make releases of a trained bundle.

    web and c make label and place releases; golden vectors lie beside them.

    Example: `tacit export gunpoint --format web --out gunpoint-web`
    """
    from tacit.local.exports.write import export_model

    model = load_bundle(bundle)
    if out.exists():
        raise TacitError(f"{out} exists; choose another place, or remove it first.")
    export_model(model, out, format=format)
    files = [out] if out.is_file() else sorted(out.iterdir())
    result = {
        "format": format,
        "out": out,
        "files": [str(file) for file in files],
        "bytes": sum(file.stat().st_size for file in files),
        "release": model.head.kind,
        "model": model.identity,
        "guarantee": model.guarantee,
    }
    emit(result, as_json=as_json)
