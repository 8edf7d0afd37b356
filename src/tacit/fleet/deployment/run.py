"""Run the parts of a fleet: our two services and Flower's SuperNodes.

Flower is started through its own commands, offline (no telemetry, no update check, no dependency
installation), with TLS and node authentication always on; there is no switch to turn them off.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tacit.errors import TacitError, check_positive
from tacit.fleet.deployment.config import (
    LARGEST_BATCH,
    AnalyserConfig,
    NodeConfig,
    RunDescription,
    ServerConfig,
    ShufflerConfig,
    own_host,
    read_config,
    read_run,
)
from tacit.system.certificates import trust_only
from tacit.system.extras import needs
from tacit.system.files import write_atomic
from tacit.system.locks import locked
from tacit.system.logs import output_of_programs
from tacit.system.metrics import serve_metrics
from tacit.system.posix import needs_posix

if TYPE_CHECKING:
    from tacit.fleet.deployment.analyser import Analyser
    from tacit.fleet.deployment.batches.share_sums import ShareSums
    from tacit.fleet.deployment.shuffler import Shuffler

_STOP_SECONDS = 10.0
_STATUS_SECONDS = 10.0
_POLL_SECONDS = 0.3
_RESTART_SECONDS = 1.0
_LOOK_SECONDS = 5.0  # between two questions whether the run is over


def run_shuffler(path: Path) -> None:
    """Serve one shuffler, or share helper, until a signal stops it."""
    _check_service_packages()
    from tacit.fleet.deployment.http import serve, shuffler_servers

    config = read_config(path, ShufflerConfig)
    fleet = read_run(config.plan)
    with _only_one(config.state, "shuffler"):
        shuffler, sums = open_shuffler(config, fleet)
        serve(*shuffler_servers(config, shuffler, sums))


def open_shuffler(
    config: ShufflerConfig, fleet: RunDescription
) -> tuple[Shuffler, ShareSums | None]:
    """The shuffler of a run over its folder, and its sums if it is a share helper."""
    from tacit.fleet.deployment.batches.pools import PermutedPool, Pool, SignedPool
    from tacit.fleet.deployment.batches.registry import Registry
    from tacit.fleet.deployment.batches.share_sums import ShareSums
    from tacit.fleet.deployment.seal import Opener, sealed_size
    from tacit.fleet.deployment.shuffler import Shuffler
    from tacit.fleet.learning.learner import Learner

    learner = Learner(fleet.plan)
    size = sealed_size(learner.message_bytes)
    opener = Opener(read_bytes(config.sealing_key), run=fleet.run, reader="helper")
    pool: Pool = PermutedPool(sealed_bytes=size)
    if learner.helper_bytes:
        pool = SignedPool(analyser_bytes=size, helper_bytes=learner.helper_bytes, opener=opener)
    shuffler = Shuffler(
        run=fleet.run,
        registry=Registry.read(config.nodes),
        pool=pool,
        n_min=fleet.plan.n_min,
        round_seconds=fleet.round_seconds,
        folder=config.state,
    )
    if not learner.helper_bytes:
        return shuffler, None
    return shuffler, ShareSums(
        shuffler.record,
        opener=opener,
        n_min=fleet.plan.n_min,
        sum_parts=learner.sum_helper_parts,
    )


def run_analyser(path: Path) -> None:
    """Serve one analyser until a signal stops it; first finishes what a crash left."""
    _check_service_packages()
    from tacit.fleet.deployment.http import analyser_servers, serve

    config = read_config(path, AnalyserConfig)
    fleet = read_run(config.plan)
    with _only_one(config.state, "analyser"):
        analyser = open_analyser(config, fleet)
        try:
            serve(*analyser_servers(config, analyser, max_bytes=LARGEST_BATCH))
        finally:
            analyser.close()


def _check_service_packages() -> None:
    needs_posix("a fleet's service")
    needs("fleet", "fastapi", "uvicorn", "prometheus_client", what="a fleet's service")


@contextlib.contextmanager
def _only_one(folder: Path, what: str) -> Iterator[None]:
    """Two services over one folder would forward a round twice, or forget what was spent."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "lock", timeout_seconds=_STOP_SECONDS))
        except TimeoutError as error:
            raise TacitError(f"another {what} uses {folder}; stop it first.") from error
        yield


