"""`tacit fleet export`: from a trained fleet to devices that release, with both guarantees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.common import JsonFlag, emit, print_table
from tacit.cli.train.softshape import check_new_bundle


def export_command(
    model: Annotated[
        Path,
        typer.Argument(help="File of 'train timefl --out', or the analyser's or fleet's folder."),
    ],
    release_epsilon: Annotated[
        float, typer.Option("--release-epsilon", help="Total per released series.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the bundle that devices release with.")
    ],
    recognition: Annotated[
        float,
        typer.Option(
            "--recognition", help="Stated rate of right labels, for the server's probabilities."
        ),
    ] = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Make a bundle for devices that release, from a model that a fleet has trained.

    No series is looked at and nothing is spent: how often labels are right is stated, not measured.

    Example: `tacit fleet export fleet --release-epsilon 5 --out power`
    """
    check_new_bundle(out)
    from tacit.hybrid.estimator import DPHybridClassifier
    from tacit.hybrid.experiment import guarantees

    made = DPHybridClassifier.from_fleet(
        model, release_epsilon=release_epsilon, recognition=recognition
    )
    made.save(out)
    result = {
        "bundle": out,
        "model": made.model_.identity,
        "classes": list(made.model_.classes),
        "recognition": recognition,
        "guarantee": guarantees(made),
    }
    emit(result, as_json=as_json, render=lambda: _render(result))


def _render(result: dict[str, Any]) -> None:
    promised = result["guarantee"]
    rows = [
        ("bundle", result["bundle"]),
        ("classes", ", ".join(result["classes"])),
        ("training clients", promised["training"].sentence),
        ("released series", promised["release"].sentence),
        ("who trains and releases once", promised["both"].sentence),
    ]
    print_table(rows)
