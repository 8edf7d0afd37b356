"""`tacit ledger`: what was released so far, what is left, and whether the record is intact."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.common import JsonFlag, emit, new_app, print_table

app = new_app("The budget ledger: open, show, verify and export it.")

DbOption = Annotated[
    Path,
    typer.Option("--db", "--ledger", envvar="TACIT_LEDGER", help="Path of the ledger's file."),
]
DEFAULT_DB = Path("tacit-ledger.db")
BudgetOption = Annotated[float | None, typer.Option(help="Epsilon for the whole store.")]
DeltaOption = Annotated[float | None, typer.Option(help="Delta for the whole store.")]
SubjectOption = Annotated[float | None, typer.Option(help="Epsilon for each subject.")]
AnchorOption = Annotated[
    Path | None,
    typer.Option("--anchor", help="File kept elsewhere that shows an old copy of the ledger."),
]
SubjectDeltaOption = Annotated[float | None, typer.Option(help="Delta for each subject.")]


@app.command("init")
def init_command(
    db: DbOption = DEFAULT_DB,
    budget_epsilon: BudgetOption = None,
    budget_delta: DeltaOption = None,
    per_subject_epsilon: SubjectOption = None,
    per_subject_delta: SubjectDeltaOption = None,
    anchor: AnchorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Open a new ledger with its budgets, which are fixed from then on.

    Example: `tacit ledger init --db spend.db --per-subject-epsilon 4`
    """
    from tacit.errors import LedgerError
    from tacit.ledger import Ledger
    from tacit.ledger.anchors import configured_anchor

    if db.exists():
        raise LedgerError(f"{db} exists; its budgets are changed with 'tacit ledger budget'.")
    with Ledger.open(
        db,
        budget_epsilon=budget_epsilon,
        budget_delta=budget_delta,
        per_subject_epsilon=per_subject_epsilon,
        per_subject_delta=per_subject_delta,
        anchor=anchor or configured_anchor(db),
    ) as ledger:
        result = {"db": db, "budgets": ledger.budgets(), "anchor": ledger.anchor()}
    emit(result, as_json=as_json)


