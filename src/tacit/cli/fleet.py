"""Commands that set up and run a fleet: shuffler, analyser, Flower server and nodes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    SeedOption,
    emit,
    new_app,
    progress_bar,
)
from tacit.errors import TacitError

app = new_app(
    "Run a fleet: nodes report sealed updates, a shuffler mixes them, an analyser learns.\n\n"
    "Try it on one machine: `tacit fleet init DIR --data GunPoint --nodes 3`, then "
    "`tacit fleet up DIR`."
)

ConfigArgument = Annotated[Path, typer.Argument(help="The configuration that 'init' wrote.")]
FolderArgument = Annotated[Path, typer.Argument(help="The folder that 'init' wrote.")]


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A new folder for keys and configurations.")],
    data: DataOption,
    nodes: Annotated[int, typer.Option(help="How many nodes take part.")] = 3,
    rounds: Annotated[int, typer.Option(help="How many rounds the run has.")] = 2,
    epsilon: Annotated[float, typer.Option(help="Total epsilon per client.")] = 8.0,
    delta: Annotated[float, typer.Option(help="Total delta per client.")] = 1e-5,
    n_min: Annotated[
        int | None, typer.Option(help="Fewest reports that release a round; default: all nodes.")
    ] = None,
    most_nodes: Annotated[
        int | None, typer.Option(help="Nodes that may ever take part; default: those there are.")
    ] = None,
    mechanism: Annotated[str, typer.Option(help="privunit or distributed.")] = "privunit",
    kernels: Annotated[int, typer.Option(help="Random kernels in the public features.")] = 256,
    round_seconds: Annotated[
        float, typer.Option(help="Seconds for a round, counted from its first report.")
    ] = 60.0,
    host: Annotated[
        str, typer.Option(help="Host name or address of services without one of their own.")
    ] = "127.0.0.1",
    server_host: Annotated[
        str | None, typer.Option(help="Host name or address of the server; default: --host.")
    ] = None,
    shuffler_host: Annotated[
        str | None, typer.Option(help="Host name or address of the shuffler; default: --host.")
    ] = None,
    analyser_host: Annotated[
        str | None, typer.Option(help="Host name or address of the analyser; default: --host.")
    ] = None,
    listen: Annotated[str, typer.Option(help="Address on which services listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="First port; services take port to port + 3.")] = 9440,
    seed: SeedOption = 0,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write keys, certificates, the plan and one folder per service and node.

    The training series of DATA are dealt out to the nodes, for a try-out; in the field each node
    puts its own series in place of its `data.npz` (arrays X and y).

    Example: `tacit fleet init fleet --data GunPoint --nodes 3 --rounds 2 --epsilon 8 --json`
    """
    from tacit.data import load_dataset
    from tacit.errors import check_positive
    from tacit.fleet.deployment.setup import FleetRequest, Hosts, set_up

    check_positive(round_seconds, name="--round-seconds")
    request = FleetRequest(
        n_nodes=nodes,
        rounds=rounds,
        epsilon=epsilon,
        delta=delta,
        n_min=nodes if n_min is None else n_min,
        mechanism=mechanism,
        round_seconds=round_seconds,
        n_kernels=kernels,
        most_nodes=most_nodes,
    )
    hosts = Hosts(
        server=server_host or host,
        shuffler=shuffler_host or host,
        analyser=analyser_host or host,
        listen=listen,
        port=port,
    )
    try:
        fleet = set_up(folder, load_dataset(data, label=label), request, hosts, seed=seed)
    except OSError as error:
        raise TacitError(f"cannot write to {folder}: {error.strerror}.") from error
    emit({"folder": folder, **_described(fleet)}, as_json=as_json)


@app.command()
def shuffler(config: ConfigArgument, as_json: JsonFlag = False) -> None:
    """Run the shuffler until it is stopped; it keeps no report that the analyser has.

    Example: `tacit fleet shuffler fleet/shuffler/shuffler.toml`
    """
    from tacit.fleet.deployment.config import ShufflerConfig, read_config
    from tacit.fleet.deployment.run import run_shuffler

    found = read_config(config, ShufflerConfig)
    _announce("shuffler", {"port": found.port}, as_json=as_json)
    run_shuffler(config)


@app.command()
def analyser(config: ConfigArgument, as_json: JsonFlag = False) -> None:
    """Run the analyser until it is stopped; after a crash it first finishes the batch at hand.

    Example: `tacit fleet analyser fleet/analyser/analyser.toml`
    """
    from tacit.fleet.deployment.config import AnalyserConfig, read_config
    from tacit.fleet.deployment.run import run_analyser

    found = read_config(config, AnalyserConfig)
    ports = {"ingest_port": found.ingest_port, "public_port": found.public_port}
    _announce("analyser", ports, as_json=as_json)
    run_analyser(config)


@app.command()
def node(
    config: ConfigArgument,
    transport: Annotated[
        str, typer.Option(help="flower, or https: light, polls the shuffler, ends with the run.")
    ] = "flower",
    poll_seconds: Annotated[
        float, typer.Option(help="How often a light node asks for a round.")
    ] = 5.0,
    as_json: JsonFlag = False,
) -> None:
    """Run one node: Flower's SuperNode until it is stopped, or a light node until the run is over.

    Example: `tacit fleet node fleet/nodes/node-1/node.toml --transport https`
    """
    from tacit.fleet.deployment.config import NodeConfig, read_config

    if transport not in ("flower", "https"):
        raise TacitError(f"--transport is flower or https, got {transport!r}.")
    found = read_config(config, NodeConfig)
    _announce("node", {"name": found.name, "transport": transport}, as_json=as_json)
    if transport == "https":
        from tacit.fleet.deployment.light_node import run_light_node

        run_light_node(config, poll_seconds=poll_seconds)
        return
    from tacit.fleet.deployment.run import run_node

    run_node(config)


