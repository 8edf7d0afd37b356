"""Set up a fleet: keys, certificates, the plan, and a folder for every service and node.

`tacit fleet init` calls `set_up`. Each folder under the target holds all that one machine needs
and nothing that it may not see: move `shuffler/`, `analyser/`, `server/` and every folder
in `nodes/` to its machine.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, check_at_least
from tacit.fleet.deployment.batches.records import record_size
from tacit.fleet.deployment.batches.registry import write_registry
from tacit.fleet.deployment.batches.signatures import new_signing_key
from tacit.fleet.deployment.config import LARGEST_BATCH, RunDescription, own_host
from tacit.fleet.deployment.flower.bundle import write_app
from tacit.fleet.deployment.keys import node_identity
from tacit.fleet.deployment.seal import new_key, sealed_size
from tacit.fleet.learning.learner import Learner
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import report_of
from tacit.fleet.reports.protocol import Report
from tacit.system.certificates import Pair, self_signed
from tacit.system.files import write_atomic, write_secret
from tacit.system.toml import write_toml

if TYPE_CHECKING:
    from tacit.data import Dataset

_LOCAL = ("localhost", "127.0.0.1")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Where each service will be reached; ports count up from `port`."""

    server: str = "127.0.0.1"
    shuffler: str = "127.0.0.1"
    analyser: str = "127.0.0.1"
    listen: str = "127.0.0.1"
    port: int = 9440

    @property
    def shuffler_url(self) -> str:
        """Where nodes send their reports."""
        return f"https://{self.shuffler}:{self.port + 1}"

    @property
    def ingest_url(self) -> str:
        """Where the shuffler, and nobody else, delivers batches."""
        return f"https://{self.analyser}:{self.port + 2}"

    @property
    def public_url(self) -> str:
        """Where the analyser publishes model and status."""
        return f"https://{self.analyser}:{self.port + 3}"

    def certificates(self, run: str) -> Certificates:
        """A new certificate per service, for the names under which it is reached."""
        # The server's own processes come to the address on which it listens.
        server = _names(self.server, own_host(self.listen))
        return Certificates(
            server=self_signed(f"server of {run}", hosts=server),
            shuffler=self_signed(f"shuffler of {run}", hosts=_names(self.shuffler)),
            analyser=self_signed(f"analyser of {run}", hosts=_names(self.analyser)),
        )

    def runtime_port(self, node: int) -> int:
        """A local port for the node's own Flower processes."""
        return self.port + 10 + node


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Each service's certificate and key; who talks to it gets a copy of the certificate."""

    server: Pair
    shuffler: Pair
    analyser: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """What the operator asks for; the plan adds keys, the run's name and the local epsilon."""

    n_nodes: int
    rounds: int
    epsilon: float
    delta: float
    n_min: int
    mechanism: str = "privunit"
    round_seconds: float = 60.0
    n_kernels: int = 256
    most_nodes: int | None = None  # that may ever take part; default: n_nodes


def set_up(
    folder: Path, data: Dataset, request: FleetRequest, hosts: Hosts, *, seed: int
) -> RunDescription:
    """Write a whole fleet into `folder`, which must be new or empty; returns its run."""
    _check(folder, request, hosts)
    sealing, helper = new_key(), new_key()
    fleet = new_run(data, request, public_key=sealing[1], helper_key=helper[1])
    names = [f"node-{i + 1}" for i in range(request.n_nodes)]
    # Everything is checked before the first file: another attempt needs an empty folder.
    parts = _split(data, request.n_nodes, seed=seed)
    tls = hosts.certificates(fleet.run)
    _write_plan(folder, fleet)
    signing = {name: new_signing_key() for name in names}
    known = {name: public for name, (_, public) in signing.items()}
    _write_shuffler(folder / "shuffler", fleet, tls, hosts, nodes=known, sealing_key=helper[0])
    client = (folder / "shuffler" / "client.crt").read_bytes()
    _write_analyser(
        folder / "analyser",
        fleet,
        tls,
        hosts,
        sealing_key=sealing[0],
        shuffler=client,
        nodes=known if report_of(fleet.plan).analyser_admits_nodes else {},
    )
    _write_server(folder / "server", fleet, tls, hosts)
    for i, name in enumerate(names):
        public_identity = _write_node(
            folder / "nodes" / name,
            fleet,
            tls,
            hosts,
            name=name,
            index=i,
            signing_key=signing[name][0],
        )
        write_atomic(folder / "server" / "node_keys" / f"{name}.pub", public_identity)
        _write_series(folder / "nodes" / name / "data.npz", data, parts == i)
    return fleet


