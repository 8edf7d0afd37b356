"""The command that writes the folders of a federation, and the agreed plan in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.common import (
    ClassifierOption,
    JsonFlag,
    QualityOption,
    emit,
    print_table,
)
from tacit.cli.manner.completion import features as feature_names
from tacit.errors import TacitError
from tacit.system.extras import needs

_FEATURES = typer.Option(
    metavar="shapelets,intervals,dictionary|all",
    help="Kinds of candidates, several with commas.",
    autocompletion=feature_names,
)
FeaturesOption = Annotated[str, _FEATURES]


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
    quality: QualityOption = "f",
    classifier: ClassifierOption = "ridge",
    features: FeaturesOption = "shapelets",
    candidates: Annotated[int, typer.Option(help="Shapelet candidates to examine.")] = 500,
    shapelets: Annotated[int, typer.Option(help="Shapelets to keep.")] = 200,
    time_contract: Annotated[
        float | None,
        typer.Option(help="Seconds for the whole search, sharing and ranking included."),
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

    Send each organisation its own folder and nothing else; `--hosts` says where each one listens.

    Example: `tacit silo init federation --parties north,south,west`
    """
    from tacit.silo.fedst.settings import Settings, feature_kinds
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
            features=feature_kinds(features),
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
    emit(result, as_json=as_json, render=lambda: _show_parties(result))


def _show_parties(result: dict[str, Any]) -> None:
    rows = [("fingerprint of the plan", result["fingerprint"]), ("initiator", result["initiator"])]
    for name, party in result["parties"].items():
        rows += [(f"certificate of {name}", party["certificate"]), (f"{name} runs", party["run"])]
    print_table(rows)


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