@app.command("new-node")
def new_node(
    folder: Annotated[Path, typer.Argument(help="A new folder for the node.")],
    name: Annotated[str, typer.Option(help="The node's name in this fleet.")],
    like: Annotated[Path, typer.Option(help="Folder of a node of the same fleet.")],
    as_json: JsonFlag = False,
) -> None:
    """Write a node's folder with keys of its own, and print the public ones for the operators.

    Put its series into the folder as `data.npz`. The operators of shuffler and analyser run
    'admit' with the signing key; one that uses Flower also needs `identity.pub` in the server's
    `node_keys`, under its name.

    Example: `tacit fleet new-node node-9 --name node-9 --like fleet/nodes/node-1`
    """
    from tacit.fleet.deployment.wire.membership import new_node as write_node

    signing, identity = write_node(folder, name=name, like=like)
    made = {"folder": folder, "name": name, "key": signing.hex(), "identity": identity.decode()}
    emit(made, as_json=as_json)


ServiceArgument = Annotated[Path, typer.Argument(help="The shuffler's or the analyser's folder.")]


@app.command()
def admit(
    folder: ServiceArgument,
    name: Annotated[str, typer.Option(help="The node's name.")],
    key: Annotated[str, typer.Option(help="The signing key that 'new-node' printed.")],
    as_json: JsonFlag = False,
) -> None:
    """Let a node take part, as far as this service is concerned; it need not be restarted.

    Under `distributed` shuffler and analyser admit a node each for itself.

    Example: `tacit fleet admit fleet/shuffler --name node-9 --key 5f0c...`
    """
    from tacit.fleet.deployment.wire.membership import admit as enter

    emit({"name": name, "nodes": enter(folder, name, key)}, as_json=as_json)


@app.command()
def revoke(
    folder: ServiceArgument,
    name: Annotated[str, typer.Option(help="The node's name.")],
    as_json: JsonFlag = False,
) -> None:
    """Strike a node off this service's list; its next report is refused.

    Example: `tacit fleet revoke fleet/shuffler --name node-3`
    """
    from tacit.fleet.deployment.wire.membership import revoke as strike_off

    emit({"name": name, "nodes": strike_off(folder, name)}, as_json=as_json)


@app.command()
def server(
    config: ConfigArgument,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the analyser's checkpoint.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the Flower server and drive the rounds until the run is finished.

    Example: `tacit fleet server fleet/server/server.toml --json`
    """
    from tacit.fleet.deployment.flower.superlink import run_server

    with progress_bar("rounds") as progress:
        result = run_server(config, resume=resume, progress=progress)
    emit(result, as_json=as_json)


@app.command()
def status(folder: FolderArgument, as_json: JsonFlag = False) -> None:
    """Ask shuffler and analyser where the run stands and what was spent.

    FOLDER is the one that 'init' wrote, or its `server` folder.

    Example: `tacit fleet status fleet --json`
    """
    from tacit.fleet.deployment.config import ServerConfig, read_config
    from tacit.fleet.deployment.run import analyser_status, shuffler_status

    inner = folder / "server" / "server.toml"
    config = read_config(inner if inner.exists() else folder / "server.toml", ServerConfig)
    result = {**analyser_status(config), "shuffler": shuffler_status(config)}
    emit(result, as_json=as_json)


@app.command()
def up(
    folder: FolderArgument,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the analyser's checkpoint.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the whole fleet on this machine until the run is finished: a try-out.

    Example: `tacit fleet up fleet --json`
    """
    from tacit.fleet.deployment.localhost import run_whole_fleet

    with progress_bar("rounds") as progress:
        result = run_whole_fleet(folder, resume=resume, progress=progress)
    emit(result, as_json=as_json)


@app.command()
def classify(
    model: Annotated[
        Path,
        typer.Argument(help="File of 'train timefl --out', or the analyser's or fleet's folder."),
    ],
    data: Annotated[Path, typer.Option(help="New series; with labels, the accuracy is computed.")],
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Classify new series with a trained model; they do not leave this machine.

    Example: `tacit fleet classify fleet --data new.npz --json`
    """
    from tacit.data.formats import read_series
    from tacit.fleet.deployment.analyser_state import read_fleet_model
    from tacit.fleet.model import load_fleet_model

    if not data.is_file():
        raise TacitError(f"there is no data file {data}; check the path.")
    found = read_fleet_model(model) if model.is_dir() else load_fleet_model(model)
    X, truth = read_series(data, label=label)
    labels = found.labels(X)
    result = {
        "labels": labels.tolist(),
        "accuracy": None if truth is None else float((labels == truth).mean()),
        "guarantee": found.guarantee,
        "rounds": found.rounds,
    }
    emit(result, as_json=as_json)


def _announce(part: str, details: dict[str, Any], *, as_json: bool) -> None:
    """Say what starts, in one JSON object or one line; what follows goes to standard error."""
    import sys

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    text = ", ".join(f"{key} {value}" for key, value in details.items())
    emit(
        {"part": part, **details},
        as_json=as_json,
        render=lambda: typer.echo(f"{part}: {text}; stop with Ctrl-C", err=True),
    )
    sys.stdout.flush()


def _described(fleet: Any) -> dict[str, Any]:
    plan = fleet.plan
    local = getattr(plan.settings, "local_epsilon", None)
    return {
        "run": fleet.run,
        "rounds": plan.n_rounds,
        "n_min": plan.n_min,
        "mechanism": plan.mechanism,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "local_epsilon": local,
    }
