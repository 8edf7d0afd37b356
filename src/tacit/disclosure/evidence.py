"""What can be proven about a model or a run, read from its files; every fact names its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tacit.disclosure.accounts import Account, read_account
from tacit.disclosure.training_record import read_training_record, record_path
from tacit.errors import BundleError
from tacit.guarantee import DpGuarantee, Guarantee

Family = Literal["local", "silo", "fleet"]
Setting = Literal["local", "hybrid", "published", "silo", "fleet", "simulated"]
_ACCEPTED = (
    "give a folder of 'tacit train ... --out', a model file, the folder of a silo party's results, "
    "or a fleet's folder"
)
_FLEET_PRODUCT = "a model trained on the reports of many clients"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value under a name, with its source.

    A source is `FILE: field.of.a.field`, where the value stands, or begins with "computed from".
    """

    key: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a disclosure may use. `guarantees` are by what they protect: release, training."""

    family: Family
    setting: Setting
    product: str
    mechanisms: Mapping[str, str]  # of each guarantee, a key of the descriptions in `texts`
    guarantees: Mapping[str, Guarantee]
    sources: Mapping[str, str]  # of each guarantee, the file and field that states it
    facts: tuple[Fact, ...]
    record: Mapping[str, Any] | None
    record_source: str
    account: Account | None

    @property
    def main(self) -> Guarantee:
        """The guarantee that is about what leaves in use."""
        return next(iter(self.guarantees.values()))

    @property
    def private(self) -> dict[str, DpGuarantee]:
        """Those of differential privacy, with the one inside a secure computation."""
        found = {name: _private_part(promise) for name, promise in self.guarantees.items()}
        return {name: promise for name, promise in found.items() if promise is not None}


def read_evidence(place: Path, *, ledger: Path | None = None) -> Evidence:
    """Find out what `place` holds and read it, or refuse."""
    if not place.exists():
        raise BundleError(f"there is no {place}; {_ACCEPTED}.")
    from tacit.local.estimator import PUBLISHED_FILE
    from tacit.silo.party.receipts import RECEIPT

    if place.is_dir() or place.name in (PUBLISHED_FILE, RECEIPT):
        return _of_folder(place if place.is_dir() else place.parent, ledger)
    from tacit.fleet.model import is_fleet_model, load_fleet_model

    if is_fleet_model(place):
        if ledger is not None:
            raise BundleError(
                f"{place} does not name the run that it came from, so no ledger can be tied to "
                "it; give the fleet's folder, or leave --ledger out."
            )
        return _simulated_fleet(load_fleet_model(place), place)
    with place.open("rb") as file:
        if file.read(1) in (b"{", b"["):
            raise BundleError(f"{place} is a text of JSON and no model; {_ACCEPTED}.")
    return _local(place, place, ledger)


def _of_folder(folder: Path, ledger: Path | None) -> Evidence:
    from tacit.local.estimator import MODEL_FILE, PUBLISHED_FILE
    from tacit.silo.party.receipts import RECEIPT

    if (folder / RECEIPT).exists():
        return _silo(folder, ledger)
    if (folder / PUBLISHED_FILE).exists():
        if ledger is not None:
            raise BundleError(
                f"{folder} holds a published model, whose releases no ledger can account for; "
                "leave --ledger out."
            )
        return _published(folder)
    if (folder / MODEL_FILE).exists():
        return _local(folder / MODEL_FILE, folder, ledger)
    if _is_deployed_fleet(folder):
        return _deployed_fleet(folder, ledger)
    raise BundleError(f"{folder} holds no model and no run; {_ACCEPTED}.")


def _is_deployed_fleet(folder: Path) -> bool:
    if any((folder / part / "analyser.toml").exists() for part in ("", "analyser")):
        return True
    if not (folder / "plan.toml").exists():
        return False
    from tacit.fleet.deployment.analyser_state import is_earlier_run  # needs the extra fleet

    return is_earlier_run(folder)


def _local(file: Path, place: Path, ledger: Path | None) -> Evidence:
    from tacit.local.model import load_model

    model, name = load_model(file), file.name
    guarantees: dict[str, Guarantee] = {"release": model.guarantee}
    mechanisms = {"release": str(model.head.kind)}
    if model.training is not None:
        guarantees["training"] = model.training
        by_sums = model.training.model == "distributed"
        mechanisms["training"] = "distributed" if by_sums else "privunit"
    return Evidence(
        family="local",
        setting="local" if model.training is None else "hybrid",
        product=f"one {model.head.kind} release per series",
        mechanisms=mechanisms,
        guarantees=guarantees,
        sources={"release": f"{name}: guarantee", "training": f"{name}: training"},
        facts=(
            _fact("model.identity", model.identity, name, "identity"),
            _fact("data.classes", list(model.classes), name, "classes"),
            _fact("data.channels", model.n_channels, name, "n_channels"),
            _fact("data.length", model.n_timepoints, name, "n_timepoints"),
        ),
        record=read_training_record(place),
        record_source=record_path(place).name,
        account=_account(ledger, about=f"model {model.identity}"),
    )


def _published(folder: Path) -> Evidence:
    from tacit.local.estimator import PUBLISHED_FILE, DPSoftShapeClassifier

    loaded = DPSoftShapeClassifier.load(folder)
    shape, name = loaded.metadata_, PUBLISHED_FILE
    leakage: Mapping[str, Any] = loaded.leakage_ or {}
    return Evidence(
        family="local",
        setting="published",
        product="one noised embedding per series, as the DP-SoftShape paper describes it",
        mechanisms={"release": "published"},
        guarantees={"release": loaded.guarantee_},
        sources={"release": f"computed from {name}: published"},
        facts=(
            _fact("data.classes", list(map(str, loaded.classes_)), name, "classes"),
            _computed("data.channels", shape["n_channels"], f"{name}: published"),
            _computed("data.length", shape["n_timepoints"], f"{name}: published"),
            *(
                _fact(f"leakage.{key}", value, name, f"leakage.{key}")
                for key, value in leakage.items()
                if isinstance(value, int | float)
            ),
        ),
        record=read_training_record(folder),
        record_source=record_path(folder).name,
        account=None,
    )


def _silo(folder: Path, ledger: Path | None) -> Evidence:
    from tacit.silo.party.receipts import RECEIPT, read_receipt

    receipt = read_receipt(folder)
    plan = receipt.plan
    found = {
        "run.fingerprint": (plan.fingerprint, "fingerprint"),
        "run.party": (receipt.party, "party"),
        "run.parties": (list(plan.parties), "plan.parties"),
        "run.bytes_sent": (receipt.bytes_sent, "bytes_sent"),
        "run.opened": (list(receipt.guarantee.opened), "guarantee.opened"),
        "data.classes": (list(plan.classes), "plan.classes"),
        "data.channels": (plan.n_channels, "plan.n_channels"),
        "data.length": (plan.series_length, "plan.series_length"),
    }
    return Evidence(
        family="silo",
        setting="silo",
        product="a model trained on the series of several owners, opened to one of them",
        mechanisms={"run": "silo"},
        guarantees={"run": receipt.guarantee},
        sources={"run": f"{RECEIPT}: guarantee"},
        facts=tuple(_fact(key, value, RECEIPT, field) for key, (value, field) in found.items()),
        record=read_training_record(folder),
        record_source=record_path(folder).name,
        account=_account(ledger, about=f"plan {plan.fingerprint[:16]}"),
    )


def _deployed_fleet(folder: Path, ledger: Path | None) -> Evidence:
    from tacit.fleet.deployment.analyser_state import CHECKPOINT, AnalyserState, run_files
    from tacit.fleet.deployment.config import read_run

    files = run_files(folder)
    fleet = read_run(files.plan)
    state = AnalyserState.read(files.checkpoint, run=fleet.run)
    model = state.fleet_model(fleet)
    history = f"{CHECKPOINT}: meta.history"
    return Evidence(
        family="fleet",
        setting="fleet",
        product=_FLEET_PRODUCT,
        mechanisms={"training": fleet.plan.mechanism},
        guarantees={"training": model.guarantee},
        sources={"training": f"computed from {history} and plan.toml: plan"},
        facts=(
            _fact("run.identity", fleet.run, CHECKPOINT, "meta.run"),
            _computed("run.rounds", model.rounds, history),
            _computed("run.reports", [record.n for record in state.history], history),
            *_of_plan(fleet.plan, "plan.toml", "plan"),
        ),
        record=read_training_record(files.state),
        record_source=record_path(files.state).name,
        account=_account(ledger or files.state / "ledger.db", about=f"fleet run {fleet.run} "),
    )


def _simulated_fleet(model: Any, place: Path) -> Evidence:
    return Evidence(
        family="fleet",
        setting="simulated",
        product=_FLEET_PRODUCT,
        mechanisms={"training": model.plan.mechanism},
        guarantees={"training": model.guarantee},
        sources={"training": f"{place.name}: meta.guarantee"},
        facts=(
            _fact("run.rounds", model.rounds, place.name, "meta.rounds"),
            *_of_plan(model.plan, place.name, "meta.plan"),
        ),
        record=read_training_record(place),
        record_source=record_path(place).name,
        account=None,
    )


def _of_plan(plan: Any, file: str, inside: str) -> tuple[Fact, ...]:
    found = {
        "run.mechanism": (plan.mechanism, "mechanism"),
        "run.fewest_reports": (plan.n_min, "n_min"),
        "data.classes": (list(plan.classes), "classes"),
        "data.channels": (plan.n_channels, "n_channels"),
        "data.length": (plan.length, "length"),
    }
    return tuple(
        _fact(key, value, file, f"{inside}.{field}") for key, (value, field) in found.items()
    )


def _fact(key: str, value: Any, file: str, field: str) -> Fact:
    return Fact(key=key, value=value, source=f"{file}: {field}")


def _computed(key: str, value: Any, source: str) -> Fact:
    return Fact(key=key, value=value, source=f"computed from {source}")


def _account(ledger: Path | None, *, about: str) -> Account | None:
    return None if ledger is None else read_account(ledger, about=about)


def _private_part(promise: Guarantee) -> DpGuarantee | None:
    if isinstance(promise, DpGuarantee):
        return promise
    return getattr(promise, "also", None)
