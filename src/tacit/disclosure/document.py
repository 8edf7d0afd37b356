"""The disclosure itself: fields, sections in the order of NIST SP 800-226, and forms to file.

The order is that of the pyramid of NIST SP 800-226: first the promise (privacy loss, unit), then
what it rests on (mechanism and accuracy, trust, implementation), then what lies below everything
(security, how the data were collected).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit._version import VERSION
from tacit.disclosure import texts
from tacit.disclosure.evidence import Evidence, Fact
from tacit.disclosure.fields import fields_of
from tacit.disclosure.forms import impact_assessment, model_card, registry_entry
from tacit.guarantee import MpcGuarantee, Unprotected, rounded_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with sentences, and the names of the fields that are shown as a table."""

    title: str
    level: str
    sentences: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """Everything that is written, in whichever format."""

    title: str
    evidence: Evidence
    fields: dict[str, Fact]
    sections: tuple[Section, ...]
    not_stated: tuple[str, ...]
    registry: dict[str, Any]
    card: dict[str, Any]
    assessment: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; every field has its source."""
        return {
            "title": self.title,
            "version": VERSION,
            "family": self.evidence.family,
            "guarantees": {k: g.to_dict() for k, g in self.evidence.guarantees.items()},
            "fields": {k: {"value": f.value, "source": f.source} for k, f in self.fields.items()},
            "nist_sp_800_226": [
                {
                    "title": section.title,
                    "level": section.level,
                    "statements": list(section.sentences),
                    "fields": list(section.keys),
                }
                for section in self.sections
            ],
            "deployment_registry": self.registry,
            "model_card": self.card,
            "impact_assessment": self.assessment,
            "not_stated": list(self.not_stated),
        }


def disclose(
    evidence: Evidence,
    *,
    curator: str | None = None,
    intended_use: str | None = None,
    publication_date: str | None = None,
) -> Disclosure:
    """Say what the evidence proves; who keeps the data and what for is the curator's to say."""
    fields = fields_of(evidence)
    missing = _not_stated(
        evidence,
        curator=curator,
        intended_use=intended_use,
        publication_date=publication_date,
    )
    return Disclosure(
        title=f"Privacy disclosure: {evidence.product}",
        evidence=evidence,
        fields=fields,
        sections=_sections(evidence, fields),
        not_stated=missing,
        registry=registry_entry(
            evidence,
            curator=curator,
            intended_use=intended_use,
            publication_date=publication_date,
        ),
        card=model_card(evidence, fields, intended_use=intended_use),
        assessment=impact_assessment(evidence, fields),
    )


def _sections(evidence: Evidence, fields: dict[str, Fact]) -> tuple[Section, ...]:
    names = tuple(evidence.guarantees)
    return (
        Section(
            title="Privacy loss",
            level="top: the promise",
            sentences=(
                *_losses(evidence),
                *_odds_words(evidence, fields),
                *_account_words(evidence),
            ),
            keys=_known(fields, names, ("epsilon", "delta", "nominal_epsilon", "odds"))
            + tuple(key for key in fields if key.startswith("ledger.")),
        ),
        Section(
            title="Unit of privacy",
            level="top: the promise",
            sentences=tuple(_unit_words(evidence)),
            keys=_known(fields, names, ("unit", "neighbours")),
        ),
        Section(
            title="Mechanism, correctness and accuracy",
            level="middle: what the promise rests on",
            sentences=(
                *(texts.MECHANISMS[one] for one in evidence.mechanisms.values()),
                texts.PROOFS[evidence.setting],
                *(() if evidence.record is not None else (texts.NO_RECORD,)),
            ),
            keys=tuple(k for k in fields if k.split(".")[0] in ("record", "leakage", "model")),
        ),
        Section(
            title="Trust model",
            level="middle: what the promise rests on",
            sentences=tuple(_trust_words(evidence)),
            keys=_known(
                fields, names, ("model", "n_parties", "max_corrupt", "adversary", "protocol")
            )
            + _known(fields, names, ("assumptions",)),
        ),
        Section(
            title="Implementation",
            level="middle: what the promise rests on",
            sentences=(_randomness(evidence), texts.SIDE_CHANNELS),
            keys=_known(fields, names, ("not_covered",)),
        ),
        Section(
            title="Security and access",
            level="base: what lies below everything",
            sentences=(texts.SECURITY[evidence.setting],),
            keys=tuple(key for key in fields if key.startswith("run.")),
        ),
        Section(
            title="Data collection",
            level="base: what lies below everything",
            sentences=(texts.COLLECTION[evidence.setting],),
            keys=tuple(key for key in fields if key.startswith("data.")),
        ),
    )


