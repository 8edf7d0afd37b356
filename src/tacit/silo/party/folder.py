"""A party's folder: `party.toml`, its key and certificate, and the certificates of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import TacitError, check_positive
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
    every second). engine: for one message of the computation itself.
    """

    join_seconds: float = 60.0
    silence_seconds: float = 15.0
    engine_seconds: float = 600.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_positive(getattr(self, name), name=f"limits.{name}", advice="give seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Where a party listens: for its peers (`control`) and, if it computes, for the engines."""

    name: str
    control: str
    engine: str
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
    tls: bool = True
    limits: Limits = field(default_factory=Limits)

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
    addresses: Sequence[tuple[str, str]],
    limits: Limits,
    tls: bool = True,
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
        values = _values(name, terms, addresses=addresses, limits=limits, tls=tls)
        write_toml(home / "party.toml", values, comment=_COMMENT)
    return {name: folder / name / "party.toml" for name in terms.parties}


def _values(
    name: str, terms: Terms, *, addresses: Sequence[tuple[str, str]], limits: Limits, tls: bool
) -> dict[str, Any]:
    return {
        "name": name,
        "key": "party.key",
        "certificate": "party.crt",
        "out": "out",
        "tls": tls,
        "limits": asdict(limits),
        "peers": [
            {
                "name": peer,
                "control": control,
                "engine": engine,
                "certificate": f"peers/{peer}.crt",
            }
            for peer, (control, engine) in zip(terms.parties, addresses, strict=True)
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


def read_folder(path: Path) -> PartyFolder:
    """Read `party.toml`, check it, and join the trusted certificates into one file."""
    plain = read_toml(path)
    try:
        return _folder_of(plain, path.resolve().parent)
    except (KeyError, TypeError) as error:
        raise TacitError(f"the configuration {path} lacks or misuses {error}.") from error


def _folder_of(plain: dict[str, Any], home: Path) -> PartyFolder:
    terms = _terms(dict(plain["plan"]))
    peers = tuple(
        Peer(
            name=p["name"],
            control=p["control"],
            engine=p["engine"],
            certificate=home / p["certificate"],
        )
        for p in plain["peers"]
    )
    if tuple(p.name for p in peers) != terms.parties:
        raise TacitError("the [[peers]] must be the plan's parties, in the same order.")
    if plain["name"] not in terms.parties:
        raise TacitError(f"this party, {plain['name']!r}, is not among the plan's parties.")
    for peer in peers:
        split_address(peer.control)
        split_address(peer.engine)
    own = peers[terms.parties.index(plain["name"])]
    if fingerprint(own.certificate) != fingerprint(home / plain["certificate"]):
        raise TacitError(
            f"{home / plain['certificate']} is not the certificate in {own.certificate}, which "
            "the others know; put the same file in both places and give it to the others."
        )
    tls = plain.get("tls", True)
    hosts = {split_address(address)[0] for p in peers for address in (p.control, p.engine)}
    if not tls and hosts != {"127.0.0.1"}:
        raise TacitError("tls = false is for measurements on 127.0.0.1 only.")
    return PartyFolder(
        name=plain["name"],
        terms=terms,
        peers=peers,
        key=home / plain["key"],
        certificate=home / plain["certificate"],
        trusted=_join_certificates(peers, home),
        out=home / plain.get("out", "out"),
        data=home / plain["data"] if "data" in plain else None,
        tls=bool(tls),
        limits=Limits(**plain.get("limits", {})),
    )


def _terms(plan: dict[str, Any]) -> Terms:
    expected = plan.pop("fingerprint", None)
    terms = terms_from_dict(plan)
    if expected != terms.fingerprint:
        raise TacitError(
            f"the plan has the fingerprint {terms.fingerprint[:16]}..., its file says "
            f"{str(expected)[:16]}...; agree on the change with all parties, then write the new "
            "fingerprint everywhere."
        )
    return terms


def _join_certificates(peers: Sequence[Peer], home: Path) -> Path:
    try:
        joined = b"".join(peer.certificate.read_bytes() for peer in peers)
    except OSError as error:
        raise TacitError(f"cannot read a peer's certificate: {error}.") from error
    trusted = home / "trusted.pem"
    if not trusted.exists() or trusted.read_bytes() != joined:
        write_atomic(trusted, joined)
    return trusted
