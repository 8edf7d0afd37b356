"""Commands for who belongs to a fleet: joining, leaving, renewing, and the next run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.common import JsonFlag, emit
from tacit.cli.manner.choices import FleetService
from tacit.errors import TacitError

ServiceArgument = Annotated[Path, typer.Argument(help="The shuffler's or the analyser's folder.")]
NodeArgument = Annotated[Path, typer.Argument(help="The node's folder.")]
PartArgument = Annotated[
    Path, typer.Argument(help="The folder of a node, the shuffler, the analyser or the server.")
]
NameOption = Annotated[str, typer.Option(help="The node's name in this fleet.")]


def invite_command(
    folder: ServiceArgument,
    name: NameOption,
    days: Annotated[float, typer.Option(help="How long the code may be used.")] = 7.0,
    as_json: JsonFlag = False,
) -> None:
    """Make a one-time code with which a device joins; send it over a safe channel.

    Under `distributed` a device needs a code of the shuffler and one of the analyser.

    Example: `tacit fleet invite fleet/shuffler --name node-9`
    """
    from tacit.fleet.deployment.members.invitations import invite

    code = invite(folder, name, days=days)
    emit({"name": name, "code": code.text(), "days": days}, as_json=as_json)


def join_command(
    folder: Annotated[Path, typer.Argument(help="A new folder for the node.")],
    code: Annotated[
        list[str],
        typer.Option("--invitation", help="A code of 'invite'; once for every service."),
    ],
    person: Annotated[str, typer.Option(help="Whose data these are, for the ledger.")] = "",
    server: Annotated[
        str, typer.Option(help="HOST:PORT of the Flower server, for nodes that use it.")
    ] = "",
    server_certificate: Annotated[
        Path | None, typer.Option(help="The Flower server's certificate.")
    ] = None,
    runtime_port: Annotated[
        int, typer.Option(help="A free local port for the node's own Flower processes.")
    ] = 9450,
    as_json: JsonFlag = False,
) -> None:
    """Join a fleet with one-time codes; the keys are made here and stay here.

    Prints what the plan promises: look at it, put the series into the folder as `data.npz`, and
    start the node. A node that uses Flower also gives its `identity.pub` to the server's operator.

    Example: `tacit fleet join node-9 --invitation tacit-...`
    """
    from tacit.fleet.deployment.members.join import FlowerAddress, join

    flower = None
    if server:
        if server_certificate is None or not server_certificate.is_file():
            raise TacitError("--server needs --server-certificate, the file of its certificate.")
        flower = FlowerAddress(
            server=server, certificate=server_certificate, runtime_port=runtime_port
        )
    joined = join(folder, code, person=person, flower=flower)
    emit({"folder": folder, **asdict(joined)}, as_json=as_json)


def leave_command(folder: NodeArgument, as_json: JsonFlag = False) -> None:
    """Take a node out of its fleet; what it has spent stays in its person's ledger.

    Example: `tacit fleet leave fleet/nodes/node-3`
    """
    from tacit.fleet.deployment.members.join import leave

    emit({"folder": folder, "told": leave(folder)}, as_json=as_json)


def new_node_command(
    folder: Annotated[Path, typer.Argument(help="A new folder for the node.")],
    name: NameOption,
    like: Annotated[Path, typer.Option(help="Folder of a node of the same fleet.")],
    as_json: JsonFlag = False,
) -> None:
    """Write a node's folder with keys of its own, and print the public ones for the operators.

    For devices that have a sister at hand; others 'join' with a code. Put its series into the
    folder as `data.npz`. The operators of shuffler and analyser run 'admit' with the signing key,
    and the server's, for a node that uses Flower, with the identity.

    Example: `tacit fleet new-node node-9 --name node-9 --like fleet/nodes/node-1`
    """
    from tacit.fleet.deployment.members.lists import new_node

    signing, identity = new_node(folder, name=name, like=like)
    made = {"folder": folder, "name": name, "key": signing.hex(), "identity": identity.decode()}
    emit(made, as_json=as_json)


def admit_command(
    folder: PartArgument,
    name: NameOption,
    key: Annotated[
        str, typer.Option("--signing-key", help="The signing key; for the server the identity.")
    ],
    renewed: Annotated[
        bool, typer.Option("--renewed", help="At the server: in place of the node's last identity.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let a node take part, as far as this service is concerned; it need not be restarted.

    Under `distributed` shuffler and analyser admit a node each for itself. The server knows nodes
    by their Flower identity.

    Example: `tacit fleet admit fleet/shuffler --name node-9 --signing-key 5f0c...`
    """
    from tacit.fleet.deployment.members import identities, lists

    if (folder / "server.toml").exists():
        known = identities.admit_to_server(folder, name, key, renewed=renewed)
    elif renewed:
        raise TacitError("--renewed is for the server; a signing key renews by 'renew NODE' alone.")
    else:
        known = lists.admit(folder, name, key)
    emit({"name": name, "nodes": known}, as_json=as_json)


def revoke_command(folder: PartArgument, name: NameOption, as_json: JsonFlag = False) -> None:
    """Strike a node off this service's list; its next report is refused.

    The server unregisters its Flower identity, so that it is sent no round any more.

    Example: `tacit fleet revoke fleet/shuffler --name node-3`
    """
    from tacit.fleet.deployment.members import identities, lists

    at_server = (folder / "server.toml").exists()
    revoke = identities.revoke_at_server if at_server else lists.revoke
    emit({"name": name, "nodes": revoke(folder, name)}, as_json=as_json)