def new_run(
    data: Dataset, request: FleetRequest, *, public_key: bytes, helper_key: bytes
) -> RunDescription:
    """A run that keeps `request.epsilon` even if only `n_min` nodes report in every round."""
    most_nodes = request.n_nodes if request.most_nodes is None else request.most_nodes
    plan = make_plan(
        classes=tuple(str(label) for label in data.classes),
        n_channels=int(data.X_train.shape[1]),
        length=int(data.X_train.shape[2]),
        mechanism=request.mechanism,
        n_clients=most_nodes,
        epsilon=request.epsilon,
        delta=request.delta,
        n_rounds=request.rounds,
        n_min=request.n_min,
        n_kernels=request.n_kernels,
    )
    check_batch_size(report_of(plan), most_nodes)
    written = report_of(plan).plan_for_files()
    return RunDescription(
        run=secrets.token_hex(8),
        round_seconds=request.round_seconds,
        analyser_key=public_key.hex(),
        shuffler_key=helper_key.hex(),
        plan=written,
        most_nodes=most_nodes,
        node_costs=Learner(written).node_costs(),
    )


def check_batch_size(report: Report, n_nodes: int) -> None:
    """Refuse a fleet whose full batch no analyser would take."""
    size = n_nodes * record_size(sealed_size(report.message_bytes))
    if size > LARGEST_BATCH:
        raise TacitError(
            f"a batch of {n_nodes} nodes would have {size / 2**30:.1f} GiB, and "
            f"{LARGEST_BATCH / 2**30:.0f} GiB are the most; use fewer kernels, or more fleets."
        )


def _check(folder: Path, request: FleetRequest, hosts: Hosts) -> None:
    check_at_least(request.n_nodes, 2, name="nodes")
    check_at_least(request.rounds, 1, name="rounds")
    if request.most_nodes is not None and request.most_nodes < request.n_nodes:
        raise TacitError(
            f"most_nodes must be at least the {request.n_nodes} nodes, got {request.most_nodes}."
        )
    if not 2 <= request.n_min <= request.n_nodes:
        raise TacitError(
            f"n_min must lie between 2 and the {request.n_nodes} nodes, got {request.n_min}."
        )
    if not 1024 <= hosts.port <= 65000 - request.n_nodes:
        raise TacitError(f"the first port must lie in 1024..{65000 - request.n_nodes}.")
    for host in (hosts.server, hosts.shuffler, hosts.analyser, hosts.listen):
        if not _HOST.fullmatch(host):
            raise TacitError(f"a host is a name or an IPv4 address, got {host!r}.")
    if folder.exists() and any(folder.iterdir()):
        raise TacitError(
            f"{folder} is not empty; choose a new folder, because keys are never overwritten."
        )


def _write_shuffler(
    folder: Path,
    fleet: RunDescription,
    tls: Certificates,
    hosts: Hosts,
    *,
    nodes: dict[str, bytes],
    sealing_key: bytes,
) -> None:
    _write_pair(tls.shuffler, folder, "tls")
    _write_pair(self_signed(f"shuffler of {fleet.run}"), folder, "client")
    write_atomic(folder / "analyser.crt", tls.analyser.certificate)
    write_secret(folder / "sealing.key", sealing_key)
    write_registry(folder / "nodes.txt", nodes)
    _write_plan(folder, fleet)
    write_toml(
        folder / "shuffler.toml",
        {
            "plan": "plan.toml",
            "host": hosts.listen,
            "port": hosts.port + 1,
            "certificate": "tls.crt",
            "private_key": "tls.key",
            "client_certificate": "client.crt",
            "client_key": "client.key",
            "analyser_url": hosts.ingest_url,
            "analyser_certificate": "analyser.crt",
            "sealing_key": "sealing.key",
            "nodes": "nodes.txt",
            "state": "state",
        },
    )


