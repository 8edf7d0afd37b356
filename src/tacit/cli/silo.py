"""Commands of the silo family: write the folders of a federation, and run one party."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    JsonFlag,
    LabelOption,
    check_new_folder,
    emit,
    new_app,
    progress_bar,
)
from tacit.errors import TacitError
from tacit.system.extras import needs

if TYPE_CHECKING:
    from tacit.silo.party.own_data import OwnData

app = new_app("Train with other owners without showing them your series: one process per owner.")


@app.command("init")
def init_command(
    folder: Annotated[Path, typer.Argument(help="A new folder; one folder per party goes in it.")],
    parties: Annotated[
        str, typer.Option(help="Names, separated by commas; the first one gets the model.")
    ],
    hosts: Annotated[
        str, typer.Option(help="One host for all, or one per party, separated by commas.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="First port; each party takes two per host.")] = 9100,
    quality: Annotated[str, typer.Option(help="How shapelets are ranked: f or ig.")] = "f",
    classifier: Annotated[str, typer.Option(help="logistic or forest.")] = "logistic",
    candidates: Annotated[int, typer.Option(help="Shapelet candidates to examine.")] = 500,
    shapelets: Annotated[int, typer.Option(help="Shapelets to keep.")] = 200,
    time_contract: Annotated[
        float | None, typer.Option(help="Seconds after which the search stops.")
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
    names = tuple(name.strip() for name in parties.split(","))
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
        ).to_params(),
    )
    limits = Limits(join_seconds=join_seconds, silence_seconds=silence_seconds)
    addresses = assign_addresses(hosts, n_parties=len(names), port=port)
    configs = write_folders(folder, terms, addresses=addresses, limits=limits)
    described = {
        name: {
            "config": str(config),
            "certificate": fingerprint(config.parent / "party.crt"),
            "run": f"tacit silo party {config} --data YOUR_SERIES",
        }
        for name, config in configs.items()
    }
    emit({"fingerprint": terms.fingerprint, "parties": described}, as_json=as_json)


def assign_addresses(hosts: str, *, n_parties: int, port: int) -> list[tuple[str, str]]:
    """The control and engine address of every party; ports go up where hosts repeat."""
    listed = [host.strip() for host in hosts.split(",")]
    if len(listed) == 1:
        listed *= n_parties
    if len(listed) != n_parties:
        raise TacitError(f"--hosts names {len(listed)} hosts for {n_parties} parties.")
    if not 0 < port <= 65535 - 2 * n_parties:
        raise TacitError(f"--port must leave room for two ports per party, got {port}.")
    used: dict[str, int] = {}
    addresses = []
    for host in listed:
        first = port + 2 * used.get(host, 0)
        used[host] = used.get(host, 0) + 1
        addresses.append((f"{host}:{first}", f"{host}:{first + 1}"))
    return addresses


@app.command("party")
def party_command(
    config: Annotated[Path, typer.Argument(help="This party's party.toml.")],
    data: Annotated[
        Path | None, typer.Option(help="This party's own series (.npz .ts .tsv .csv .parquet).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where model and receipt go.")] = None,
    program: Annotated[
        str | None,
        typer.Option(help="Agree to run this module:function, if the plan names it."),
    ] = None,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run one party on its own machine with its own data, until all parties are done.

    The first party of the plan ends with the model, the others with a receipt. Example:

    tacit silo party federation/north/party.toml --data north.npz
    """
    from dataclasses import replace

    needs("silo", "spu", "jax", what="'tacit silo party'")
    from tacit.silo.party.folder import read_folder
    from tacit.silo.party.model_file import MODEL
    from tacit.silo.party.party import run_party
    from tacit.silo.party.receipts import RECEIPT
    from tacit.silo.secure.compiler import default_cache

    party = read_folder(config)
    if out is not None:
        party = replace(party, out=out.resolve())
    check_new_folder(party.out)
    with progress_bar(f"party {party.name}") as progress:
        outcome = run_party(
            party,
            _own_data(data or party.data, label),
            progress=progress,
            cache=default_cache(),
            program=program,
        )
    receipt = outcome.receipt
    result: dict[str, Any] = {
        "party": receipt.party,
        "receipt": str(party.out / RECEIPT),
        "model": str(party.out / MODEL) if outcome.model is not None else None,
        "fingerprint": receipt.plan.fingerprint,
        "guarantee": receipt.guarantee.to_dict(),
        "bytes_sent": receipt.bytes_sent,
        "rounds": receipt.rounds,
        "seconds": receipt.seconds,
    }
    emit(result, as_json=as_json)


def _own_data(path: Path | None, label: str | None) -> OwnData | TacitError:
    """The data, or what is wrong with them: the others must be told that it cannot join."""
    from tacit.silo.party.own_data import read_data

    if path is None:
        raise TacitError("this party has no data; give --data FILE or 'data' in party.toml.")
    try:
        return read_data(path, label=label)
    except TacitError as error:
        return error


@app.command("classify")
def classify_command(
    folder: Annotated[Path, typer.Argument(help="The initiator's output folder.")],
    own: Annotated[Path, typer.Option(help="The initiator's own series from that run.")],
    data: Annotated[Path, typer.Option(help="New series; labels, if any, give the accuracy.")],
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Classify new series with the model that the initiator got; nothing leaves this machine.

    Example: tacit silo classify federation/north/out --own north.npz --data new.npz
    """
    from tacit.data.formats import read_series
    from tacit.silo.party.receipts import read_receipt
    from tacit.silo.stored_model import classify

    for file in (own, data):
        if not file.is_file():
            raise TacitError(f"there is no data file {file}; check the path.")
    X, truth = read_series(data, label=label)
    labels = classify(folder, own=read_series(own, label=label)[0], X=X)
    result = {
        "labels": labels.tolist(),
        "accuracy": None if truth is None else float((labels == truth).mean()),
        "guarantee": read_receipt(folder).guarantee.to_dict(),
    }
    emit(result, as_json=as_json)


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
