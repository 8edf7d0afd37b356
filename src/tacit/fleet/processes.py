"""Run the parts of a fleet: our two services, Flower's SuperLink with a run, and its SuperNodes.

Flower is started through its own commands, offline (no telemetry, no update check, no dependency
installation), with TLS and node authentication always on; there is no switch to turn them off.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tacit.errors import TacitError
from tacit.fleet.keys import write_atomic
from tacit.fleet.plan_file import (
    AnalyserConfig,
    FleetRun,
    NodeConfig,
    ServerConfig,
    ShufflerConfig,
    read_config,
    read_run,
)
from tacit.progress import Progress, silent

if TYPE_CHECKING:
    from tacit.fleet.analyser import Analyser

_START_SECONDS = 60.0
_COMMAND_SECONDS = 120.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.3
_RESTART_SECONDS = 1.0
_CONNECTION = "fleet"


def run_shuffler(path: Path) -> None:
    """Serve one shuffler until a signal stops it."""
    from tacit.fleet.learning import Learner
    from tacit.fleet.seal import sealed_size
    from tacit.fleet.services import serve, shuffler_servers
    from tacit.fleet.shuffler import Shuffler

    config = read_config(path, ShufflerConfig)
    fleet = read_run(config.plan)
    learner = Learner(fleet.plan)
    shuffler = Shuffler(
        run=fleet.run,
        secret=read_bytes(config.registration_secret),
        nodes=read_bytes(config.nodes).decode().split(),
        sealed_bytes=sealed_size(learner.message_bytes),
        messages_per_node=learner.messages_per_node,
        n_min=fleet.plan.n_min,
        round_seconds=fleet.round_seconds,
    )
    serve(shuffler_servers(config, shuffler))


def run_analyser(path: Path) -> None:
    """Serve one analyser until a signal stops it; first finishes what a crash left."""
    from tacit.fleet.services import analyser_servers, serve

    config = read_config(path, AnalyserConfig)
    fleet = read_run(config.plan)
    analyser = open_analyser(config, fleet)
    try:
        serve(analyser_servers(config, analyser, max_bytes=2**32))
    finally:
        analyser.close()


def open_analyser(config: AnalyserConfig, fleet: FleetRun) -> Analyser:
    """The analyser of a run over its folder; first finishes what a crash left."""
    from tacit.fleet.analyser import Analyser
    from tacit.fleet.learning import Learner

    return Analyser(
        run=fleet.run,
        rounds=fleet.plan.n_rounds,
        n_min=fleet.plan.n_min,
        epsilon=fleet.plan.epsilon,
        delta=fleet.plan.delta,
        private_key=read_bytes(config.sealing_key),
        rule=Learner(fleet.plan),
        folder=config.state,
    )


def run_node(path: Path) -> NoReturn:
    """Keep Flower's SuperNode running for one node; what it runs is pinned to the installation."""
    config = read_config(path, NodeConfig)
    read_run(config.plan)
    for needed in (config.data, config.identity, config.token_key, config.authority):
        read_bytes(needed)
    arguments, environment = _supernode(path, config)
    _stop_on_sigterm()
    while True:
        process = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,  # Flower logs there; our standard output is for JSON
            start_new_session=True,
        )
        try:
            write_atomic(config.state / "supernode.pid", str(process.pid).encode())
            process.wait()
        finally:
            stop(process, group=True)
        # A SuperNode gives up when the SuperLink does not know its key yet; it will.
        time.sleep(_RESTART_SECONDS)


def _supernode(path: Path, config: NodeConfig) -> tuple[list[str], dict[str, str]]:
    from tacit.fleet.pinned import write_launcher

    home = (config.state / "flower").resolve()
    launcher = write_launcher(home / "bin")
    environment = flower_environment(home)
    environment["PATH"] = f"{launcher.parent}{os.pathsep}{environment['PATH']}"
    arguments = [
        *("flower-supernode", "--superlink", config.server),
        *("--root-certificates", str(config.authority.resolve())),
        *("--auth-supernode-private-key", str(config.identity.resolve())),
        *("--host", "127.0.0.1", "--port", str(config.runtime_port)),
        *("--node-config", f'tacit-config="{path.resolve()}"'),
    ]
    return arguments, environment


def _stop_on_sigterm() -> None:
    """Leave through the `finally` clauses, so that no child outlives its parent."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def run_server(path: Path, *, resume: bool, progress: Progress = silent) -> dict[str, Any]:
    """Run the SuperLink and one Flower run over it until the analyser has finished."""
    config = read_config(path, ServerConfig)
    fleet = read_run(config.plan)
    before = analyser_status(config, wait_seconds=_START_SECONDS)
    if before["finished"]:
        return before
    if before["round"] > 1 and not resume:
        raise TacitError(
            f"this run is at round {before['round']} of {fleet.plan.n_rounds} already; "
            "add --resume to go on from the analyser's checkpoint."
        )
    _stop_on_sigterm()
    home = (config.state / "flower").resolve()
    environment = flower_environment(home)
    _write_connection(home, config)
    with _superlink(config, environment) as superlink:
        _register_nodes(config, environment)
        _start_run(path, config, environment)
        return _watch(config, fleet, superlink, progress)


def analyser_status(config: ServerConfig, *, wait_seconds: float = 0.0) -> dict[str, Any]:
    """The analyser's public status."""
    return _get_json(config, config.analyser_url, "analyser", wait_seconds)