def open_analyser(config: AnalyserConfig, fleet: RunDescription) -> Analyser:
    """The analyser of a run over its folder; first finishes what a crash left."""
    from tacit.fleet.deployment.analyser import Analyser
    from tacit.fleet.deployment.batches.registry import Registry
    from tacit.fleet.learning.learner import Learner

    return Analyser(
        run=fleet.run,
        rounds=fleet.plan.n_rounds,
        n_min=fleet.plan.n_min,
        epsilon=fleet.plan.epsilon,
        delta=fleet.plan.delta,
        private_key=read_bytes(config.sealing_key),
        rule=Learner(fleet.plan),
        folder=config.state,
        registry=Registry.read(config.nodes),
    )


def run_node(path: Path, *, metrics: str | None = None) -> None:
    """Keep Flower's SuperNode running for one node until the run is over.

    It runs the installed application only.
    """
    needs_posix("a node over Flower")
    from tacit.fleet.deployment.node import check_person

    config = read_config(path, NodeConfig)
    fleet = read_run(config.plan)
    if not config.server or config.identity is None or config.server_certificate is None:
        raise TacitError(
            f"{path} names no Flower server; run it with --transport https, or add the server's "
            "address, its certificate and an identity."
        )
    for needed in (config.data, config.identity, config.signing_key):
        read_bytes(needed)
    check_person(config, fleet)
    for certificate in (config.server_certificate, config.shuffler_certificate):
        trust_only(certificate)
    arguments, environment = _supernode(path, config)
    figures = {"supernode_runs": 0.0, "supernode_starts": 0.0}
    if metrics is not None:
        serve_metrics(metrics, part="node", figures=lambda: figures)
    stop_on_sigterm()
    output = output_of_programs()
    while not _run_is_over(config, fleet):
        process = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,  # our standard output is for JSON
            stderr=output,
            start_new_session=True,
        )
        try:
            figures.update(supernode_runs=1, supernode_starts=figures["supernode_starts"] + 1)
            write_atomic(config.state / "supernode.pid", str(process.pid).encode())
            while process.poll() is None and not _run_is_over(config, fleet):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_SECONDS)
        finally:
            stop(process, group=True)
        figures["supernode_runs"] = 0
        # A SuperNode gives up when the SuperLink does not know its key yet; it will.
        time.sleep(_RESTART_SECONDS)


def _run_is_over(config: NodeConfig, fleet: RunDescription) -> bool:
    """Whether the shuffler says so; one that does not answer says nothing."""
    import httpx

    from tacit.fleet.deployment.node import ShufflerClient

    shuffler = ShufflerClient(config, fleet)
    try:
        offer = shuffler.offer()
        shuffler.trust_next(offer)
        return offer.finished
    except (httpx.HTTPError, TacitError):
        return False
    finally:
        shuffler.close()


def _supernode(path: Path, config: NodeConfig) -> tuple[list[str], dict[str, str]]:
    from tacit.fleet.deployment.flower.allowed_commands import write_node_commands

    assert config.identity is not None, "checked before"
    assert config.server_certificate is not None, "checked before"
    home = (config.state / "flower").resolve()
    environment = flower_environment(home, commands=write_node_commands)
    arguments = [
        *("flower-supernode", "--superlink", config.server),
        *("--root-certificates", str(config.server_certificate.resolve())),
        *("--auth-supernode-private-key", str(config.identity.resolve())),
        *("--host", "127.0.0.1", "--port", str(config.runtime_port)),
        *("--node-config", f'tacit-config="{path.resolve()}"'),
    ]
    return arguments, environment


