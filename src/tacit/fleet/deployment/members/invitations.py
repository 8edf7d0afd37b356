"""One-time codes by which a device joins a fleet that is already set up.

The operator of a service makes a code for one name and hands it over by a way that is not the
fleet's: a letter, a screen, a device manager. It holds where the service is, the fingerprint of its
certificate, and a secret of 128 random bits. With it a device can make sure of the service, fetch
the plan, and have its own public key entered under that name, once. The service keeps the secret's
digest only. Under `distributed` shuffler and analyser each make a code of their own, so that
neither can invent a client for the other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from tacit.errors import TacitError, check_positive, reason_of
from tacit.fleet.deployment.batches.registry import write_registry
from tacit.fleet.deployment.config import AnalyserConfig, ShufflerConfig, read_config, read_run
from tacit.fleet.deployment.members import lists
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.mechanisms import report_of
from tacit.system.certificates import fingerprint, host_names
from tacit.system.files import write_secret

_PREFIX = "tacit-"
_SECRET_BYTES = 16
_PRINT_BYTES = 32
_DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What the operator hands over: where to go, whom to expect there, and the secret."""

    url: str
    fingerprint: str
    secret: bytes

    def text(self) -> str:
        """One word that survives being copied."""
        packed = self.secret + bytes.fromhex(self.fingerprint) + self.url.encode()
        return _PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> Code:
        """Read a code, or say that it is none."""
        word = text.strip().removeprefix(_PREFIX)
        try:
            packed = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
            url = packed[_SECRET_BYTES + _PRINT_BYTES :].decode()
            if urlsplit(url).scheme != "https" or not urlsplit(url).port:
                raise ValueError("no address")
        except (binascii.Error, ValueError) as error:
            raise TacitError(
                "this is not a whole code; copy all of what 'tacit fleet invite' printed."
            ) from error
        prints = packed[_SECRET_BYTES : _SECRET_BYTES + _PRINT_BYTES].hex()
        return cls(url=url, fingerprint=prints, secret=packed[:_SECRET_BYTES])


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What the service keeps of a code."""

    name: str
    digest: str
    expires: float
    key: str = ""  # of the node that has used it


def invite(folder: Path, name: str, *, days: float = 7.0) -> Code:
    """A new code for one node at this service; an older one for the same name is void."""
    lists.check_name(name)
    check_positive(days, name="--days")
    config = _service(folder)
    if isinstance(config, AnalyserConfig):
        _check_admits_nodes(read_run(config.plan).plan)
    port = config.port if isinstance(config, ShufflerConfig) else config.public_port
    host = host_names(config.certificate)[0]
    code = Code(
        url=f"https://{host}:{port}",
        fingerprint=fingerprint(config.certificate),
        secret=secrets.token_bytes(_SECRET_BYTES),
    )
    with lists.changing(folder) as (registry, fleet):
        if registry.key_of(name) is not None:
            raise TacitError(f"{folder} already knows a node {name!r}; choose another name.")
        open_ones = [one for one in _read(folder) if one.name != name]
        if len(registry) + sum(not one.key for one in open_ones) >= fleet.most_nodes:
            raise TacitError(
                f"the plan is calibrated for {fleet.most_nodes} nodes, and so many are known or "
                "invited; revoke one, or begin a run with a larger --most-nodes."
            )
        new = Invitation(name=name, digest=_digest(code.secret), expires=time.time() + days * _DAY)
        _write(folder, [*open_ones, new])
    return code


def _check_admits_nodes(plan: FleetPlan) -> None:
    if not report_of(plan).analyser_admits_nodes:
        raise TacitError(
            f"under {plan.mechanism} the analyser must not know the nodes; invite at the shuffler "
            "alone."
        )


def redeem(folder: Path, secret: bytes, key: str) -> str:
    """Enter the key of the node that shows this secret; returns its name.

    The same key may come again, because an answer can get lost; another key may not.
    """
    public, digest = lists.read_public_key(key), _digest(secret)
    _of(_read(folder), digest, key)  # a stranger's guess costs neither the lock nor the list
    with lists.changing(folder) as (registry, fleet):
        found = _read(folder)
        mine = _of(found, digest, key)
        if registry.key_of(mine.name) == public:
            return mine.name
        if mine.key or registry.key_of(mine.name) or registry.name_of(public):
            raise TacitError(
                "this code's node was revoked, or its key is on the list under another "
                "name; ask the operator for a new code."
            )
        if len(registry) >= fleet.most_nodes:
            raise TacitError(
                f"the plan is calibrated for {fleet.most_nodes} nodes, and all of them have "
                "joined; ask the operator for a place in the next run."
            )
        # First used, then entered: a crash between the two voids the code and lets nobody in twice.
        _write(folder, [replace(one, key=key) if one is mine else one for one in found])
        write_registry(lists.list_of(folder), {**registry.nodes(), mine.name: public})
        return mine.name


def _of(found: list[Invitation], digest: str, key: str) -> Invitation:
    """The invitation of this secret, if the node with this key may use it."""
    mine = next((one for one in found if secrets.compare_digest(one.digest, digest)), None)
    if mine is None or mine.key not in ("", key):
        raise TacitError("this code was used, has expired or was never made; ask for another.")
    return mine


def _service(folder: Path) -> ShufflerConfig | AnalyserConfig:
    lists.list_of(folder)
    if (folder / "shuffler.toml").exists():
        return read_config(folder / "shuffler.toml", ShufflerConfig)
    return read_config(folder / "analyser.toml", AnalyserConfig)


def _digest(secret: bytes) -> str:
    return hashlib.sha256(b"tacit/fleet/invitation/1" + secret).hexdigest()


def _read(folder: Path) -> list[Invitation]:
    """The invitations that have not expired."""
    path = folder / "invitations.json"
    if not path.exists():
        return []
    try:
        found = [Invitation(**plain) for plain in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError) as error:
        raise TacitError(
            f"{path} cannot be read ({reason_of(error)}); delete it and invite again."
        ) from error
    return [one for one in found if one.expires > time.time()]


def _write(folder: Path, invitations: list[Invitation]) -> None:
    plain = [asdict(one) for one in invitations]
    write_secret(folder / "invitations.json", json.dumps(plain).encode())
