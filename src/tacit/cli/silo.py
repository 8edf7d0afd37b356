"""Commands of the silo family: agree on a plan, check, and run one party."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import silo_init, silo_model
from tacit.cli.common import (
    JsonFlag,
    LabelOption,
    LogFormatOption,
    OptionalDataOption,
    emit,
    new_app,
    print_table,
    progress_bar,
)
from tacit.cli.silo_init import initiator_first
from tacit.errors import TacitError
from tacit.system.extras import needs

if TYPE_CHECKING:
    from tacit.silo.party.data_budget import DataBudget
    from tacit.silo.party.hello import Refusal
    from tacit.silo.party.own_data import OwnData
    from tacit.silo.party.results import Outcome
    from tacit.silo.plan import Terms

ConfigArgument = Annotated[Path, typer.Argument(help="This party's party.toml.")]
ProgramOption = Annotated[
    str | None, typer.Option(help="Agree to run this module:function, if the plan names it.")
]
SubjectOption = Annotated[
    str | None,
    typer.Option(help="Whose budget a run with epsilon spends; default: that of the series."),
]

app = new_app("Train with other owners without showing them your series: one process per owner.")
app.command("init")(silo_init.init_command)
app.command("classify")(silo_model.classify_command)
app.command("explain")(silo_model.explain_command)


@app.command("plan")
def plan_command(
    config: ConfigArgument,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change one setting: key=value, for example seed=7."),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Accept a plan that was edited by hand.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the plan and its whole fingerprint, or change it with --set.

    Every party makes the same change and compares the fingerprint. `initiator=NAME` says who gets
    the model.

    Example: `tacit silo plan federation/north/party.toml --set n_candidates=200`
    """
    from tacit.silo.party.folder import read_folder, rewrite_plan
    from tacit.silo.party.programs import check_params

    party = read_folder(config, accept_any_plan=True)
    terms = changed_terms(party.terms, change or [])
    if change or accept:
        check_params(terms.program, terms.params)
        needs("silo", "tomli_w", what="'tacit silo plan --set'")
        rewrite_plan(config, terms)
    stated = terms.fingerprint if change or accept else party.stated_fingerprint
    result = {
        "fingerprint": terms.fingerprint,
        "agreed": stated == terms.fingerprint,
        "initiator": terms.parties[0],
        "plan": terms.to_dict(),
    }
    emit(result, as_json=as_json, render=lambda: _print_plan(terms, agreed=bool(result["agreed"])))


def _print_plan(terms: Terms, *, agreed: bool) -> None:
    """One line per setting, and the fingerprint whole, so that it can be read out and copied."""
    plain = terms.to_dict()
    params = plain.pop("params")
    rows = {key: value for key, value in {**plain, **params}.items() if value is not None}
    listed = {key: ", ".join(map(str, v)) for key, v in rows.items() if isinstance(v, list)}
    print_table(list((rows | listed).items()))
    state = "" if agreed else " (edited by hand: look at it, then run again with --accept)"
    typer.echo(f"initiator   {terms.parties[0]}\nfingerprint {terms.fingerprint}{state}")


def changed_terms(terms: Terms, changes: list[str]) -> Terms:
    """The terms after changes `key=value`: a field of the plan, a setting, or the initiator."""
    from dataclasses import replace

    params = dict(terms.params)
    for change in changes:
        key, sign, text = change.partition("=")
        if not sign or not key:
            raise TacitError(f"--set takes key=value, got {change!r}; for example seed=7.")
        if key == "initiator":
            terms = replace(terms, parties=initiator_first(terms.parties, text))
        elif key == "classes":
            terms = replace(terms, classes=tuple(text.split(",")))
        elif key in ("series_length", "n_channels", "fraction_bits"):
            number: Any = {key: _whole(key, text)}
            terms = replace(terms, **number)
        else:
            params[key] = _value(text)
    return replace(terms, params=params)


