"""`tacit disclose`: a document for those who decide about privacy and those who file it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.common import JsonFlag, check_new_file, emit
from tacit.errors import TacitError


def disclose_command(
    place: Annotated[
        Path,
        typer.Argument(
            metavar="BUNDLE|DIR",
            help="Bundle, model file, a silo party's results, or a fleet's folder.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="File to write: .md, .html or .json by its ending.")
    ],
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Ledger whose totals are to be stated.")
    ] = None,
    tested: Annotated[
        Path | None,
        typer.Option(
            "--tested",
            help="Accuracy of a silo's or fleet's model: what its 'classify --json' printed.",
        ),
    ] = None,
    curator: Annotated[
        str | None, typer.Option("--curator", help="Who answers for the data, for the forms.")
    ] = None,
    intended_use: Annotated[
        str | None, typer.Option("--intended-use", help="What the model is for, for the forms.")
    ] = None,
    publication_date: Annotated[
        datetime | None,
        typer.Option(
            "--publication-date",
            formats=["%Y-%m-%d"],
            help="When the model was published, for the registry.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write what is protected, from whom, by which parameters, and what is not.

    Every value names the file and field that it was read from; what cannot be proven is listed as
    not stated.

    Example: `tacit disclose gunpoint --ledger device.db --out disclosure.md`
    """
    from tacit.disclosure.document import disclose
    from tacit.disclosure.evidence import read_evidence
    from tacit.disclosure.given_test import with_test
    from tacit.disclosure.writing import check_ending, write_disclosure

    check_ending(out)
    check_new_file(out)
    if out.exists():
        raise TacitError(f"{out} exists and may have been filed; choose another file.")
    evidence = read_evidence(place, ledger=ledger)
    if tested is not None:
        evidence = with_test(evidence, tested)
    made = disclose(
        evidence,
        curator=curator,
        intended_use=intended_use,
        publication_date=None if publication_date is None else publication_date.date().isoformat(),
    )
    result = {
        "out": write_disclosure(out, made),
        "fields": {key: fact.value for key, fact in made.fields.items()},
        "not_stated": list(made.not_stated),
        "guarantees": dict(evidence.guarantees),
    }

    def render() -> None:
        typer.echo(f"{out}: {len(made.fields)} fields, each with its source.")
        for guarantee in evidence.guarantees.values():
            typer.echo(guarantee.sentence)
        for item in made.not_stated:
            typer.echo(f"not stated: {item}")

    emit(result, as_json=as_json, render=render)
