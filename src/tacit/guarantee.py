"""What a result protects, as data: every result carries exactly one of these objects.

`DpGuarantee`, `MpcGuarantee` and `Unprotected` are frozen, compare equal by value, survive a JSON
round trip and say themselves in one sentence. "Stronger than" exists only between guarantees of
one trust model; asking it across trust models raises `TrustModelMismatch`.
"""

from __future__ import annotations

import html
import json
import math
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from tacit.errors import TacitError, TrustModelMismatch, check_at_least, is_number

DpModel = Literal["local", "shuffle", "distributed", "central"]
DpUnit = Literal["symbol", "series", "client", "person"]
Neighbours = Literal["replace", "add-remove"]

_FROM_WHOM = {
    "local": "everybody who sees the release, the server included",
    "shuffle": "the analyser and everybody after it, if shuffler and analyser do not collude",
    "distributed": "everybody who sees the sum, if the aggregation reveals only the sum",
    "central": "everybody except the trusted curator",
}


_EXACT = Context(prec=400)  # holds every float with a few decimals behind it


def round_up(value: float, *, digits: int = 4) -> float:
    """Round to `digits` decimals, never downwards: for an epsilon that is kept or sent on.

    A float counts as the number that it is written as: 0.1 stays 0.1.
    """
    if not math.isfinite(value):
        return value
    return float(
        Decimal(repr(float(value))).quantize(
            Decimal(1).scaleb(-digits), rounding=ROUND_CEILING, context=_EXACT
        )
    )


def rounded_up(value: float, *, digits: int = 5) -> str:
    """At most `digits` significant digits, never below `value`.

    For every epsilon and delta that is shown to a person as a promise or as spent: rounding to
    nearest would promise more than is kept. Digits count from the first one that is not zero, so
    that a small delta is not shown as a large one.
    """
    return _shown(value, digits, ROUND_CEILING)


def rounded_down(value: float, *, digits: int = 5) -> str:
    """At most `digits` significant digits, never above `value`: for a budget that is left."""
    return _shown(value, digits, ROUND_FLOOR)


def _shown(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    short = Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(short):.{digits}g}"