def _known(fields: dict[str, Fact], names: Sequence[str], parts: Sequence[str]) -> tuple[str, ...]:
    wanted = (f"{name}.{part}" for name in names for part in parts)
    return tuple(key for key in wanted if key in fields)


def _losses(evidence: Evidence) -> list[str]:
    said = []
    for name, guarantee in evidence.guarantees.items():
        said.append(f"{name.capitalize()}: {guarantee.sentence}")
        if isinstance(guarantee, Unprotected):
            said.append(texts.NO_EPSILON)
        if isinstance(guarantee, MpcGuarantee) and guarantee.also is None:
            said.append(texts.NO_DP)
    return said


def _odds_words(evidence: Evidence, fields: dict[str, Fact]) -> list[str]:
    """What epsilon means for one guess; with a delta this fails with about that probability."""
    said = []
    for name, private in evidence.private.items():
        if f"{name}.odds" not in fields:
            continue
        delta = rounded_up(private.delta)
        but = f", except with probability about {delta}" if private.delta else ""
        odds = fields[f"{name}.odds"].value
        said.append(
            f"{name.capitalize()}: whoever held two possibilities for one {private.unit} equally "
            f"likely, odds of 1 to 1, is moved to odds of at most {odds} to 1{but}."
        )
    return said


def _account_words(evidence: Evidence) -> tuple[str, ...]:
    account = evidence.account
    if account is None:
        return () if not evidence.private else (texts.NO_LEDGER,)
    anchor = (
        "and agrees with the anchor kept elsewhere"
        if account.anchored
        else "but no anchor is kept elsewhere, so a restored older copy would not be noticed"
    )
    return (
        f"The ledger {account.file} holds {account.debits} debits, {account.debits_here} of them "
        f"for this model or run; its chain is intact, {anchor}.",
        *((texts.FLEET_LEDGER,) if evidence.family == "fleet" else ()),
    )


def _unit_words(evidence: Evidence) -> list[str]:
    if isinstance(evidence.main, Unprotected):
        return [texts.NO_UNIT]
    return [
        f"{name.capitalize()}: one {private.unit}, "
        + ("replaced by any other." if private.neighbours == "replace" else "present or absent.")
        for name, private in evidence.private.items()
    ] or [f"{evidence.main.unit.capitalize()}: {evidence.main.trust_model}."]


def _trust_words(evidence: Evidence) -> list[str]:
    if isinstance(evidence.main, Unprotected):
        return [texts.NO_TRUST]
    told = [texts.DEPLOYMENT_MODELS[one.model] for one in evidence.private.values()]
    said = [f"{one[0].upper()}{one[1:]}." for one in told or [evidence.main.trust_model]]
    setting = texts.SETTINGS.get(evidence.setting)
    return said if setting is None else [*said, setting]


def _randomness(evidence: Evidence) -> str:
    if isinstance(evidence.main, Unprotected):
        return "Noise comes from the operating system's generator; its scale depends on the data."
    return texts.RANDOMNESS


def _not_stated(
    evidence: Evidence,
    *,
    curator: str | None,
    intended_use: str | None,
    publication_date: str | None,
) -> tuple[str, ...]:
    found = []
    if isinstance(evidence.main, Unprotected):
        found.append(texts.NO_EPSILON)
    elif not evidence.private:
        found.append(texts.NO_DP)
    if evidence.account is None and evidence.private:
        found.append(texts.NO_LEDGER)
    if evidence.record is None:
        found.append(texts.NO_RECORD)
    if curator is None:
        found.append("Who keeps the data: give --curator.")
    if intended_use is None:
        found.append("What the model is for: give --intended-use.")
    if publication_date is None:
        found.append("When the model was published: give --publication-date.")
    return tuple(found)