def shuffler_status(config: ServerConfig) -> dict[str, Any]:
    """The shuffler's public status: the open round and how many reported."""
    return _get_json(config, config.shuffler_url, "shuffler", 0.0)


def flower_environment(home: Path) -> dict[str, str]:
    """The environment in which Flower's commands run: found, quiet, and at home in `home`."""
    commands = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', '')}",
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
        # The nodes' tasks are small; a thread pool each would only compete for the cores.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


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
        raise TacitError(f"cannot read {path}: {error.strerror}.") from error


@contextlib.contextmanager
def _superlink(
    config: ServerConfig, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    config.state.mkdir(parents=True, exist_ok=True)
    arguments = [
        *("flower-superlink", "--host", config.host, "--port", str(config.port)),
        *("--ssl-ca-certfile", str(config.authority.resolve())),
        *("--ssl-certfile", str(config.certificate.resolve())),
        *("--ssl-keyfile", str(config.private_key.resolve())),
        *("--database", str((config.state / "superlink.db").resolve())),
        *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
    ]
    with (config.state / "superlink.log").open("ab") as log:
        process = subprocess.Popen(
            arguments,
            env=environment,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    write_atomic(config.state / "superlink.pid", str(process.pid).encode())
    try:
        _wait_until_listening(process, config)
        yield process
    finally:
        stop(process, group=True)


def _wait_until_listening(process: subprocess.Popen[bytes], config: ServerConfig) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((config.host, config.port), 1):
            return
        time.sleep(_POLL_SECONDS)
    raise TacitError(
        f"Flower's SuperLink did not start on {config.host}:{config.port}; "
        f"see {config.state / 'superlink.log'}."
    )


def _write_connection(home: Path, config: ServerConfig) -> None:
    text = (
        f'[superlink]\ndefault = "{_CONNECTION}"\n\n[superlink.{_CONNECTION}]\n'
        f'address = "{config.host}:{config.port}"\n'
        f'root-certificates = "{config.authority.resolve()}"\n'
    )
    write_atomic(home / "config.toml", text.encode())


def _register_nodes(config: ServerConfig, environment: dict[str, str]) -> None:
    """Register every node's public key; the SuperLink's database remembers them."""
    done = config.state / "registered.txt"
    known = set(done.read_text().split()) if done.exists() else set()
    for key in sorted(config.node_keys.glob("*.pub")):
        if key.stem in known:
            continue
        _flwr(environment, "supernode", "register", str(key.resolve()), _CONNECTION)
        known.add(key.stem)
        write_atomic(done, "".join(f"{name}\n" for name in sorted(known)).encode())


def _start_run(path: Path, config: ServerConfig, environment: dict[str, str]) -> None:
    setting = f'server-config="{path.resolve()}"'
    _flwr(environment, "run", str(config.app.resolve()), _CONNECTION, "--run-config", setting)


def _flwr(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """One command of Flower's own, answering in JSON."""
    done = subprocess.run(
        ["flwr", *arguments, "--format", "json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        answer = {}
    if not answer.get("success"):
        said = answer.get("error-message") or done.stderr or done.stdout
        raise TacitError(f"Flower refused '{' '.join(arguments[:2])}': {' '.join(said.split())}")
    return answer


def _watch(
    config: ServerConfig, fleet: FleetRun, superlink: subprocess.Popen[bytes], progress: Progress
) -> dict[str, Any]:
    while True:
        status = analyser_status(config, wait_seconds=_START_SECONDS)
        spent = status["spent"]["epsilon"]
        progress(status["round"] - 1, fleet.plan.n_rounds, f"epsilon spent {spent:.4g}")
        if status["finished"]:
            return status
        if superlink.poll() is not None:
            raise TacitError(
                f"the SuperLink ended at round {status['round']} of {fleet.plan.n_rounds}; go on "
                "with 'tacit fleet server CONFIG --resume', nothing that was spent is forgotten."
            )
        time.sleep(_POLL_SECONDS)


def _get_json(config: ServerConfig, url: str, who: str, wait_seconds: float) -> dict[str, Any]:
    import ssl

    import httpx

    tls = ssl.create_default_context(cafile=str(config.authority))
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            response = httpx.get(f"{url}/v1/status", verify=tls, timeout=10.0, trust_env=False)
            answer: dict[str, Any] = response.raise_for_status().json()
            return answer
        except (httpx.HTTPError, ValueError) as error:
            if time.monotonic() > deadline:
                raise TacitError(
                    f"the {who} at {url} does not answer ({type(error).__name__}); start it with "
                    f"'tacit fleet {who} CONFIG'."
                ) from error
            time.sleep(_POLL_SECONDS)
