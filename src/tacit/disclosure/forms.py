"""Forms that others ask for: a registry's entry, a model card, parts of an impact assessment."""

from __future__ import annotations

from typing import Any

from tacit._version import VERSION
from tacit.disclosure import texts
from tacit.disclosure.evidence import Evidence, Fact
from tacit.guarantee import DpGuarantee, MpcGuarantee, round_up


def registry_entry(
    evidence: Evidence,
    *,
    curator: str | None,
    intended_use: str | None,
    publication_date: str | None,
) -> dict[str, Any]:
    """The fields of the Differential Privacy Deployments Registry, grouped as its three tiers.

    `tier` is the highest whose fields are all known. Without differential privacy there is nothing
    to register, and the entry says so.
    """
    first = {
        "data_curator": curator,
        "intended_use": intended_use,
        "data_product_description": evidence.product,
        "publication_date": publication_date,
    }
    if not evidence.private:
        return {"tier": None, "reason": evidence.main.sentence, "tier_1": first}
    promises = evidence.private.items()  # each of its own, so that none stands for another
    second = {name: _second_tier(private) for name, private in promises}
    third = {name: _third_tier(evidence, name, private) for name, private in promises}
    return {
        "tier": _tier(first, second, third),
        "tier_1": first,
        "tier_2": second,
        "tier_3": third,
    }


def _tier(*tiers: dict[str, Any]) -> int:
    """How many tiers are known whole, from the first on."""
    known = [_is_known(tier) for tier in tiers]
    return known.index(False) if False in known else len(known)


def _is_known(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else ()
    return value is not None and all(_is_known(part) for part in parts)


def _second_tier(private: DpGuarantee) -> dict[str, Any]:
    return {
        "dp_flavor": "pure DP" if private.delta == 0 else "approximate DP",
        "privacy_unit": private.unit,
        "privacy_loss": {"epsilon": round_up(private.epsilon), "delta": private.delta},
        "deployment_model": texts.DEPLOYMENT_MODELS[private.model],
    }


def _third_tier(evidence: Evidence, name: str, private: DpGuarantee) -> dict[str, Any]:
    account = evidence.account
    return {
        "privacy_unit_description": private.trust_model,
        "unprotected_quantities": list(private.not_covered),
        "assumptions": list(private.assumptions),
        "accounting": {
            "composition": _composition(evidence, private),
            "post_processing": "everything computed from what left keeps the guarantee",
            "ledger": None if account is None else _sums(evidence),
        },
        "implementation": {
            "software": f"tacit {VERSION}",
            "mechanism": texts.MECHANISMS[evidence.mechanisms[name]],
            "randomness": texts.RANDOMNESS,
            "proofs": texts.PROOFS[_proofs(evidence, name)],
        },
    }


def _proofs(evidence: Evidence, name: str) -> str:
    """Of a hybrid each guarantee has its own."""
    if evidence.setting != "hybrid":
        return evidence.setting
    return "fleet" if name == "training" else "local"


def _composition(evidence: Evidence, private: DpGuarantee) -> str:
    """What the stated epsilon adds up, as far as it is proven."""
    if private.unit != "series":
        return "a total over all rounds of one run; runs add up in the persons' ledgers"
    if evidence.family == "silo":
        return "one run; runs on the same series add up in the owner's ledger"
    if evidence.account is None:
        return "one release; no total over releases of one series is stated"
    return "one release; totals of single subjects are those of the ledger"


def model_card(
    evidence: Evidence, fields: dict[str, Fact], *, intended_use: str | None
) -> dict[str, Any]:
    """Metrics with intervals, data, use and limits; what is not known is None."""
    measured = {key: _value(fields, f"record.{key}") for key in ("accuracy", "ceiling")}
    interval = [_value(fields, f"record.accuracy_{end}") for end in ("low", "high")]
    return {
        "task": {
            "classes": _value(fields, "data.classes"),
            "channels": _value(fields, "data.channels"),
            "length": _value(fields, "data.length"),
        },
        "metrics": {**measured, "accuracy_interval_95": None if None in interval else interval},
        "data": {
            name: _value(fields, f"record.{name}")
            for name in ("data", "evaluated_on", "n_train", "n_test", "split", "seed")
        },
        "intended_use": intended_use,
        "limits": [
            *(item for g in evidence.guarantees.values() for item in g.not_covered),
            *(f.value for key, f in fields.items() if key.startswith("record.warning_")),
        ],
    }


def impact_assessment(evidence: Evidence, fields: dict[str, Fact]) -> dict[str, Any]:
    """The technical sections of a data protection impact assessment (GDPR, Article 35(7))."""
    opened = evidence.main.opened if isinstance(evidence.main, MpcGuarantee) else ()
    return {
        "processing_operations": [
            *(texts.MECHANISMS[one] for one in evidence.mechanisms.values()),
            texts.COLLECTION[evidence.setting],
        ],
        "what_leaves": list(opened) or [evidence.product],
        "recipients_and_trust": [g.trust_model for g in evidence.guarantees.values()],
        "data_minimisation": [g.sentence for g in evidence.guarantees.values()],
        "residual_risks": [item for g in evidence.guarantees.values() for item in g.not_covered],
        "measures": [texts.RANDOMNESS, texts.SECURITY[evidence.setting]]
        if evidence.private or opened
        else [texts.SECURITY[evidence.setting]],
        "conditions": [item for g in evidence.guarantees.values() for item in g.assumptions],
        "spent": _sums(evidence),
        "to_be_assessed_by_the_controller": [
            "necessity and proportionality, the legal basis, and the rights of data subjects"
        ],
        "measured_accuracy": _value(fields, "record.accuracy"),
    }


def _sums(evidence: Evidence) -> dict[str, Any] | None:
    account = evidence.account
    if account is None:
        return None
    return {
        "debits": account.debits,
        "subject": "the run" if evidence.family == "fleet" else "one series or person",
        "subjects": account.subjects,
        "most_epsilon_of_one_subject": account.most_epsilon,
        "most_delta_of_one_subject": account.most_delta,
    }


def _value(fields: dict[str, Fact], key: str) -> Any:
    return fields[key].value if key in fields else None
