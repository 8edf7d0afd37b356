"""Commands that set up and run a fleet: shuffler, analyser, Flower server and nodes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    LogFormatOption,
    MechanismOption,
    PartOption,
    SeedOption,
    emit,
    new_app,
    progress_bar,
)
from tacit.cli.fleet.export import export_command
from tacit.cli.fleet.members import COMMANDS
from tacit.cli.fleet.status import asked, draw_status, shown
from tacit.cli.manner.choices import LogFormat, Transport
from tacit.errors import TacitError
from tacit.system.logs import log_to_standard_error

if TYPE_CHECKING:
    from tacit.system.progress import Progress

_LOG = logging.getLogger("tacit.fleet")

app = new_app(
    "Run a fleet: nodes report sealed updates, a shuffler mixes them, an analyser learns.\n\n"
    "Try it on one machine: `tacit fleet init DIR --data GunPoint --nodes 3`, then "
    "`tacit fleet up DIR`."
)

for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
app.command("export")(export_command)

ConfigArgument = Annotated[Path, typer.Argument(help="The configuration that 'init' wrote.")]
MetricsOption = Annotated[
    str | None,
    typer.Option("--metrics", metavar="HOST:PORT", help="Answer GET /metrics there, plain HTTP."),
]
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
    mechanism: MechanismOption = "privunit",
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
        raise TacitError(
            f"cannot write to {folder}: {error.strerror}; choose another folder."
        ) from error
    emit({"folder": folder, **_described(fleet)}, as_json=as_json)


@app.command()
def shuffler(
    config: ConfigArgument, log_format: LogFormatOption = "text", as_json: JsonFlag = False
) -> None:
    """Run the shuffler until it is stopped; it keeps no report that the analyser has.

    Example: `tacit fleet shuffler fleet/shuffler/shuffler.toml`
    """
    from tacit.fleet.deployment.config import ShufflerConfig, read_config
    from tacit.fleet.deployment.run import run_shuffler

    found = read_config(config, ShufflerConfig)
    _announce("shuffler", {"port": found.port}, log_format, as_json=as_json)
    run_shuffler(config)


@app.command()
def analyser(
    config: ConfigArgument, log_format: LogFormatOption = "text", as_json: JsonFlag = False
) -> None:
    """Run the analyser until it is stopped; after a crash it first finishes the batch at hand.

    Example: `tacit fleet analyser fleet/analyser/analyser.toml`
    """
    from tacit.fleet.deployment.config import AnalyserConfig, read_config
    from tacit.fleet.deployment.run import run_analyser

    found = read_config(config, AnalyserConfig)
    ports = {"ingest_port": found.ingest_port, "public_port": found.public_port}
    _announce("analyser", ports, log_format, as_json=as_json)
    run_analyser(config)


@app.command()
def node(
    config: ConfigArgument,
    transport: Annotated[
        Transport, typer.Option(help="https is light, polls the shuffler and ends with the run.")
    ] = "flower",
    poll_seconds: Annotated[
        float, typer.Option(help="How often a light node asks for a round.")
    ] = 5.0,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = "text",
    as_json: JsonFlag = False,
) -> None:
    """Run one node until the run is over: Flower's SuperNode, or a light node.

    Example: `tacit fleet node fleet/nodes/node-1/node.toml --transport https`
    """
    from tacit.fleet.deployment.config import NodeConfig, read_config

    found = read_config(config, NodeConfig)
    told = {"name": found.name, "transport": transport}
    _announce("node", told, log_format, as_json=as_json)
    if transport == "https":
        from tacit.fleet.deployment.light_node import run_light_node

        run_light_node(config, poll_seconds=poll_seconds, metrics=metrics)
        return
    from tacit.fleet.deployment.run import run_node

    run_node(config, metrics=metrics)


@app.command()
def server(
    config: ConfigArgument,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the analyser's checkpoint.")
    ] = False,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = "text",
    as_json: JsonFlag = False,
) -> None:
    """Run the Flower server and drive the rounds until the run is finished.

    Example: `tacit fleet server fleet/server/server.toml --json`
    """
    from tacit.fleet.deployment.flower.superlink import run_server

    with _rounds(log_format) as progress:
        watched = progress if metrics is None else _with_metrics(progress, metrics)
        result = run_server(config, resume=resume, progress=watched)
    emit(result, as_json=as_json)


@contextmanager
def _rounds(log_format: LogFormat) -> Iterator[Progress]:
    """How far the run is: a bar, or lines of the log."""
    if log_format == "text":
        with progress_bar("rounds") as progress:
            yield progress
        return
    log_to_standard_error(log_format)
    yield lambda done, total, message: _LOG.info("round %d of %d: %s", done, total, message)


def _with_metrics(progress: Progress, address: str) -> Progress:
    """Where the run stands, for Prometheus too."""
    from tacit.system.metrics import serve_metrics

    figures = {"finished_rounds": 0.0, "rounds": 0.0}
    serve_metrics(address, part="server", figures=lambda: figures)

    def report(done: int, total: int, message: str) -> None:
        figures.update(finished_rounds=done, rounds=total)
        progress(done, total, message)

    return report


@app.command()
def status(folder: FolderArgument, as_json: JsonFlag = False) -> None:
    """Ask shuffler and analyser where the run stands and what was spent.

    FOLDER is the one that 'init' wrote, or its `server` folder. Whoever holds only the folder of
    the shuffler or the analyser asks that service alone, on its own machine.

    Example: `tacit fleet status fleet --json`
    """
    result = asked(folder)
    emit(result, as_json=as_json, render=lambda: draw_status(result))


@app.command()
def up(
    folder: FolderArgument,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the analyser's checkpoint.")
    ] = False,
    log_format: LogFormatOption = "text",
    as_json: JsonFlag = False,
) -> None:
    """Run the whole fleet on this machine until the run is finished: a try-out.

    Example: `tacit fleet up fleet --json`
    """
    from tacit.fleet.deployment.localhost import run_whole_fleet

    with _rounds(log_format) as progress:
        result = shown(run_whole_fleet(folder, resume=resume, progress=progress))
    emit(result, as_json=as_json)


@app.command()
def classify(
    model: Annotated[
        Path,
        typer.Argument(help="File of 'train timefl --out', or the analyser's or fleet's folder."),
    ],
    data: DataOption,
    part: PartOption = None,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Classify new series with a trained model; they do not leave this machine.

    Labels, if the series have any, give the accuracy.

    Example: `tacit fleet classify fleet --data new.npz --json`
    """
    from tacit.data.load import load_part
    from tacit.fleet.deployment.analyser_state import read_fleet_model
    from tacit.fleet.model import load_fleet_model

    found = read_fleet_model(model) if model.is_dir() else load_fleet_model(model)
    X, truth = load_part(data, part=part, label=label)
    labels = found.labels(X)
    result = {
        "labels": labels.tolist(),
        "accuracy": None if truth is None else float((labels == truth).mean()),
        "guarantee": found.guarantee,
        "rounds": found.rounds,
    }
    emit(result, as_json=as_json)


def _announce(part: str, details: dict[str, Any], log_format: LogFormat, *, as_json: bool) -> None:
    """Say what starts, in one JSON object or one line; what follows goes to standard error."""
    log_to_standard_error(log_format)
    text = ", ".join(f"{key} {value}" for key, value in details.items())
    emit(
        {"part": part, **details},
        as_json=as_json,
        render=lambda: _LOG.info("%s: %s; stop with Ctrl-C", part, text),
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