@app.command("budget")
def budget_command(
    reason: Annotated[str, typer.Option(help="Why; recorded in the chain.")],
    db: DbOption = DEFAULT_DB,
    budget_epsilon: BudgetOption = None,
    budget_delta: DeltaOption = None,
    per_subject_epsilon: SubjectOption = None,
    per_subject_delta: SubjectDeltaOption = None,
    anchor: AnchorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Change budgets, and record the change as an entry of the chain.

    Example: `tacit ledger budget --db spend.db --per-subject-epsilon 6 --reason "second study"`
    """
    from tacit.ledger import Ledger
    from tacit.ledger.anchors import configured_anchor

    with Ledger.open(db, create=False, anchor=anchor or configured_anchor(db)) as ledger:
        entry = ledger.change_budgets(
            reason=reason,
            budget_epsilon=budget_epsilon,
            budget_delta=budget_delta,
            per_subject_epsilon=per_subject_epsilon,
            per_subject_delta=per_subject_delta,
        )
        result = {"entry": entry, "budgets": ledger.budgets(), "anchor": ledger.anchor()}
    emit(result, as_json=as_json)


@app.command("show")
def show_command(
    db: DbOption = DEFAULT_DB,
    subject: Annotated[str | None, typer.Option(help="Only this subject.")] = None,
    anchor: AnchorOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show entries, what is spent and what remains.

    Example: `tacit ledger show --db spend.db --subject device-7`
    """
    from tacit.guarantee import rounded_up
    from tacit.ledger import Ledger
    from tacit.ledger.anchors import configured_anchor

    with Ledger.open(db, create=False, anchor=anchor or configured_anchor(db)) as ledger:
        entries = ledger.entries(subject)
        spent, left = ledger.spent(subject), ledger.remaining(subject)
        subjects = ledger.subjects()
        result = {
            "entries": entries,
            "count": len(entries),
            "spent": spent,
            "remaining": left,
            "budgets": ledger.budgets(),
            "subjects": subjects,
        }

    def render() -> None:
        columns = ("id", "time", "kind", "subject", "purpose", "epsilon", "delta")
        rows = [[getattr(entry, name) for name in columns] for entry in entries]
        print_table(rows, columns=columns, title=f"{db}: {len(entries)} entries")
        typer.echo(
            f"spent:     epsilon {rounded_up(spent.epsilon)}, delta {rounded_up(spent.delta)}"
        )
        if subject is None and len(subjects) > 1:
            most = max(one.epsilon for one in subjects.values())
            typer.echo(
                f"           by {len(subjects)} subjects together, "
                f"at most epsilon {rounded_up(most)} by each of them"
            )
        typer.echo(f"remaining: epsilon {_left(left.epsilon)}, delta {_left(left.delta)}")

    emit(result, as_json=as_json, render=render)


def _left(value: float) -> str:
    from tacit.guarantee import rounded_down

    return rounded_down(value) if math.isfinite(value) else "without limit"


@app.command("verify")
def verify_command(
    db: DbOption = DEFAULT_DB,
    anchor: Annotated[
        Path | None,
        typer.Option(
            "--anchor", help="File kept elsewhere, or COUNT:HASH; finds a rewritten history."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Recompute every hash and total; exit code 1 if anything does not fit.

    Example: `tacit ledger verify --db spend.db`
    """
    from tacit.ledger import Ledger
    from tacit.ledger.anchors import configured_anchor

    kept = anchor or configured_anchor(db)
    given = None
    if anchor is not None and ":" in anchor.name:
        given = str(anchor)
    elif kept is not None:
        given = _anchor_in(kept)
    with Ledger.open(db, create=False) as ledger:
        found = ledger.verify(given)
    result = {
        "intact": found.intact,
        "entries": found.entries,
        "problem": found.problem,
        "anchor": found.anchor,
    }
    emit(result, as_json=as_json)
    if not found.intact:
        raise typer.Exit(1)


def _anchor_in(path: Path) -> str:
    from tacit.errors import LedgerError
    from tacit.ledger.anchors import read_anchor

    found = read_anchor(path)
    if found is None:
        raise LedgerError(
            f"there is no anchor at {path}; find it, or give --anchor another file or COUNT:HASH."
        )
    return str(found)


@app.command("anchor")
def anchor_command(
    out: Annotated[Path, typer.Option(help="The file to write, best on another disk.")],
    db: DbOption = DEFAULT_DB,
    as_json: JsonFlag = False,
) -> None:
    """Verify the ledger and write its anchor, to be given with --anchor from then on.

    Example: `tacit ledger anchor --db spend.db --out spend.anchor`
    """
    from tacit.errors import LedgerError
    from tacit.ledger import Ledger
    from tacit.ledger.anchors import configured_anchor, parse_anchor, write_anchor

    kept = configured_anchor(db)
    watched = kept if kept is not None and kept.exists() else None
    with Ledger.open(db, create=False, anchor=watched) as ledger:
        found = ledger.verify(_anchor_in(out) if out.exists() else None)
    if not found.intact:
        raise LedgerError(f"{db} is not intact: {found.problem}; no anchor was written.")
    write_anchor(out, parse_anchor(found.anchor))
    emit({"anchor": found.anchor, "out": out}, as_json=as_json)


@app.command("export")
def export_command(
    out: Annotated[Path, typer.Option(help="A .csv or .json file.")],
    db: DbOption = DEFAULT_DB,
    as_json: JsonFlag = False,
) -> None:
    """Write all entries to a file.

    Example: `tacit ledger export --db spend.db --out spend.csv`
    """
    from tacit.ledger import Ledger
    from tacit.ledger.anchors import configured_anchor

    with Ledger.open(db, create=False, anchor=configured_anchor(db)) as ledger:
        result = {"entries": ledger.export(out), "out": out, "anchor": ledger.anchor()}
    emit(result, as_json=as_json)