class _Jsonable:
    """The JSON round trip shared by the three kinds; `kind` tells them apart."""

    __slots__ = ()
    kind: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def trust_model(self) -> str: ...

        @property
        def sentence(self) -> str: ...

    def to_dict(self) -> dict[str, Any]:
        """Plain values for `json.dumps`; `from_dict` reads them back to an equal object."""
        fields: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        plain = {key: list(v) if isinstance(v, tuple) else v for key, v in fields.items()}
        nested = getattr(self, "also", None)
        if nested is not None:
            plain["also"] = nested.to_dict()
        return {
            "kind": self.kind,
            "trust_model": self.trust_model,
            **plain,
            "sentence": self.sentence,
        }

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, with assumptions and limits behind it."""
        plain = self.to_dict()
        parts = [f"<b>{html.escape(self.trust_model)}</b><br>{html.escape(self.sentence)}"]
        for name in ("assumptions", "not_covered"):
            items = "".join(f"<li>{html.escape(str(item))}</li>" for item in plain.get(name, ()))
            if items:
                head = name.replace("_", " ")
                parts.append(f"<details><summary>{head}</summary><ul>{items}</ul></details>")
        return "".join(parts)

    def to_json(self) -> str:
        """One JSON object, keys sorted, so that equal guarantees have equal text."""
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DpGuarantee(_Jsonable):
    """(epsilon, delta)-differential privacy for one `unit` under `neighbours`.

    epsilon and delta are totals over everything that left about the unit, never per step.

    Example
    -------
    >>> from tacit import DpGuarantee
    >>> promise = DpGuarantee(epsilon=1.0, model="local", unit="series")
    >>> promise.trust_model
    'local DP per series under replace'
    """

    kind: ClassVar[str] = "dp"

    epsilon: float
    delta: float = 0.0
    model: DpModel
    unit: DpUnit
    neighbours: Neighbours = "replace"
    assumptions: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (is_number(self.epsilon) and 0.0 < self.epsilon < math.inf):
            raise TacitError(
                f"a DpGuarantee needs a finite epsilon above 0, got {self.epsilon!r}; "
                "use Unprotected where there is none."
            )
        if not (is_number(self.delta) and 0.0 <= self.delta < 1.0):
            raise TacitError(f"a DpGuarantee needs delta in [0, 1), got {self.delta!r}.")

    @property
    def trust_model(self) -> str:
        """The part that must be equal before two guarantees may be ranked."""
        return f"{self.model} DP per {self.unit} under {self.neighbours}"

    @property
    def sentence(self) -> str:
        """What is protected and from whom, in one sentence with its numbers rounded up."""
        budget = f"epsilon = {rounded_up(self.epsilon)}"
        if self.delta:
            budget += f", delta = {rounded_up(self.delta)}"
        change = "replacing" if self.neighbours == "replace" else "adding or removing"
        return (
            f"{self.model.capitalize()} differential privacy with {budget} in total for "
            f"{change} one whole {self.unit}, against {_FROM_WHOM[self.model]}."
        )

    def stronger_or_equal(self, other: Guarantee) -> bool:
        """Whether this one promises at least as much; raises across trust models."""
        same = _same_trust_model(self, other)
        return self.epsilon <= same.epsilon and self.delta <= same.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class MpcGuarantee(_Jsonable):
    """Secure computation: nothing but `opened` is revealed to a tolerated coalition.

    `opened` lists every revealed value as "what -> to whom". `also` holds the differential
    privacy of the opened values, where they were noised.

    Example
    -------
    >>> from tacit import MpcGuarantee
    >>> promise = MpcGuarantee(
    ...     n_parties=3, max_corrupt=1, adversary="passive", protocol="ABY3",
    ...     opened=("shapelet indices -> north",),
    ... )
    >>> promise.trust_model
    'passive adversary, 1 of 3 parties, ABY3'
    """

    kind: ClassVar[str] = "mpc"

    n_parties: int
    max_corrupt: int
    adversary: Literal["passive", "active"]
    protocol: str
    opened: tuple[str, ...]
    unit: str = "all series of a party"
    assumptions: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    also: DpGuarantee | None = None

    @property
    def trust_model(self) -> str:
        """The part that must be equal before two guarantees may be ranked."""
        return (
            f"{self.adversary} adversary, {self.max_corrupt} of {self.n_parties} parties, "
            f"{self.protocol}"
        )

    @property
    def sentence(self) -> str:
        """Who may be corrupted, and all that they can learn, in one sentence."""
        opened = "; ".join(self.opened) if self.opened else "nothing"
        noised = f" The opened values: {self.also.sentence}" if self.also else ""
        return (
            f"Secure computation among {self.n_parties} parties ({self.protocol}): a "
            f"{self.adversary} adversary in at most {self.max_corrupt} of the computing parties "
            f"learns nothing beyond public sizes and what is opened: {opened}.{noised}"
        )

    def stronger_or_equal(self, other: Guarantee) -> bool:
        """Whether this one opens no more, as well noised; raises across trust models."""
        same = _same_trust_model(self, other)
        noised = same.also is None or (
            self.also is not None and self.also.stronger_or_equal(same.also)
        )
        return noised and set(self.opened) <= set(same.opened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unprotected(_Jsonable):
    """No guarantee. `nominal_epsilon` is a parameter that was asked for, not a promise.

    Example
    -------
    >>> from tacit import Unprotected
    >>> Unprotected(reason="the paper as published", nominal_epsilon=1.0).kind
    'unprotected'
    """

    kind: ClassVar[str] = "unprotected"

    reason: str
    nominal_epsilon: float | None = None
    unit: str = "none"
    assumptions: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ("everything",)

    @property
    def trust_model(self) -> str:
        """Unprotected results are alike: they may be ranked with each other."""
        return "none"

    @property
    def sentence(self) -> str:
        """That nothing is promised, and why."""
        nominal = (
            f" (the nominal epsilon of {rounded_up(self.nominal_epsilon)} is not a guarantee)"
            if self.nominal_epsilon is not None
            else ""
        )
        return f"No privacy guarantee{nominal}: {self.reason.rstrip('.')}."

    def stronger_or_equal(self, other: Guarantee) -> bool:
        """True among unprotected results; raises across trust models."""
        _same_trust_model(self, other)
        return True


Guarantee = DpGuarantee | MpcGuarantee | Unprotected
_G = TypeVar("_G", DpGuarantee, MpcGuarantee, Unprotected)
_KINDS: dict[str, type[Guarantee]] = {
    cls.kind: cls for cls in (DpGuarantee, MpcGuarantee, Unprotected)
}
_DERIVED = ("kind", "trust_model", "sentence")


def _same_trust_model(mine: _G, other: Guarantee) -> _G:
    if type(mine) is not type(other) or mine.trust_model != other.trust_model:
        raise TrustModelMismatch(
            f"cannot rank '{mine.trust_model}' against '{other.trust_model}': they protect from "
            "different adversaries; compare results within one trust model."
        )
    return other


def from_dict(plain: dict[str, Any]) -> Guarantee:
    """Read back what `to_dict` wrote; refuse unknown kinds and unknown keys."""
    kind = plain.get("kind")
    if kind not in _KINDS:
        raise TacitError(f"unknown kind of guarantee {kind!r}; known are {sorted(_KINDS)}.")
    fields = {key: value for key, value in plain.items() if key not in _DERIVED}
    for key, value in fields.items():
        if isinstance(value, list):
            fields[key] = tuple(value)
    if isinstance(fields.get("also"), dict):
        fields["also"] = from_dict(fields["also"])
    try:
        return _KINDS[kind](**fields)
    except TypeError as error:
        raise TacitError(f"not a {kind} guarantee: {error}.") from error


def composed(training: DpGuarantee, release: DpGuarantee, *, n_releases: int) -> DpGuarantee:
    """What a person is promised who holds one training client and makes `n_releases` releases.

    Adaptive composition: the releases may depend on the trained model, and their pure epsilons
    add to the training's epsilon; its delta stays. Rounded up.
    """
    if training.unit != "client" or release.model != "local" or release.delta:
        raise TacitError(
            f"composition is stated for a training per client and pure local releases, got "
            f"'{training.trust_model}' and '{release.trust_model}' with delta {release.delta!r}."
        )
    check_at_least(n_releases, 0, name="n_releases")
    total = Fraction(training.epsilon) + n_releases * Fraction(release.epsilon)
    near = float(total)
    shared = dict.fromkeys(training.assumptions + release.assumptions)
    return DpGuarantee(
        epsilon=near if near >= total else math.nextafter(near, math.inf),
        delta=training.delta,
        model=training.model,
        unit="person",
        neighbours="replace",
        assumptions=(
            *shared,
            f"the person holds one client, and the number of releases is at most {n_releases}",
        ),
        not_covered=(*training.not_covered, "whether and when a person releases"),
    )


def from_json(text: str) -> Guarantee:
    """Read back what `to_json` wrote."""
    try:
        plain = json.loads(text)
    except json.JSONDecodeError as error:
        raise TacitError(f"a guarantee must be one JSON object: {error}.") from error
    return from_dict(plain)
