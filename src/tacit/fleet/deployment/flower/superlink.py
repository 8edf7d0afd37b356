"""Flower's SuperLink and one run over it, driven until the analyser has finished.

The SuperLink obeys this server alone (`access`) and starts nothing but the fleet's own application
(`allowed_commands`); before anything runs over it, access is put to the test.

The SuperLink's database remembers the nodes' keys; the state of the run itself lives with the
analyser, so a SuperLink that dies costs nothing but the time to start another. An analyser that is
away is waited for, as shuffler and nodes do.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.fleet.deployment.config import (
    RunDescription,
    ServerConfig,
    own_host,
    read_config,
    read_run,
)
from tacit.fleet.deployment.flower import access
from tacit.fleet.deployment.flower.allowed_commands import code_that_runs, write_server_commands
from tacit.fleet.deployment.run import (
    analyser_status,
    flower_environment,
    start_seconds,
    stop,
    stop_on_sigterm,
)
from tacit.system.certificates import trust_only
from tacit.system.files import write_atomic
from tacit.system.posix import needs_posix
from tacit.system.progress import Progress, silent
from tacit.system.toml import write_toml

_LOG = logging.getLogger("tacit.fleet")
_START_SECONDS = start_seconds()
_COMMAND_SECONDS = 2.0 * _START_SECONDS
_POLL_SECONDS = 0.3
_AWAY_SECONDS = 2.0  # between two questions to an analyser that is away
_LOOK_SECONDS = 20.0  # asking Flower for its run's state costs a second
_FINISH_SECONDS = 15.0
_CONNECTION = "fleet"
_ATTEMPTS = 5  # of Flower's run in one round
_DEATHS = 5  # of the SuperLink in one round
_PYTHON = [sys.executable, "-P", "-c"]  # -P: the working directory is no place to import from


def run_server(path: Path, *, resume: bool, progress: Progress = silent) -> dict[str, Any]:
    """Run the SuperLink and one Flower run over it until the analyser has finished."""
    needs_posix("a fleet's server")
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
    stop_on_sigterm()
    home = (config.state / "flower").resolve()
    environment = server_environment(home)
    _write_connection(home, config)
    deaths: list[int] = []  # the rounds at which it died
    while True:
        with _superlink(config, environment) as superlink:
            _register_nodes(config, environment)
            run = _FlowerRun(path, config, environment)
            status = _watch(config, fleet, superlink, progress, run)
            if status["finished"]:
                _let_finish(run.ended)
                return status
        deaths = [*(at for at in deaths if at == status["round"]), status["round"]]
        if len(deaths) > _DEATHS:
            raise TacitError(
                f"the SuperLink ended {len(deaths)} times at round {status['round']} of "
                f"{fleet.plan.n_rounds}; see {config.state / 'superlink.log'} and go on with "
                "'tacit fleet server CONFIG --resume', nothing that was spent is forgotten."
            )
        _LOG.warning("the SuperLink ended at round %d; starting another", status["round"])


class _FlowerRun:
    """Flower's run over our rounds, begun again if it ends before they do.

    On a slow machine Flower takes its own process for dead. Where the rounds stand is with the
    analyser, so another run goes on there. One that ends again and again without a round is left.
    """

    def __init__(self, path: Path, config: ServerConfig, environment: dict[str, str]) -> None:
        self._path, self._config, self._environment = path, config, environment
        self._id = _start_run(path, config, environment)
        self._again: list[int] = []  # the rounds at which it was begun again

    def follow_nodes(self) -> None:
        """Register nodes that have joined meanwhile, and unregister those that were revoked."""
        _register_nodes(self._config, self._environment)

    def ended(self) -> str | None:
        """How Flower's run ended, or None while it goes on."""
        return _ended(self._environment, self._id)

    def go_on(self, round_number: int, how: str) -> None:
        """Begin another run over the rounds that are left, unless this one has no use."""
        self._again = [*(at for at in self._again if at == round_number), round_number]
        if len(self._again) > _ATTEMPTS:
            raise TacitError(
                f"Flower's run ended early {len(self._again)} times in round {round_number} "
                f"({how}); see {self._config.state / 'superlink.log'} and go on with "
                "'tacit fleet server CONFIG --resume'."
            )
        _LOG.warning("Flower's run ended early (%s); beginning another", how)
        self._id = _start_run(self._path, self._config, self._environment)


