"""The plan that all parties agree on before anything is shared.

`Terms` are fixed beforehand and lie in every party's folder; `Facts` are what each party announces
about itself (its counts and shapes, never its values); `Plan` is both. Each has one canonical text
and one SHA-256 fingerprint, and `first_difference` names the field on which two of them differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib import metadata
from typing import Any, Literal

from tacit._version import VERSION
from tacit.errors import TacitError

Protocol = Literal["ABY3", "CHEETAH"]
# Computing parties of each protocol; the owners beyond them only send shares.
COMPUTING = {"ABY3": 3, "CHEETAH": 2}
# The framing and handshake spoken by this version.
WIRE = 1


def default_protocol(n_parties: int) -> Protocol:
    """ABY3 from three owners on, CHEETAH for two; one owner has nobody to hide from."""
    if n_parties < 2:
        raise TacitError(f"a federation needs at least 2 parties, got {n_parties}.")
    return "CHEETAH" if n_parties == 2 else "ABY3"


def running_versions() -> dict[str, str]:
    """The versions that must be equal everywhere: shares and programs depend on them."""
    found = {"tacit": VERSION, "wire": str(WIRE)}
    for name in ("spu", "jax", "jaxlib"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the organisations agree on before they start.

    `params` belong to the program (quality, classifier, counts of candidates and shapelets, ...)
    and hold plain values only. `classes`, `series_length` and `n_channels` may be left open: then
    they follow from what the parties announce. `fraction_bits` is the engine's fixed-point
    precision. A parameter that is None is dropped: TOML cannot hold it, and the plan must read back
    equal.
    """

    program: str
    parties: tuple[str, ...]
    protocol: Protocol
    params: Mapping[str, Any] = field(default_factory=dict)
    classes: tuple[str, ...] | None = None
    series_length: int | None = None
    n_channels: int | None = None
    fraction_bits: int = 18

    def __post_init__(self) -> None:
        _check_parties(self.parties, self.protocol)
        kept = {key: value for key, value in self.params.items() if value is not None}
        object.__setattr__(self, "params", kept)
        canonical(asdict(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, lists instead of tuples."""
        plain: dict[str, Any] = json.loads(canonical(asdict(self)))
        return plain

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical text, in hexadecimal."""
        return fingerprint(self.to_dict())


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one party announces about its own data and software; public to the others."""

    count: int
    series_length: int
    n_channels: int
    classes: tuple[str, ...]
    versions: Mapping[str, str] = field(default_factory=running_versions)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, lists instead of tuples."""
        plain: dict[str, Any] = json.loads(canonical(asdict(self)))
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything public about one run; equal at all parties, or the run is refused."""

    program: str
    parties: tuple[str, ...]
    protocol: Protocol
    classes: tuple[str, ...]
    series_length: int
    counts: tuple[int, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    n_channels: int = 1
    fraction_bits: int = 18
    versions: Mapping[str, str] = field(default_factory=running_versions)

    def __post_init__(self) -> None:
        _check_parties(self.parties, self.protocol)
        if len(self.counts) != len(self.parties) or min(self.counts) < 1:
            raise TacitError(
                f"every one of the {len(self.parties)} parties needs at least one series, "
                f"got counts {tuple(self.counts)}."
            )
        canonical(asdict(self))

    @property
    def n_parties(self) -> int:
        """How many owners there are."""
        return len(self.parties)

    @property
    def n_computing(self) -> int:
        """How many of them hold an engine; ranks from here on only send shares."""
        return COMPUTING[self.protocol]

    @property
    def terms(self) -> Terms:
        """The part that is fixed beforehand, with classes, length and channels filled in."""
        return Terms(
            program=self.program,
            parties=self.parties,
            protocol=self.protocol,
            params=self.params,
            classes=self.classes,
            series_length=self.series_length,
            n_channels=self.n_channels,
            fraction_bits=self.fraction_bits,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, lists instead of tuples."""
        plain: dict[str, Any] = json.loads(canonical(asdict(self)))
        return plain

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical text, in hexadecimal."""
        return fingerprint(self.to_dict())


def canonical(plain: Mapping[str, Any]) -> str:
    """One text for equal values: sorted keys, no spaces, no NaN."""
    try:
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TacitError(f"a plan holds plain finite values only: {error}.") from error


def fingerprint(plain: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(plain).encode()).hexdigest()


def terms_from_dict(plain: Mapping[str, Any]) -> Terms:
    """Read terms from a configuration file; refuse unknown or missing fields."""
    _check_fields(plain, Terms, required=("program", "parties", "protocol"))
    values = dict(plain)
    values["parties"] = tuple(values["parties"])
    if values.get("classes") is not None:
        values["classes"] = tuple(values["classes"])
    return Terms(**values)


def facts_from_dict(plain: Mapping[str, Any]) -> Facts:
    """Read what a peer announced; refuse unknown or missing fields."""
    _check_fields(plain, Facts, required=tuple(f.name for f in fields(Facts)))
    values = dict(plain)
    values["classes"] = tuple(values["classes"])
    return Facts(**values)


def plan_from_dict(plain: Mapping[str, Any]) -> Plan:
    """Read a whole plan back; refuse unknown or missing fields."""
    _check_fields(plain, Plan, required=("program", "parties", "protocol", "classes", "counts"))
    values = dict(plain)
    for name in ("parties", "classes", "counts"):
        values[name] = tuple(values[name])
    return Plan(**values)


def complete_plan(terms: Terms, facts: Sequence[Facts]) -> Plan:
    """Join the terms and what all parties announced into the plan, or refuse naming the party.

    Every party computes this from the same announcements, so all refuse with the same sentence.
    """
    names = terms.parties
    length = terms.series_length if terms.series_length is not None else facts[0].series_length
    n_channels = terms.n_channels if terms.n_channels is not None else facts[0].n_channels
    classes = terms.classes or tuple(sorted({c for f in facts for c in f.classes}))
    for rank, (name, fact) in enumerate(zip(names, facts, strict=True)):
        _check_shape(name, fact, length=length, n_channels=n_channels)
        others = [*facts[:rank], *facts[rank + 1 :]]
        _check_classes(name, fact, classes=classes, others=others)
    return Plan(
        program=terms.program,
        parties=names,
        protocol=terms.protocol,
        classes=classes,
        series_length=length,
        counts=tuple(f.count for f in facts),
        params=terms.params,
        n_channels=n_channels,
        fraction_bits=terms.fraction_bits,
        versions=facts[0].versions,
    )


def first_difference(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Name the first field on which two plain plans differ, with both values; None if equal."""
    for key in sorted(set(mine) | set(theirs)):
        here, there = mine.get(key), theirs.get(key)
        if here == there:
            continue
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            inner = first_difference(here, there)
            return f"{key}.{inner}"
        return f"{key} is {_short(here)} here and {_short(there)} there"
    return None


def _short(value: Any) -> str:
    text = "not set" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _check_parties(parties: Sequence[str], protocol: str) -> None:
    if protocol not in COMPUTING:
        raise TacitError(f"protocol must be one of {sorted(COMPUTING)}, got {protocol!r}.")
    if len(set(parties)) != len(parties):
        raise TacitError(f"the names of the parties must differ, got {', '.join(parties)}.")
    if protocol == "CHEETAH" and len(parties) != 2:
        raise TacitError(f"CHEETAH is for 2 parties, got {len(parties)}; use ABY3.")
    if protocol == "ABY3" and len(parties) < 3:
        raise TacitError(f"ABY3 needs at least 3 parties, got {len(parties)}; use CHEETAH.")
    for name in parties:
        if not name or len(name) > 64 or not all(c.isalnum() or c in "-_." for c in name):
            raise TacitError(
                f"a party's name has 1 to 64 letters, digits, dots or dashes, got {name!r}."
            )


def _check_fields(plain: Mapping[str, Any], kind: type, *, required: Sequence[str]) -> None:
    known = {f.name for f in fields(kind)}
    unknown = sorted(set(plain) - known)
    missing = sorted(set(required) - set(plain))
    if unknown or missing:
        trouble = f"unknown {', '.join(unknown)}" if unknown else f"missing {', '.join(missing)}"
        raise TacitError(f"not a valid {kind.__name__.lower()}: {trouble}.")


def _check_shape(name: str, fact: Facts, *, length: int, n_channels: int) -> None:
    if fact.series_length != length or fact.n_channels != n_channels:
        raise TacitError(
            f"party '{name}' has series of length {fact.series_length} with {fact.n_channels} "
            f"channel(s), the plan says {length} with {n_channels}; bring them to one shape."
        )
    if fact.count < 1:
        raise TacitError(f"party '{name}' has no series; every party needs at least one.")


def _check_classes(
    name: str, fact: Facts, *, classes: Sequence[str], others: Sequence[Facts]
) -> None:
    for label in fact.classes:
        if label not in classes:
            raise TacitError(
                f"party '{name}' has the class {label!r}, which the plan does not list; "
                f"the plan's classes are {', '.join(classes)}."
            )
        if not any(label in other.classes for other in others):
            raise TacitError(
                f"party '{name}' has the class {label!r}, which no other party has; "
                "remove or rename it."
            )