def _whole(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise TacitError(f"{key} must be a whole number of at least 1, got {text!r}.")
    return int(text)


def _value(text: str) -> Any:
    """A JSON value, else the text itself."""
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text


@app.command("check")
def check_command(
    config: ConfigArgument,
    data: OptionalDataOption = None,
    program: ProgramOption = None,
    subject: SubjectOption = None,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Check files, plan, certificates, budget and the way to all others; nothing is shared.

    All parties check at the same time, or against parties that already wait for a run.

    Example: `tacit silo check federation/north/party.toml --data north.npz`
    """
    from tacit.silo.party.check import check_federation
    from tacit.silo.party.folder import read_folder

    needs("silo", "spu", "jax", what="'tacit silo check'")
    party = read_folder(config, accept_any_plan=True)
    own = _own_data(data or party.data, label)
    found = check_federation(party, own, program=program, budget=_budget(own, subject))
    problems = [check.problem for check in found.values() if check.problem is not None]
    if problems:
        raise TacitError(" ".join(problems))
    result = {
        "ready": True,
        "party": party.name,
        "fingerprint": party.terms.fingerprint,
        "parties": dict.fromkeys(found, "ready"),
    }
    emit(result, as_json=as_json)


@app.command("party")
def party_command(
    config: ConfigArgument,
    data: OptionalDataOption = None,
    out: Annotated[Path | None, typer.Option(help="Where model and receipt go.")] = None,
    program: ProgramOption = None,
    subject: SubjectOption = None,
    label: LabelOption = None,
    log_format: LogFormatOption = "text",
    as_json: JsonFlag = False,
) -> None:
    """Run one party on its own machine with its own data, until all parties are done.

    The initiator ends with the model, the others with a receipt.

    Example: `tacit silo party federation/north/party.toml --data north.npz`
    """
    from dataclasses import replace

    needs("silo", "spu", "jax", what="'tacit silo party'")
    from tacit.silo.party.folder import read_folder

    party = read_folder(config, accept_any_plan=True)
    if out is not None:
        party = replace(party, out=out.resolve())
    own = _own_data(data or party.data, label)
    outcome = _run(party, own, program=program, subject=subject, as_lines=log_format == "json")
    agreed = {"agreed_fingerprint": party.terms.fingerprint}
    emit(_described(outcome, party.out) | agreed, as_json=as_json)


def _run(
    party: Any,
    own: OwnData | Refusal,
    *,
    program: str | None,
    subject: str | None,
    as_lines: bool,
) -> Outcome:
    import sys
    from functools import partial

    from tacit.silo.party.party import run_party
    from tacit.silo.party.run_log import json_log
    from tacit.silo.secure.compiler import default_cache

    budget = _budget(own, subject)
    run = partial(run_party, party, own, cache=default_cache(), program=program, budget=budget)
    if as_lines:
        return run(log=json_log(party.name, sys.stderr))
    with progress_bar(f"party {party.name}") as progress:
        return run(progress=progress)


def _budget(own: OwnData | Refusal, subject: str | None) -> DataBudget | None:
    from tacit.silo.party.data_budget import DataBudget
    from tacit.silo.party.own_data import OwnData

    return DataBudget(own.X, name=subject) if isinstance(own, OwnData) else None


def _described(outcome: Outcome, out: Path) -> dict[str, Any]:
    from tacit.silo.party.model_file import MODEL
    from tacit.silo.party.receipts import RECEIPT

    receipt = outcome.receipt
    return {
        "party": receipt.party,
        "receipt": str(out / RECEIPT),
        "model": str(out / MODEL) if outcome.model is not None else None,
        "fingerprint": receipt.plan.fingerprint,
        "guarantee": receipt.guarantee.to_dict(),
        "bytes_sent": receipt.bytes_sent,
        "rounds": receipt.rounds,
        "seconds": round(receipt.seconds, 3),
    }


def _own_data(source: str | Path | None, label: str | None) -> OwnData | Refusal:
    """The data, or what is wrong with them: the others must be told that it cannot join."""
    from tacit.silo.party.hello import Refusal
    from tacit.silo.party.own_data import read_data

    try:
        return read_data(source, label=label)
    except Refusal as refusal:
        return refusal


@app.command("show")
def show_command(
    config: Annotated[Path, typer.Argument(help="A party.toml.")], as_json: JsonFlag = False
) -> None:
    """Show the plan and the certificates' fingerprints, to compare them with the others.

    Example: `tacit silo show federation/north/party.toml`
    """
    from tacit.silo.party.folder import read_folder
    from tacit.system.certificates import fingerprint

    party = read_folder(config)
    certificates = {p.name: fingerprint(p.certificate) for p in party.peers}
    result = {
        "party": party.name,
        "fingerprint": party.terms.fingerprint,
        "plan": party.terms.to_dict(),
        "certificates": certificates,
    }
    emit(result, as_json=as_json)


@app.command("renew")
def renew_command(
    config: Annotated[Path, typer.Argument(help="This party's own party.toml.")],
    as_json: JsonFlag = False,
) -> None:
    """Replace this party's key and certificate by new ones that nobody else has seen.

    Give the printed certificate file to the others: it replaces the old one in their peers/.

    Example: `tacit silo renew federation/north/party.toml`
    """
    from tacit.silo.party.folder import read_folder, renew_keys

    party = read_folder(config)
    renewed = renew_keys(party)
    emit(
        {"party": party.name, "certificate": str(party.certificate), "sha256": renewed},
        as_json=as_json,
    )
