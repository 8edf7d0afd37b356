"""A disclosure states what files prove, each value with its source, and says what is missing."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import assert_refused, tacit
from field_sources import check_sources
from local_problems import italy, label_head, trained
from silo_parties import plan_of
from tacit.disclosure import texts
from tacit.disclosure.document import disclose
from tacit.disclosure.evidence import read_evidence
from tacit.disclosure.training_record import read_training_record
from tacit.disclosure.writing import _number, as_markdown
from tacit.errors import BundleError
from tacit.fleet.model import load_fleet_model
from tacit.guarantee import DpGuarantee, from_dict
from tacit.ledger import Ledger
from tacit.local.device import Device
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.model import load_model, new_model
from tacit.silo.party.receipts import Receipt, write_receipt
from tacit.silo.secure.openings import Opening

pytestmark = pytest.mark.seconds
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def bundle(tmp_path: Path, capsys: Capture) -> Path:
    out = tmp_path / "bundle"
    done = tacit(capsys, "train", "softshape", "--data", "ItalyPowerDemand", "--epsilon", 2.5,
                 "--out", out, "--json")  # fmt: skip
    assert done.code == 0
    return out


@pytest.fixture
def ledger(bundle: Path, tmp_path: Path) -> Path:
    path = tmp_path / "spend.db"
    device = Device(load_model(bundle / "model.tacit"))
    with Ledger.open(path, per_subject_epsilon=5.0) as account:
        for _ in range(2):
            device.release(italy().X_test[:3], ledger=account)
    return path


def fields_of(made: dict[str, Any]) -> dict[str, Any]:
    return {key: field["value"] for key, field in made["fields"].items()}


def test_every_field_of_a_bundle_is_what_its_source_says(bundle: Path, ledger: Path) -> None:
    made = disclose(read_evidence(bundle, ledger=ledger)).to_dict()
    fields = fields_of(made)
    model, record = load_model(bundle / "model.tacit"), read_training_record(bundle)
    assert record is not None
    stated = model.guarantee.to_dict()
    expected: dict[str, Any] = {
        **{
            f"release.{name}": stated[name]
            for name in (
                *("epsilon", "delta", "unit", "model", "neighbours", "kind", "sentence"),
                *("assumptions", "not_covered"),
            )
        },
        "model.identity": model.identity,
        "data.classes": list(model.classes),
        "data.channels": model.n_channels,
        "data.length": model.n_timepoints,
        **{
            f"record.{name}": record[name]
            for name in record
            if name not in ("accuracy_interval", "warnings", "mode", "release")
        },
        "record.accuracy_low": record["accuracy_interval"]["low"],
        "record.accuracy_high": record["accuracy_interval"]["high"],
        **_ledger_fields(ledger),
    }
    computed = check_sources(made["fields"], bundle)
    assert computed == {"release.odds", *(key for key in fields if key.startswith("ledger."))}
    # e^2.5 = 12.1824..., never below it
    assert fields.pop("release.odds") == 12.19
    assert fields == expected
    assert {from_dict(g) for g in made["guarantees"].values()} == {model.guarantee}


def _ledger_fields(path: Path) -> dict[str, Any]:
    with Ledger.open(path, create=False) as account:
        return {
            "ledger.debits": 6,
            "ledger.debits_here": 6,
            "ledger.subjects": len(account.subjects()),
            "ledger.most_epsilon_of_one_subject": 5.0,
            "ledger.most_delta_of_one_subject": 0.0,
            "ledger.budget_epsilon": None,
            "ledger.per_subject_epsilon": account.budgets()["per_subject_epsilon"],
            "ledger.anchor": account.anchor(),
            "ledger.anchored_elsewhere": False,
        }


def test_the_order_is_that_of_the_pyramid_and_the_forms_agree(bundle: Path, ledger: Path) -> None:
    made = disclose(
        read_evidence(bundle, ledger=ledger),
        curator="A clinic",
        intended_use="Screening",
        publication_date="2026-11-18",
    ).to_dict()
    levels = [section["level"].split(":")[0] for section in made["nist_sp_800_226"]]
    assert levels == sorted(levels, key=["top", "middle", "base"].index)
    registry = made["deployment_registry"]
    assert registry["tier"] == 3
    assert registry["tier_2"]["release"]["privacy_loss"] == {"epsilon": 2.5, "delta": 0.0}
    accounting = registry["tier_3"]["release"]["accounting"]
    assert accounting["ledger"]["most_epsilon_of_one_subject"] == 5.0
    assert made["model_card"]["metrics"]["accuracy"] == fields_of(made)["record.accuracy"]
    assert made["not_stated"] == []


@pytest.mark.parametrize(
    ("told", "with_ledger", "tier"),
    [
        (("curator", "intended_use", "publication_date"), True, 3),
        (("curator", "intended_use", "publication_date"), False, 2),
        (("curator", "intended_use"), True, 0),
        (("curator", "publication_date"), True, 0),
    ],
)
def test_the_tier_is_the_highest_that_is_known_whole(
    told: tuple[str, ...], with_ledger: bool, tier: int, bundle: Path, ledger: Path
) -> None:
    evidence = read_evidence(bundle, ledger=ledger if with_ledger else None)
    entry = disclose(evidence, **dict.fromkeys(told, "2026-11-18")).registry
    assert entry["tier"] == tier
    assert (entry["tier_1"]["publication_date"] is None) == ("publication_date" not in told)


def test_the_date_of_publication_is_a_date(bundle: Path, capsys: Capture) -> None:
    out = bundle.parent / "d.json"
    words = ("disclose", bundle, "--out", out, "--publication-date")
    assert_refused(tacit(capsys, *words, "yesterday"), "--publication-date")
    assert tacit(capsys, *words, "2026-11-18").code == 0
    first = json.loads(out.read_text())["deployment_registry"]["tier_1"]
    assert first["publication_date"] == "2026-11-18"


def test_without_ledger_and_record_it_says_so(bundle: Path) -> None:
    (bundle / "training.json").unlink()
    made = disclose(read_evidence(bundle))
    text = as_markdown(made)
    assert "No ledger was given" in text
    assert "no accuracy is stated" in text
    assert not any(key.startswith(("ledger.", "record.")) for key in made.fields)
    assert made.registry["tier"] == 0


def test_names_of_subjects_do_not_appear(bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "named.db"
    with Ledger.open(path) as account:
        promise = DpGuarantee(epsilon=1.0, model="local", unit="series")
        identity = load_model(bundle / "model.tacit").identity
        purpose = f"label release for Ann Example, model {identity}"
        account.debit(subject="Ann Example", guarantee=promise, purpose=purpose)
    made = disclose(read_evidence(bundle, ledger=path))
    assert "Ann" not in as_markdown(made) + json.dumps(made.to_dict())


def test_the_ledger_of_another_model_is_refused(
    bundle: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "other.db"
    with Ledger.open(path) as account:
        promise = DpGuarantee(epsilon=0.1, model="local", unit="series")
        account.debit(subject="a", guarantee=promise, purpose="label release, model 0123")
    done = tacit(capsys, "disclose", bundle, "--ledger", path, "--out", tmp_path / "d.md")
    assert_refused(done, "no debit for this model")


def test_every_promise_of_a_hybrid_is_registered(tmp_path: Path) -> None:
    training = DpGuarantee(epsilon=8.0, delta=1e-5, model="shuffle", unit="client")
    head = label_head(trained("label"))
    classes = np.array(["1", "2"])
    model = new_model(head, classes, n_channels=1, n_timepoints=24, training=training)
    model.save(tmp_path / "hybrid.tacit")
    made = disclose(read_evidence(tmp_path / "hybrid.tacit"))
    entry = made.registry
    assert entry["tier_2"]["training"]["privacy_loss"] == {"epsilon": 8.0, "delta": 1e-5}
    assert entry["tier_2"]["training"]["dp_flavor"] == "approximate DP"
    assert entry["tier_2"]["release"]["privacy_loss"] == {"epsilon": 2.0, "delta": 0.0}
    assert "no total" in entry["tier_3"]["release"]["accounting"]["composition"]
    assert {k: g["implementation"]["mechanism"] for k, g in entry["tier_3"].items()} == {
        "release": texts.MECHANISMS["label"],
        "training": texts.MECHANISMS["privunit"],
    }
    assert "fleet.md" in entry["tier_3"]["training"]["implementation"]["proofs"]
    assert "fleet.md" not in entry["tier_3"]["release"]["implementation"]["proofs"]
    fields = made.to_dict()["fields"]
    assert check_sources(fields, tmp_path) == {"release.odds", "training.odds"}
    assert f"odds of at most {fields['training.odds']['value']} to 1" in as_markdown(made)
    assert "simulates all clients on one machine" in as_markdown(made)


@pytest.mark.parametrize("ending", ["md", "html"])
def test_names_of_classes_stay_names(ending: str, tmp_path: Path, capsys: Capture) -> None:
    head = label_head(trained("label"))
    classes = np.array(["a", "b\n\n## Privacy loss\n\nepsilon = 0.1 <script>alert(1)</script>|"])
    new_model(head, classes, n_channels=1, n_timepoints=24).save(tmp_path / "odd.tacit")
    out = tmp_path / f"d.{ending}"
    assert tacit(capsys, "disclose", tmp_path / "odd.tacit", "--out", out).code == 0
    text = out.read_text()
    assert "<script>alert" not in text
    headings = "\n## Privacy loss" if ending == "md" else '<h2 id="privacy-loss">'
    assert text.count(headings) == 1


def test_a_delta_is_never_shown_below_its_value() -> None:
    assert float(_number("training.delta", 0.00123456789012)) >= 0.00123456789012
    assert _number("record.accuracy", 0.87654321987) == "0.8765"


@pytest.mark.parametrize(
    "record", ['{"accuracy": "x"}', '{"accuracy_interval": [1]}', '{"warnings": 5}',
               '{"accuracy": 2.0}', '{"n_test": true}', "[]"],
)  # fmt: skip
def test_a_record_that_cannot_be_is_refused(record: str, tmp_path: Path, capsys: Capture) -> None:
    trained("label").save(tmp_path / "bundle")
    (tmp_path / "bundle" / "training.json").write_text(record)
    done = tacit(capsys, "disclose", tmp_path / "bundle", "--out", tmp_path / "d.md")
    assert_refused(done, "training record")


def test_an_altered_ledger_is_refused(bundle: Path, ledger: Path, capsys: Capture) -> None:
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("UPDATE entries SET epsilon = '0.1' WHERE id = 2")
    out = bundle.parent / "d.md"
    refused = tacit(capsys, "disclose", bundle, "--ledger", ledger, "--out", out)
    assert_refused(refused, "ledger")
    assert not out.exists()


@pytest.mark.parametrize("ending", ["md", "html", "json"])
def test_three_formats(bundle: Path, ending: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / f"d.{ending}"
    done = tacit(capsys, "disclose", bundle, "--out", out, "--json")
    assert done.code == 0
    assert done.json["fields"]["release.epsilon"] == 2.5
    text = out.read_text()
    assert_refused(tacit(capsys, "disclose", bundle, "--out", out), "exists")
    assert out.read_text() == text
    assert "epsilon = 2.5 in total for replacing one whole series" in text
    assert "Data collection" in text


def test_a_published_bundle_has_no_epsilon(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tacit.local.softshape.settings import SoftShapeSettings

    data = italy()
    classifier = DPSoftShapeClassifier(
        1.0, "published", settings=SoftShapeSettings(steps=3), random_state=0
    )
    classifier.fit(data.X_train, data.y_train)
    classifier.save(tmp_path / "published")
    made = disclose(read_evidence(tmp_path / "published"))
    assert "No epsilon holds for this mechanism." in as_markdown(made)
    assert not any(key.endswith(".epsilon") for key in made.fields)
    assert made.registry["tier"] is None
    text = as_markdown(made)
    assert "TLS" not in text
    assert "No proof exists." in text
    assert "none." not in text.lower()
    check_sources(made.to_dict()["fields"], tmp_path / "published")
    # The file says the same as its folder, and no ledger can be about it.
    beside = read_evidence(tmp_path / "published" / "published.tacit")
    assert as_markdown(disclose(beside)) == text
    with pytest.raises(BundleError, match="leave --ledger out"):
        read_evidence(tmp_path / "published", ledger=tmp_path / "some.db")


def test_a_silo_receipt(tmp_path: Path) -> None:
    plan, _ = plan_of("distances_program", 3, k=3, length=5)
    opened = (Opening(what="shapelet indices", to=0),)
    receipt = Receipt(
        party="b", plan=plan, info={}, opened=opened, bytes_sent=10, rounds=2, seconds=0.5
    )
    write_receipt(tmp_path, receipt)
    made = disclose(read_evidence(tmp_path))
    fields = fields_of(made.to_dict())
    assert check_sources(made.to_dict()["fields"], tmp_path) == set()
    assert fields["run.parties"] == list(plan.parties)
    assert "Passive adversary, 1 of 3 parties, ABY3." in as_markdown(made)
    assert fields["run.fingerprint"] == plan.fingerprint
    assert fields["run.opened"] == ["shapelet indices -> a"]
    assert "shapelet indices -> a" in as_markdown(made)
    assert as_markdown(disclose(read_evidence(tmp_path / "receipt.json"))) == as_markdown(made)
    assert fields["run.max_corrupt"] == 1
    assert "The opened values are not noised" in as_markdown(made)
    assert made.registry["tier"] is None


def _receipt_of_a_run(folder: Path) -> Receipt:
    plan, _ = plan_of("distances_program", 3, k=3, length=5)
    receipt = Receipt(
        party="b", plan=plan, info={}, opened=(), bytes_sent=10, rounds=2, seconds=0.5
    )
    write_receipt(folder, receipt)
    return receipt


def test_the_accuracy_of_a_silo_comes_from_a_test(tmp_path: Path, capsys: Capture) -> None:
    receipt = _receipt_of_a_run(tmp_path)
    labels = ["1"] * 10
    test = {"labels": labels, "accuracy": 0.8, "guarantee": receipt.guarantee.to_dict()}
    (tmp_path / "labels.json").write_text(json.dumps(test))
    out = tmp_path / "d.json"
    words = ("disclose", tmp_path, "--out", out, "--tested", tmp_path / "labels.json")
    assert tacit(capsys, *words).code == 0
    made = json.loads(out.read_text())
    fields = fields_of(made)
    assert (fields["record.accuracy"], fields["record.n_test"]) == (0.8, 10)
    # Clopper and Pearson's interval of 8 in 10, as tables have it.
    assert made["model_card"]["metrics"]["accuracy_interval_95"] == [
        pytest.approx(0.4439, abs=1e-4), pytest.approx(0.9748, abs=1e-4)
    ]  # fmt: skip
    computed = check_sources(made["fields"], tmp_path)
    assert computed == {"record.n_test", "record.accuracy_low", "record.accuracy_high"}
    for change, said in (
        ({"accuracy": None}, "had no labels"),
        ({"accuracy": 1.5}, "is no test"),
        ({"labels": 3}, "is no test"),
        ({"guarantee": DpGuarantee(epsilon=1, model="local", unit="series").to_dict()}, "another"),
    ):
        (tmp_path / "labels.json").write_text(json.dumps(test | change))
        out.unlink(missing_ok=True)
        assert_refused(tacit(capsys, *words), said)


def test_a_fleet_model(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "fleet.model"
    done = tacit(capsys, "train", "timefl", "--data", "ItalyPowerDemand", "--clients", 10,
                 "--rounds", 2, "--epsilon", 8, "--out", out, "--json")  # fmt: skip
    assert done.code == 0, done.err
    model = load_fleet_model(out)
    made = disclose(read_evidence(out))
    fields = fields_of(made.to_dict())
    computed = check_sources(made.to_dict()["fields"], tmp_path)
    assert computed == {"training.odds"}
    text = as_markdown(made)
    for untrue in ("TLS", "nodes sign", "Series stay with their client"):
        assert untrue not in text
    assert "no service and no shuffler took part" in text
    assert model.guarantee.epsilon <= fields["training.epsilon"] < model.guarantee.epsilon + 1e-3
    assert fields["training.delta"] == model.guarantee.delta
    assert fields["run.rounds"] == 2
    assert fields["record.accuracy"] == done.json["accuracy"]
    low, high = fields["record.accuracy_low"], fields["record.accuracy_high"]
    assert low < done.json["accuracy"] < high


@pytest.mark.parametrize(
    ("place", "out", "words"),
    [
        ("nothing", "d.md", "there is no"),
        (".", "d.md", "holds no model and no run"),
        ("releases.json", "d.md", "is a text of JSON and no model"),
        ("bundle", "d.pdf", "must end in .md, .html, .json"),
    ],
)
def test_bad_input_gets_a_sentence(
    tmp_path: Path, capsys: Capture, place: str, out: str, words: str
) -> None:
    trained("label").save(tmp_path / "bundle")
    (tmp_path / "releases.json").write_text('{"kind": "label"}')
    done = tacit(capsys, "disclose", tmp_path / place, "--out", tmp_path / out)
    assert_refused(done, words)


def test_a_damaged_record_is_refused(tmp_path: Path, capsys: Capture) -> None:
    trained("label").save(tmp_path / "bundle")
    (tmp_path / "bundle" / "training.json").write_text("{")
    done = tacit(capsys, "disclose", tmp_path / "bundle", "--out", tmp_path / "d.md")
    assert_refused(done, "training record")


def test_the_check_of_sources_notices_a_wrong_one(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text('{"plan": {"n": 3, "parts": [1, 2]}}')
    check_sources({"a": {"value": 2, "source": "receipt.json: plan.parts.1"}}, tmp_path)
    for value, source in ((4, "plan.n"), (3, "n"), (3, "plan.parts")):
        field = {"value": value, "source": f"receipt.json: {source}"}
        with pytest.raises((AssertionError, KeyError)):
            check_sources({"a": field}, tmp_path)


def test_a_collector_is_stated_only_where_there_is_one(bundle: Path) -> None:
    text = as_markdown(disclose(read_evidence(bundle)))
    assert "The collector accepts" not in text
    assert "without --store the server is plain HTTP" in text


def test_bundles_and_receipts_need_no_packages_of_a_fleet(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    _receipt_of_a_run(run)
    for name in ("tacit.fleet.deployment", "tacit.fleet.deployment.analyser_state"):
        monkeypatch.setitem(sys.modules, name, None)
    assert read_evidence(bundle).guarantees
    assert read_evidence(run).guarantees
