"""The files that describe one fleet: the public plan, and one configuration per service and node.

All are TOML, written by `tacit fleet init` and meant to be read by people. Every node keeps its
own copy of the plan and takes its privacy parameters from there, never from the network. Paths in
a configuration are relative to the folder that holds it, so a folder can be moved to its machine.

NumPy and the standard library only, because nodes carry this module.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from tacit.errors import TacitError, check_at_least, check_positive
from tacit.fleet.plan import FleetPlan, plan_from_json
from tacit.system.toml import read_toml

_KEY_HEX = 64
_RUN_KEYS = {
    *("run", "round_seconds", "analyser_key", "shuffler_key"),
    *("most_nodes", "node_costs", "plan"),
}
LARGEST_BATCH = 2**32  # bytes; a plan whose full batch is larger is not made


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """One deployment of a plan; public, and equal for all who take part.

    The shuffler's time for a round, `round_seconds`, runs from the round's first report. What a
    node debits in its first, second, ... round is in `node_costs`, (epsilon, delta) each, where
    working it out takes more than NumPy. The plan is calibrated for up to `most_nodes` nodes.
    """

    run: str
    round_seconds: float
    analyser_key: str
    shuffler_key: str
    plan: FleetPlan
    most_nodes: int = 2
    node_costs: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        check_at_least(self.plan.n_min, 2, name="n_min")
        check_positive(self.round_seconds, name="round_seconds")
        if not self.run.isalnum():
            raise TacitError(f"run must be letters and digits, got {self.run!r}.")
        for name in ("analyser_key", "shuffler_key"):
            key = getattr(self, name)
            if len(key) != _KEY_HEX or not _is_hex(key):
                raise TacitError(
                    f"{name} must be 64 hexadecimal digits; copy the plan that "
                    "'tacit fleet init' wrote."
                )

    @property
    def public_key(self) -> bytes:
        """The analyser's public key, to which its part of a report is sealed."""
        return bytes.fromhex(self.analyser_key)

    @property
    def helper_key(self) -> bytes:
        """The shuffler's public key, to which it is sealed what it reads as a share helper."""
        return bytes.fromhex(self.shuffler_key)

    def to_plain(self) -> dict[str, Any]:
        """Plain values for TOML; `read_run` reads them back to an equal run."""
        return {
            "run": self.run,
            "round_seconds": self.round_seconds,
            "analyser_key": self.analyser_key,
            "shuffler_key": self.shuffler_key,
            "most_nodes": self.most_nodes,
            "node_costs": [list(cost) for cost in self.node_costs],
            "plan": json.loads(self.plan.to_json()),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ShufflerConfig:
    """Where the shuffler listens, whom it knows, and where the analyser is.

    How many reports the open round has is shown to the address `count_shown_to`, the operator's,
    and to nobody else.
    """

    plan: Path
    host: str
    port: int
    certificate: Path
    private_key: Path
    client_certificate: Path
    client_key: Path
    analyser_url: str
    analyser_certificate: Path
    sealing_key: Path
    nodes: Path
    state: Path
    count_shown_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyserConfig:
    """Where the analyser listens for the shuffler and for readers of the model."""

    plan: Path
    host: str
    ingest_port: int
    public_port: int
    certificate: Path
    private_key: Path
    shuffler_certificate: Path
    sealing_key: Path
    nodes: Path
    state: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The Flower SuperLink and the application that drives the rounds."""

    plan: Path
    host: str
    port: int
    certificate: Path
    private_key: Path
    node_keys: Path
    app: Path
    state: Path
    analyser_url: str
    analyser_certificate: Path
    shuffler_url: str
    shuffler_certificate: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """One node: its name, its data, its keys, and where it reports."""

    plan: Path
    name: str
    data: Path
    shuffler_url: str
    shuffler_certificate: Path
    signing_key: Path
    state: Path
    analyser_url: str = ""  # where it keeps a list of nodes of its own, under `distributed`
    analyser_certificate: Path | None = None
    server: str = ""  # this and the next three for nodes that use Flower
    server_certificate: Path | None = None
    identity: Path | None = None
    runtime_port: int = 0
    person: str = ""  # whose data these are; empty: keyed by the series themselves
    ledgers: Path | None = None  # folder of the persons' ledgers; None: the account's own


_Config = TypeVar("_Config", ShufflerConfig, AnalyserConfig, ServerConfig, NodeConfig)


def own_host(listen: str) -> str:
    """Where processes of the same machine reach what listens there; as Flower's own do."""
    return "127.0.0.1" if listen == "0.0.0.0" else listen


def read_run(path: Path) -> RunDescription:
    """Read and check a run's plan file."""
    plain = read_toml(path)
    if set(plain) != _RUN_KEYS:
        raise TacitError(f"{path} is not a plan file; write it with 'tacit fleet init'.")
    return RunDescription(
        run=_typed(plain["run"], str, path=path, key="run"),
        round_seconds=_typed(plain["round_seconds"], float, path=path, key="round_seconds"),
        analyser_key=_typed(plain["analyser_key"], str, path=path, key="analyser_key"),
        shuffler_key=_typed(plain["shuffler_key"], str, path=path, key="shuffler_key"),
        plan=plan_from_json(json.dumps(plain["plan"])),
        most_nodes=_typed(plain["most_nodes"], int, path=path, key="most_nodes"),
        node_costs=_costs(plain["node_costs"], path=path),
    )


def _costs(plain: Any, *, path: Path) -> tuple[tuple[float, float], ...]:
    try:
        return tuple((float(epsilon), float(delta)) for epsilon, delta in plain)
    except (TypeError, ValueError) as error:
        raise TacitError(f"{path}: node_costs must be pairs of numbers, got {plain!r}.") from error


def read_config(path: Path, kind: type[_Config]) -> _Config:
    """Read and check one file; missing, unknown or mistyped keys are refused by name."""
    plain = read_toml(path)
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields]
    optional = {field.name for field in fields if field.default is not dataclasses.MISSING}
    for key in plain:
        if key not in names:
            raise TacitError(f"{path} holds the unknown key {key!r}; known are {names}.")
    for key in names:
        if key not in plain and key not in optional:
            raise TacitError(f"{path} lacks the key {key!r}; write it with 'tacit fleet init'.")
    values = {key: _typed(plain[key], hints[key], path=path, key=key) for key in plain}
    return kind(**values)


def _typed(value: Any, hint: Any, *, path: Path, key: str) -> Any:
    if hint in (Path, Path | None) and isinstance(value, str):
        return path.parent / value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint not in (Path, Path | None) and isinstance(value, hint) and not isinstance(value, bool):
        return value
    kind = getattr(hint, "__name__", "Path")
    raise TacitError(f"{path}: {key} must be of type {kind}, got {value!r}.")


def _is_hex(text: str) -> bool:
    try:
        bytes.fromhex(text)
    except ValueError:
        return False
    return True
