"""A party's folder: `party.toml`, its key and certificate, and the certificates of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import TacitError, check_positive, reason_of
from tacit.silo.plan import Terms, terms_from_dict
from tacit.system.certificates import fingerprint, self_signed
from tacit.system.files import write_atomic
from tacit.system.toml import read_toml, write_toml

_COMMENT = """\
One party of a federation; paths are relative to this file.
Give this party's own series with: tacit silo party party.toml --data mine.npz
or name the file here, before [limits]: data = "mine.npz"
The receipt, and at the first party the model, are written to the folder `out`.
[plan] must be the same at every party: its fingerprint is the SHA-256 of everything else in it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a party waits, in seconds, before it gives up and names whom it waited for.

    join: for all the others to join. silence: for a sign of life from each (there is a heartbeat
    every second). engine: for one message of the computation itself. `memory_gb` is what the engine
    may take; left out, what the machine has free.
    """

    join_seconds: float = 60.0
    silence_seconds: float = 15.0
    engine_seconds: float = 600.0
    memory_gb: float | None = None

    def __post_init__(self) -> None:
        for name in ("join_seconds", "silence_seconds", "engine_seconds"):
            check_positive(getattr(self, name), name=f"limits.{name}", advice="give seconds")
        if self.memory_gb is not None:
            check_positive(self.memory_gb, name="limits.memory_gb", advice="give gigabytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Where a party listens, host:port, and the certificate that it must show there."""

    name: str
    address: str
    certificate: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyFolder:
    """Everything that one party needs in order to take part, except its data."""

    name: str
    terms: Terms
    peers: tuple[Peer, ...]
    key: Path
    certificate: Path
    trusted: Path
    out: Path
    data: Path | None = None
    limits: Limits = field(default_factory=Limits)
    stated_fingerprint: str = ""

    @property
    def rank(self) -> int:
        """This party's number in the plan; 0 is the initiator."""
        return self.terms.parties.index(self.name)


def split_address(address: str) -> tuple[str, int]:
    """Split `host:port`, or refuse."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise TacitError(f"an address is host:port, got {address!r}; for example 10.0.0.7:9100.")
    return host.strip("[]"), int(port)


def write_folders(
    folder: Path,
    terms: Terms,
    *,
    addresses: Sequence[str],
    limits: Limits,
) -> dict[str, Path]:
    """Write one folder per party, with new keys; return each party's `party.toml`.

    Whoever runs this sees every key: an organisation that does not want that replaces its own with
    `tacit silo renew` and gives the new certificate to the others.
    """
    if folder.exists() and any(folder.iterdir()):
        raise TacitError(f"{folder} is not empty; choose a new folder.")
    for name in terms.parties:
        home = folder / name
        self_signed(name, both_sides=True).write(
            key=home / "party.key", certificate=home / "party.crt"
        )
    certificates = {n: (folder / n / "party.crt").read_bytes() for n in terms.parties}
    for name in terms.parties:
        home = folder / name
        for other, content in certificates.items():
            write_atomic(home / "peers" / f"{other}.crt", content)
        values = _values(name, terms, addresses=addresses, limits=limits)
        write_toml(home / "party.toml", values, comment=_COMMENT)
    return {name: folder / name / "party.toml" for name in terms.parties}


def _values(name: str, terms: Terms, *, addresses: Sequence[str], limits: Limits) -> dict[str, Any]:
    return {
        "name": name,
        "key": "party.key",
        "certificate": "party.crt",
        "out": "out",
        "limits": asdict(limits),
        "peers": [
            {"name": peer, "address": address, "certificate": f"peers/{peer}.crt"}
            for peer, address in zip(terms.parties, addresses, strict=True)
        ],
        "plan": {"fingerprint": terms.fingerprint, **terms.to_dict()},
    }


def renew_keys(folder: PartyFolder) -> str:
    """Replace this party's key and certificate; the fingerprint of the new one.

    The others must be given the new certificate before the next run.
    """
    pair = self_signed(folder.name, both_sides=True)
    pair.write(key=folder.key, certificate=folder.certificate)
    write_atomic(folder.peers[folder.rank].certificate, pair.certificate)
    return fingerprint(folder.certificate)


def read_folder(path: Path, *, accept_any_plan: bool = False) -> PartyFolder:
    """Read `party.toml`, check it, and join the trusted certificates into one file.

    With `accept_any_plan` the caller looks at the plan's fingerprint itself.
    """
    plain = read_toml(path)
    try:
        folder = _folder_of(plain, path.resolve().parent)
    except (KeyError, TypeError) as error:
        raise TacitError(f"the configuration {path} lacks or misuses {error}.") from error
    if not accept_any_plan:
        check_fingerprint(folder)
    return folder


def rewrite_plan(path: Path, terms: Terms) -> None:
    """Write other terms and their fingerprint into a `party.toml`, whole or not at all.

    The peers follow the order of the plan's parties, whose first one is the initiator.
    """
    plain = read_toml(path)
    order = {name: rank for rank, name in enumerate(terms.parties)}
    plain["peers"] = sorted(plain["peers"], key=lambda peer: order[peer["name"]])
    plain["plan"] = {"fingerprint": terms.fingerprint, **terms.to_dict()}
    write_toml(path, plain, comment=_COMMENT)


def _folder_of(plain: dict[str, Any], home: Path) -> PartyFolder:
    plan = dict(plain["plan"])
    stated = str(plan.pop("fingerprint", ""))
    terms = terms_from_dict(plan)
    peers = tuple(
        Peer(name=p["name"], address=p["address"], certificate=home / p["certificate"])
        for p in plain["peers"]
    )
    if tuple(p.name for p in peers) != terms.parties:
        raise TacitError("the peers must be the plan's parties, in the same order.")
    if plain["name"] not in terms.parties:
        raise TacitError(f"this party, {plain['name']!r}, is not among the plan's parties.")
    for peer in peers:
        split_address(peer.address)
    own = peers[terms.parties.index(plain["name"])]
    if fingerprint(own.certificate) != fingerprint(home / plain["certificate"]):
        raise TacitError(
            f"{home / plain['certificate']} is not the certificate in {own.certificate}, which "
            "the others know; put the same file in both places and give it to the others."
        )
    return PartyFolder(
        name=plain["name"],
        terms=terms,
        peers=peers,
        key=home / plain["key"],
        certificate=home / plain["certificate"],
        trusted=_join_certificates(peers, home),
        out=home / plain.get("out", "out"),
        data=home / plain["data"] if "data" in plain else None,
        limits=Limits(**plain.get("limits", {})),
        stated_fingerprint=stated,
    )


def check_fingerprint(folder: PartyFolder) -> None:
    """Refuse a plan that was changed by hand: nobody else may have agreed to it."""
    if folder.stated_fingerprint != folder.terms.fingerprint:
        raise TacitError(
            f"the plan has the fingerprint {folder.terms.fingerprint}, its file says "
            f"{folder.stated_fingerprint[:16]}...; agree on the change with all parties, then have "
            "each run 'tacit silo plan party.toml --accept'."
        )


def _join_certificates(peers: Sequence[Peer], home: Path) -> Path:
    try:
        joined = b"".join(peer.certificate.read_bytes() for peer in peers)
    except OSError as error:
        raise TacitError(
            f"cannot read the certificate {error.filename}: {reason_of(error)}."
        ) from error
    trusted = home / "trusted.pem"
    if not trusted.exists() or trusted.read_bytes() != joined:
        write_atomic(trusted, joined)
    return trusted