def renew_command(
    folder: PartArgument,
    switch: Annotated[
        bool, typer.Option("--switch", help="Put the prepared certificate in use.")
    ] = False,
    sealing: Annotated[
        bool, typer.Option("--sealing", help="Make a sealing key for the next run instead.")
    ] = False,
    identity: Annotated[
        bool, typer.Option("--identity", help="Renew a node's Flower identity, in two steps.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Renew a node's key at once, or a service's certificate in two steps.

    Without --switch a service's next certificate is made: nodes fetch it by themselves while the
    shuffler runs, other services are told with 'trust'. With --switch it is put in use. A node's
    Flower identity is made with --identity and entered at the server with 'admit --renewed'; with
    --identity --switch the node uses it from its next start on.

    Example: `tacit fleet renew fleet/shuffler`
    """
    from tacit.fleet.deployment.members import identities, renewal
    from tacit.fleet.deployment.members.join import renew_key

    if identity:
        if sealing or renewal.part_of(folder) != "node":
            raise TacitError("--identity is for nodes; services have certificates and keys.")
        if switch:
            emit({"folder": folder, "in_use": identities.switch_identity(folder)}, as_json=as_json)
        else:
            made = identities.prepare_identity(folder).strip()
            emit({"folder": folder, "identity": made}, as_json=as_json)
    elif renewal.part_of(folder) == "node":
        if switch or sealing:
            raise TacitError("a node's key is renewed in one step; leave out the options.")
        emit({"folder": folder, "told": renew_key(folder)}, as_json=as_json)
    elif sealing:
        emit({"folder": folder, "key": renewal.new_sealing_key(folder).hex()}, as_json=as_json)
    else:
        paths = renewal.switch(folder) if switch else renewal.prepare(folder)
        emit({"folder": folder, "certificates": paths, "in_use": switch}, as_json=as_json)


def trust_command(
    folder: PartArgument,
    of: Annotated[FleetService, typer.Option("--service", help="Whose certificate it is.")],
    certificate: Annotated[Path, typer.Option(help="The new certificate that 'renew' made.")],
    as_json: JsonFlag = False,
) -> None:
    """Trust a service's next certificate beside the present one; nothing need be restarted.

    The analyser knows the shuffler by its `client-next.crt`, all others by `tls-next.crt`.

    Example: `tacit fleet trust fleet/server --service analyser --certificate analyser/tls-next.crt`
    """
    from tacit.fleet.deployment.members.renewal import trust

    new = trust(folder, of=of, certificate=certificate)
    emit({"folder": folder, "of": of, "new": new}, as_json=as_json)


def next_run_command(
    folder: Annotated[Path, typer.Argument(help="A folder with the last run's plan.toml.")],
    out: Annotated[Path, typer.Option(help="The new plan file.")],
    rounds: Annotated[int | None, typer.Option(help="Rounds; default: as before.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Total epsilon per client.")] = None,
    delta: Annotated[float | None, typer.Option(help="Total delta per client.")] = None,
    n_min: Annotated[int | None, typer.Option(help="Fewest reports of a round.")] = None,
    most_nodes: Annotated[int | None, typer.Option(help="Nodes that may take part.")] = None,
    round_seconds: Annotated[float | None, typer.Option(help="Seconds for a round.")] = None,
    analyser_key: Annotated[
        str | None, typer.Option(help="The key of 'renew fleet/analyser --sealing'.")
    ] = None,
    shuffler_key: Annotated[
        str | None, typer.Option(help="The key of 'renew fleet/shuffler --sealing'.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the plan of a fleet's next run; what is not given stays as it was.

    Every part takes it with 'take-plan'. The persons' ledgers go on: a node whose person has
    nothing left does not join.

    Example: `tacit fleet next-run fleet --rounds 4 --out next.toml`
    """
    from tacit.fleet.deployment.members.planning import NextRun, plan_next, write_next

    asked = NextRun(
        rounds=rounds,
        epsilon=epsilon,
        delta=delta,
        n_min=n_min,
        most_nodes=most_nodes,
        round_seconds=round_seconds,
        analyser_key=analyser_key,
        shuffler_key=shuffler_key,
    )
    fleet = plan_next(folder, asked)
    write_next(out, fleet)
    plan = fleet.plan
    made = {"run": fleet.run, "rounds": plan.n_rounds, "epsilon": plan.epsilon, "delta": plan.delta}
    emit({"plan": out, **made}, as_json=as_json)


def take_plan_command(
    folder: Annotated[Path, typer.Argument(help="The folder of one part, or of a whole fleet.")],
    plan: Annotated[Path, typer.Argument(help="The plan that 'next-run' wrote.")],
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give up a run that is not finished.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Take the plan of the next run; services must be stopped, the last run's state is kept.

    Example: `tacit fleet take-plan fleet next.toml`
    """
    from tacit.fleet.deployment.members.next_run import take_plan

    emit({"plan": plan, "taken": take_plan(folder, plan, abandon=abandon)}, as_json=as_json)


COMMANDS: dict[str, Callable[..., None]] = {
    "invite": invite_command,
    "join": join_command,
    "leave": leave_command,
    "new-node": new_node_command,
    "admit": admit_command,
    "revoke": revoke_command,
    "renew": renew_command,
    "trust": trust_command,
    "next-run": next_run_command,
    "take-plan": take_plan_command,
}