def server_environment(home: Path) -> dict[str, str]:
    """Flower's environment with the allowed commands and a new secret of the server's."""
    environment = flower_environment(home, commands=write_server_commands)
    return {**environment, access.SECRET_VARIABLE: secrets.token_hex(32)}


@contextlib.contextmanager
def _superlink(
    config: ServerConfig, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    config.state.mkdir(parents=True, exist_ok=True)
    _wait_until_free(config)
    arguments = [
        *(*_PYTHON, code_that_runs(access.superlink)),
        *("--host", config.host, "--port", str(config.port)),
        *("--ssl-ca-certfile", str(config.certificate.resolve())),
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
        _check_access_control(config)
        yield process
    finally:
        stop(process, group=True)


def _wait_until_free(config: ServerConfig) -> None:
    """An earlier SuperLink follows its server within a second or two, but not at once."""
    deadline = time.monotonic() + _FINISH_SECONDS
    while _is_listening(config):
        if time.monotonic() > deadline:
            raise TacitError(
                f"something listens on {_own_address(config)} already; stop it, or choose another "
                "port in the server's and the nodes' configurations."
            )
        time.sleep(_POLL_SECONDS)


def _is_listening(config: ServerConfig) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((config.host, config.port), 1):
        return True
    return False


def _wait_until_listening(process: subprocess.Popen[bytes], config: ServerConfig) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if _is_listening(config):
            return
        time.sleep(_POLL_SECONDS)
    raise TacitError(
        f"Flower's SuperLink did not start on {config.host}:{config.port}; "
        f"see {config.state / 'superlink.log'}."
    )


def _check_access_control(config: ServerConfig) -> None:
    """Stop if a stranger could command the SuperLink, as after a change of Flower's."""
    import httpx

    tls = trust_only(config.certificate)
    url = f"https://{_own_address(config)}/v1/control/list-runs"
    try:
        status = httpx.post(url, verify=tls, timeout=_START_SECONDS, trust_env=False).status_code
    except httpx.HTTPError as error:
        raise TacitError(
            f"Flower's SuperLink does not answer ({type(error).__name__}); "
            f"see {config.state / 'superlink.log'}."
        ) from error
    if status != httpx.codes.FORBIDDEN:
        raise TacitError(
            f"Flower's SuperLink answered a stranger with {status}; install the version of Flower "
            "that 'pip install tacit-ts[fleet]' asks for."
        )


def _own_address(config: ServerConfig) -> str:
    """Where the server's own processes reach the SuperLink."""
    return f"{own_host(config.host)}:{config.port}"


def _write_connection(home: Path, config: ServerConfig) -> None:
    """Where Flower's own command finds the SuperLink."""
    connection = {
        "address": _own_address(config),
        "root-certificates": str(config.certificate.resolve()),
    }
    write_toml(
        home / "config.toml", {"superlink": {"default": _CONNECTION, _CONNECTION: connection}}
    )


def _register_nodes(config: ServerConfig, environment: dict[str, str]) -> None:
    """Let the SuperLink, whose database remembers them, know the nodes of the folder alone.

    Nothing is asked of Flower while the folder is as it was.
    """
    done = config.state / "registered.txt"
    found = _listed(config.node_keys)
    if done.exists() and done.read_text() == found:
        return
    folder = str(config.node_keys.resolve())
    keep = [*_PYTHON, code_that_runs(access.keep_nodes), _CONNECTION, folder]
    out = _run(keep, environment)
    changed = next(_json_objects(out.stdout), {})
    if not changed.get("success"):
        said = str(changed.get("error-message") or out.stderr or out.stdout)
        raise TacitError(f"Flower did not take the nodes of {folder}: {' '.join(said.split())}")
    if changed["unregistered"]:
        _LOG.info("unregistered %d identities at Flower", changed["unregistered"])
    write_atomic(done, found.encode())


def _listed(folder: Path) -> str:
    """The keys of a folder by name, and whether they were written anew."""
    keys = [(key.stem, key.stat()) for key in sorted(folder.glob("*.pub"))]
    return "".join(f"{name} {at.st_mtime_ns} {at.st_size} {at.st_ino}\n" for name, at in keys)


def _json_objects(text: str) -> Iterator[dict[str, Any]]:
    """One JSON object after the other, as Flower's command prints them."""
    decoder, place = json.JSONDecoder(), 0
    while (place := text.find("{", place)) >= 0:
        try:
            found, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            return
        yield found


def _start_run(path: Path, config: ServerConfig, environment: dict[str, str]) -> str:
    setting = f'server-config="{path.resolve()}"'
    app = str(config.app.resolve())
    started = _flwr(environment, "run", app, _CONNECTION, "--run-config", setting)
    return str(started["run-id"])


def _ended(environment: dict[str, str], run_id: str) -> str | None:
    """How Flower's run ended, or None while it goes on."""
    try:
        listed = _flwr(environment, "list", _CONNECTION, "--run-id", run_id)["runs"]
    except TacitError:
        return None  # a SuperLink that does not answer is noticed by its process
    status = str(listed[0]["status"]) if listed else "gone"
    if status.startswith("finished") or status == "gone":
        return f"{status} ({listed[0]['status-details']})" if listed else status
    return None


def _flwr(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """One command of Flower's own, answering in JSON."""
    flwr = [*_PYTHON, code_that_runs(access.flwr)]
    done = _run([*flwr, *arguments, "--format", "json"], environment)
    answer = next(_json_objects(done.stdout), {})
    if not answer.get("success"):
        said = answer.get("error-message") or done.stderr or done.stdout
        raise TacitError(f"Flower refused '{' '.join(arguments[:2])}': {' '.join(said.split())}")
    return answer


def _run(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            arguments,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TacitError("Flower's SuperLink did not answer in time; see its log.") from error


def _let_finish(ended: Callable[[], str | None]) -> None:
    """Give Flower's own process time to see the end; stopped earlier it would outlive us."""
    deadline = time.monotonic() + _FINISH_SECONDS
    while ended() is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _watch(
    config: ServerConfig,
    fleet: RunDescription,
    superlink: subprocess.Popen[bytes],
    progress: Progress,
    run: _FlowerRun,
) -> dict[str, Any]:
    """Follow the analyser to the end, or until the SuperLink ends; returns its last status."""
    look_again = time.monotonic() + _LOOK_SECONDS
    while True:
        status = _patient_status(config, fleet, progress)
        spent = status["spent"]["epsilon"]
        progress(status["round"] - 1, fleet.plan.n_rounds, f"epsilon spent {spent:.4g}")
        if status["finished"]:
            return status
        run.follow_nodes()
        if superlink.poll() is not None:
            return status
        if time.monotonic() > look_again:
            look_again = time.monotonic() + _LOOK_SECONDS
            how = run.ended()
            now = _patient_status(config, fleet, progress)
            if how is not None and not now["finished"]:
                run.go_on(now["round"], how)
        time.sleep(_POLL_SECONDS)


def _patient_status(
    config: ServerConfig, fleet: RunDescription, progress: Progress
) -> dict[str, Any]:
    """The analyser's status, however long it is away."""
    away = False
    while True:
        try:
            return analyser_status(config, wait_seconds=0.0 if away else _START_SECONDS)
        except TacitError as error:
            if not away:
                _LOG.warning("waiting: %s", error)
                progress(0, fleet.plan.n_rounds, "waiting for the analyser")
            away = True
            time.sleep(_AWAY_SECONDS)