def start_seconds() -> float:
    """How long services and Flower may take to start: 60 s, or TACIT_START_SECONDS."""
    text = os.environ.get("TACIT_START_SECONDS", "60")
    try:
        return check_positive(float(text), name="TACIT_START_SECONDS")
    except ValueError as error:
        raise TacitError(f"TACIT_START_SECONDS must be a number above 0, got {text!r}.") from error


def stop_on_sigterm() -> None:
    """Leave through the `finally` clauses, so that no child outlives its parent."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def analyser_status(
    config: ServerConfig, *, wait_seconds: float = 0.0, timeout_seconds: float = _STATUS_SECONDS
) -> dict[str, Any]:
    """The analyser's public status."""
    tls = trust_only(config.analyser_certificate)
    return _get_json(config.analyser_url, tls, "analyser", wait_seconds, timeout_seconds)


def shuffler_status(
    config: ServerConfig, *, timeout_seconds: float = _STATUS_SECONDS
) -> dict[str, Any]:
    """The shuffler's public status: the open round and whether enough nodes have reported."""
    tls = trust_only(config.shuffler_certificate)
    return _get_json(config.shuffler_url, tls, "shuffler", 0.0, timeout_seconds)


def own_status(config: ShufflerConfig | AnalyserConfig) -> dict[str, Any]:
    """The status of the service of this configuration, asked on its own machine."""
    part, port = (
        ("shuffler", config.port)
        if isinstance(config, ShufflerConfig)
        else ("analyser", config.public_port)
    )
    tls = trust_only(config.certificate)
    tls.check_hostname = False  # its own certificate alone is trusted, under whatever address
    host = own_host(config.host)
    url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return _get_json(url, tls, part, 0.0, _STATUS_SECONDS)


def flower_environment(
    home: Path, *, commands: Callable[[Path], None] | None = None
) -> dict[str, str]:
    """The environment in which Flower's commands are found and run quietly, with files in `home`.

    What `commands` writes into a folder is found before Flower's commands of the same names.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if shutil.which("flower-superlink", path=path) is None:
        raise TacitError("a fleet needs Flower; install it with 'pip install tacit-ts[fleet]'.")
    if commands is not None:
        commands(home / "bin")
        path = f"{home / 'bin'}{os.pathsep}{path}"
        _check_found_first(home / "bin", path)
    return {
        **os.environ,
        "PATH": path,
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
        # Two further ports of the SuperLink's, which would have no access control.
        "FLWR_INTERNAL_GRPC_CONTROL_API": "0",
        "FLWR_INTERNAL_GRPC_FLEET_API": "0",
        # The nodes' tasks are small; a thread pool each would only compete for the cores.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _check_found_first(folder: Path, path: str) -> None:
    """Start nothing where the search would miss our commands and find Flower's own."""
    for command in sorted(folder.iterdir()):
        if shutil.which(command.name, path=path) != str(command):
            raise TacitError(
                f"{command} cannot be run; keep the state in a folder without {os.pathsep!r} in "
                "its name, on a drive that allows programs."
            )


def stop(process: subprocess.Popen[Any], *, group: bool = False) -> None:
    """Ask a process to end, and end it if it does not; with `group`, all that it started too."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    if group:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def read_bytes(path: Path) -> bytes:
    """A file's content, or one sentence about why not."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise TacitError(f"cannot read {path}: {error.strerror}; check the path.") from error


def _get_json(
    url: str, tls: ssl.SSLContext, who: str, wait_seconds: float, timeout_seconds: float
) -> dict[str, Any]:
    import httpx

    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            response = httpx.get(
                f"{url}/v1/status", verify=tls, timeout=timeout_seconds, trust_env=False
            )
            answer: dict[str, Any] = response.raise_for_status().json()
            return answer
        except (httpx.HTTPError, ValueError) as error:
            if time.monotonic() > deadline:
                raise TacitError(
                    f"the {who} at {url} does not answer ({type(error).__name__}); start it with "
                    f"'tacit fleet {who} CONFIG'."
                ) from error
            time.sleep(_POLL_SECONDS)
