"""Commands of the silo family: write the folders of a federation, agree, and run one party."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import silo_model
from tacit.cli.common import JsonFlag, LabelOption, emit, new_app, progress_bar
from tacit.errors import TacitError
from tacit.system.extras import needs

if TYPE_CHECKING:
    from tacit.silo.party.hello import Refusal
    from tacit.silo.party.own_data import OwnData
    from tacit.silo.party.results import Outcome
    from tacit.silo.plan import Terms

ConfigArgument = Annotated[Path, typer.Argument(help="This party's party.toml.")]
OwnDataOption = Annotated[
    Path | None,
    typer.Option("--data", help="This party's own series (.npz .ts .tsv .csv .parquet)."),
]
ProgramOption = Annotated[
    str | None, typer.Option(help="Agree to run this module:function, if the plan names it.")
]

app = new_app("Train with other owners without showing them your series: one process per owner.")
app.command("classify")(silo_model.classify_command)
app.command("explain")(silo_model.explain_command)


@app.command("init")
def init_command(
    folder: Annotated[Path, typer.Argument(help="A new folder; one folder per party goes in it.")],
    parties: Annotated[
        str, typer.Option(help="Names, separated by commas; the initiator gets the model.")
    ],
    initiator: Annotated[
        str | None, typer.Option(help="Who gets the model; the first name, if left out.")
    ] = None,
    hosts: Annotated[
        str, typer.Option(help="One host for all, or one per party, separated by commas.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The first party's port; it goes up where hosts repeat.")
    ] = 9100,
    quality: Annotated[str, typer.Option(help="How shapelets are ranked: f or ig.")] = "f",
    classifier: Annotated[str, typer.Option(help="ridge, logistic or forest.")] = "ridge",
    candidates: Annotated[int, typer.Option(help="Shapelet candidates to examine.")] = 500,
    shapelets: Annotated[int, typer.Option(help="Shapelets to keep.")] = 200,
    time_contract: Annotated[
        float | None, typer.Option(help="Seconds after which the search stops.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Differential privacy of what the first party learns; with --classifier forest "
            "and --quality ig. Every other party debits its own ledger."
        ),
    ] = None,
    join_seconds: Annotated[float, typer.Option(help="How long to wait for the others.")] = 60.0,
    silence_seconds: Annotated[
        float, typer.Option(help="How long a party may be silent before the run ends.")
    ] = 15.0,
    as_json: JsonFlag = False,
) -> None:
    """Write one folder per organisation: configuration, key, certificates, and the agreed plan.

    Send each organisation its own folder and nothing else. Example:

    tacit silo init federation --parties north,south,west
    --hosts north.example,south.example,west.example
    """
    from tacit.silo.fedst.settings import Settings
    from tacit.silo.party.folder import Limits, write_folders
    from tacit.silo.plan import Terms, default_protocol
    from tacit.system.certificates import fingerprint

    needs("silo", "tomli_w", what="'tacit silo init'")
    given = tuple(name.strip() for name in parties.split(","))
    names = initiator_first(given, given[0] if initiator is None else initiator)
    terms = Terms(
        program="fedst",
        parties=names,
        protocol=default_protocol(len(names)),
        params=Settings(
            quality=quality,
            classifier=classifier,
            n_candidates=candidates,
            n_shapelets=shapelets,
            time_contract=time_contract,
            epsilon=epsilon,
        ).to_params(),
    )
    limits = Limits(join_seconds=join_seconds, silence_seconds=silence_seconds)
    placed = dict(zip(given, assign_addresses(hosts, n_parties=len(given), port=port), strict=True))
    addresses = [placed[name] for name in names]
    configs = write_folders(folder, terms, addresses=addresses, limits=limits)
    described = {
        name: {
            "config": str(config),
            "certificate": fingerprint(config.parent / "party.crt"),
            "run": f"tacit silo party {config} --data YOUR_SERIES",
        }
        for name, config in configs.items()
    }
    result = {"fingerprint": terms.fingerprint, "initiator": names[0], "parties": described}
    emit(result, as_json=as_json)


def initiator_first(names: tuple[str, ...], initiator: str) -> tuple[str, ...]:
    """The parties in the order of a plan, whose first one is the initiator."""
    if initiator not in names:
        raise TacitError(f"the initiator must be one of {', '.join(names)}, got {initiator!r}.")
    place = names.index(initiator)
    return (initiator, *names[:place], *names[place + 1 :])


def assign_addresses(hosts: str, *, n_parties: int, port: int) -> list[str]:
    """The address of every party; ports go up where hosts repeat."""
    listed = [host.strip() for host in hosts.split(",")]
    if len(listed) == 1:
        listed *= n_parties
    if len(listed) != n_parties:
        raise TacitError(f"--hosts names {len(listed)} hosts for {n_parties} parties.")
    if not 0 < port <= 65535 - n_parties:
        raise TacitError(f"--port must leave room for one port per party, got {port}.")
    used: dict[str, int] = {}
    addresses = []
    for host in listed:
        addresses.append(f"{host}:{port + used.get(host, 0)}")
        used[host] = used.get(host, 0) + 1
    return addresses


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
    the model. Example: tacit silo plan federation/north/party.toml --set n_candidates=200
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
    emit(result, as_json=as_json)


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
        elif key == "series_length":
            terms = replace(terms, series_length=_whole(key, text))
        elif key == "fraction_bits":
            terms = replace(terms, fraction_bits=_whole(key, text))
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
    data: OwnDataOption = None,
    program: ProgramOption = None,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Check files, plan, certificates and the way to all other parties; nothing is shared.

    All parties check at the same time, or against parties that already wait for a run. Example:

    tacit silo check federation/north/party.toml --data north.npz
    """
    from tacit.silo.party.check import check_federation
    from tacit.silo.party.folder import read_folder

    needs("silo", "spu", "jax", what="'tacit silo check'")
    party = read_folder(config, accept_any_plan=True)
    found = check_federation(party, _own_data(data or party.data, label), program=program)
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
    data: OwnDataOption = None,
    out: Annotated[Path | None, typer.Option(help="Where model and receipt go.")] = None,
    program: ProgramOption = None,
    subject: Annotated[
        str | None,
        typer.Option(help="Whose budget a run with epsilon spends; default: that of the series."),
    ] = None,
    label: LabelOption = None,
    log_format: Annotated[
        str, typer.Option(help="text: a progress bar; json: one line per event, for machines.")
    ] = "text",
    as_json: JsonFlag = False,
) -> None:
    """Run one party on its own machine with its own data, until all parties are done.

    The initiator ends with the model, the others with a receipt. Example:

    tacit silo party federation/north/party.toml --data north.npz
    """
    from dataclasses import replace

    needs("silo", "spu", "jax", what="'tacit silo party'")
    from tacit.silo.party.folder import read_folder

    if log_format not in ("text", "json"):
        raise TacitError(f"--log-format must be text or json, got {log_format!r}.")
    party = read_folder(config, accept_any_plan=True)
    if out is not None:
        party = replace(party, out=out.resolve())
    own = _own_data(data or party.data, label)
    outcome = _run(party, own, program=program, subject=subject, as_lines=log_format == "json")
    emit(_described(outcome, party.out), as_json=as_json)


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

    from tacit.silo.party.own_data import OwnData
    from tacit.silo.party.party import run_party
    from tacit.silo.party.run_log import json_log
    from tacit.silo.party.spending import DataBudget
    from tacit.silo.secure.compiler import default_cache

    budget = DataBudget(own.X, name=subject) if isinstance(own, OwnData) else None
    run = partial(run_party, party, own, cache=default_cache(), program=program, budget=budget)
    if as_lines:
        return run(log=json_log(party.name, sys.stderr))
    with progress_bar(f"party {party.name}") as progress:
        return run(progress=progress)


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
        "seconds": receipt.seconds,
    }


def _own_data(path: Path | None, label: str | None) -> OwnData | Refusal:
    """The data, or what is wrong with them: the others must be told that it cannot join."""
    from tacit.silo.party.hello import Refusal
    from tacit.silo.party.own_data import read_data

    try:
        return read_data(path, label=label)
    except Refusal as refusal:
        return refusal


@app.command("show")
def show_command(
    config: Annotated[Path, typer.Argument(help="A party.toml.")], as_json: JsonFlag = False
) -> None:
    """Show the plan and the certificates' fingerprints, to compare them with the others.

    Example: tacit silo show federation/north/party.toml
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
    Example: tacit silo renew federation/north/party.toml
    """
    from tacit.silo.party.folder import read_folder, renew_keys

    party = read_folder(config)
    renewed = renew_keys(party)
    emit(
        {"party": party.name, "certificate": str(party.certificate), "sha256": renewed},
        as_json=as_json,
    )