def _write_analyser(
    folder: Path,
    fleet: RunDescription,
    tls: Certificates,
    hosts: Hosts,
    *,
    sealing_key: bytes,
    shuffler: bytes,
    nodes: dict[str, bytes],
) -> None:
    _write_pair(tls.analyser, folder, "tls")
    write_secret(folder / "sealing.key", sealing_key)
    write_atomic(folder / "shuffler.crt", shuffler)
    write_registry(folder / "nodes.txt", nodes)
    _write_plan(folder, fleet)
    write_toml(
        folder / "analyser.toml",
        {
            "plan": "plan.toml",
            "host": hosts.listen,
            "ingest_port": hosts.port + 2,
            "public_port": hosts.port + 3,
            "certificate": "tls.crt",
            "private_key": "tls.key",
            "shuffler_certificate": "shuffler.crt",
            "sealing_key": "sealing.key",
            "nodes": "nodes.txt",
            "state": "state",
        },
    )


def _write_server(folder: Path, fleet: RunDescription, tls: Certificates, hosts: Hosts) -> None:
    _write_pair(tls.server, folder, "tls")
    write_atomic(folder / "analyser.crt", tls.analyser.certificate)
    write_atomic(folder / "shuffler.crt", tls.shuffler.certificate)
    write_app(folder / "app")
    _write_plan(folder, fleet)
    write_toml(
        folder / "server.toml",
        {
            "plan": "plan.toml",
            "host": hosts.listen,
            "port": hosts.port,
            "certificate": "tls.crt",
            "private_key": "tls.key",
            "node_keys": "node_keys",
            "app": "app",
            "state": "state",
            "analyser_url": hosts.public_url,
            "analyser_certificate": "analyser.crt",
            "shuffler_url": hosts.shuffler_url,
            "shuffler_certificate": "shuffler.crt",
        },
    )


def _write_node(
    folder: Path,
    fleet: RunDescription,
    tls: Certificates,
    hosts: Hosts,
    *,
    name: str,
    index: int,
    signing_key: bytes,
) -> bytes:
    private, public = node_identity()
    write_secret(folder / "identity", private)
    write_secret(folder / "signing.key", signing_key)
    write_atomic(folder / "server.crt", tls.server.certificate)
    write_atomic(folder / "shuffler.crt", tls.shuffler.certificate)
    _write_plan(folder, fleet)
    both = report_of(fleet.plan).analyser_admits_nodes
    if both:
        write_atomic(folder / "analyser.crt", tls.analyser.certificate)
    write_toml(
        folder / "node.toml",
        {
            "plan": "plan.toml",
            "name": name,
            "data": "data.npz",
            "analyser_url": hosts.public_url if both else None,
            "analyser_certificate": "analyser.crt" if both else None,
            "server": f"{hosts.server}:{hosts.port}",
            "server_certificate": "server.crt",
            "shuffler_url": hosts.shuffler_url,
            "shuffler_certificate": "shuffler.crt",
            "identity": "identity",
            "signing_key": "signing.key",
            "state": "state",
            "runtime_port": hosts.runtime_port(index),
        },
    )
    return public


def _names(*hosts: str) -> tuple[str, ...]:
    """The names in a certificate; this machine goes by two, of which either may be used."""
    names = (name for host in hosts for name in (_LOCAL if host in _LOCAL else (host,)))
    return tuple(dict.fromkeys(names))


def _write_plan(folder: Path, fleet: RunDescription) -> None:
    write_toml(folder / "plan.toml", fleet.to_plain())


def _split(data: Dataset, n_nodes: int, *, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    from tacit.data import split_clients

    rng = np.random.default_rng(seed)
    return np.asarray(split_clients(data.y_train, n_clients=n_nodes, how="iid", rng=rng))


def _write_series(path: Path, data: Dataset, mine: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    from io import BytesIO

    out = BytesIO()
    np.savez_compressed(out, X=data.X_train[mine], y=np.asarray(data.y_train[mine], dtype=np.str_))
    write_secret(path, out.getvalue())


def _write_pair(pair: Pair, folder: Path, name: str) -> None:
    pair.write(certificate=folder / f"{name}.crt", key=folder / f"{name}.key")
