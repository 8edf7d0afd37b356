"""The disclosures in results/current are what the code writes now: the same fields and sections.

Values differ from run to run; a field or section that came or went shows that they are stale.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from command import tacit
from silo_parties import plan_of
from tacit.disclosure.document import disclose
from tacit.disclosure.evidence import read_evidence
from tacit.disclosure.writing import as_markdown, write_disclosure
from tacit.guarantee import from_dict
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.silo.party.receipts import Receipt, write_receipt
from tacit.silo.secure.openings import Opening

pytestmark = pytest.mark.seconds
COMMITTED = Path(__file__).parents[2] / "results" / "current" / "disclosures"
NAMES = ("label", "silo", "fleet", "published")
Capture = pytest.CaptureFixture[str]


def committed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((COMMITTED / f"{name}.json").read_text(encoding="utf-8"))
    return found


def shape_of(made: dict[str, Any]) -> dict[str, Any]:
    """All keys, in order; warnings are what one training happened to meet."""
    fields = {key: field["source"] for key, field in made["fields"].items()}
    return {
        "keys": list(made),
        "title": made["title"],
        "fields": {key: source for key, source in fields.items() if ".warning_" not in key},
        "guarantees": {name: list(one) for name, one in made["guarantees"].items()},
        "not_stated": made["not_stated"],
        "registry": list(made["deployment_registry"]),
        "model_card": list(made["model_card"]),
        "impact_assessment": list(made["impact_assessment"]),
    }


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", text, re.M)


def check(folder: Path, name: str, **more: Any) -> None:
    made = disclose(read_evidence(folder, **more))
    assert shape_of(made.to_dict()) == shape_of(committed(name))
    text = (COMMITTED / f"{name}.md").read_text(encoding="utf-8")
    assert headings(as_markdown(made)) == headings(text)
    page = write_disclosure(folder / "now.html", made)
    found = [
        re.findall(r"<h[123][^>]*>(.*?)</h", one.read_text(encoding="utf-8"))
        for one in (page, COMMITTED / f"{name}.html")
    ]
    assert found[0] == found[1]


def test_a_label_bundle_with_its_ledger(tmp_path: Path, capsys: Capture) -> None:
    bundle, ledger = tmp_path / "gunpoint", tmp_path / "device.db"
    train = ("train", "softshape", "--data", "GunPoint", "--epsilon", 3, "--out", bundle)
    release = ("release", bundle, "--data", "GunPoint", "--out", tmp_path / "releases.json",
               "--ledger", ledger)  # fmt: skip
    for words in (train, release):
        assert tacit(capsys, *words).code == 0
    check(bundle, "label", ledger=ledger)


def test_a_silo_receipt(tmp_path: Path) -> None:
    plan, _ = plan_of("distances_program", 3, k=3, length=5)
    opened = (Opening(what="shapelet indices", to=0),)
    receipt = Receipt(
        party="b", plan=plan, info={}, opened=opened, bytes_sent=10, rounds=2, seconds=0.5
    )
    write_receipt(tmp_path, receipt)
    check(tmp_path, "silo")


def test_a_published_bundle(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from local_problems import italy
    from tacit.disclosure.training_record import write_training_record
    from tacit.local.softshape.settings import SoftShapeSettings

    data = italy()
    settings = SoftShapeSettings(steps=3)
    classifier = DPSoftShapeClassifier(3.0, "published", settings=settings, random_state=0)
    classifier.fit(data.X_train, data.y_train)
    classifier.save(tmp_path / "published")
    result = {
        "accuracy": 0.5, "accuracy_interval": {"low": 0.2, "high": 0.8, "level": 0.95},
        "data": data.name, "evaluated_on": "the test part of the data set", "n_train": 67,
        "n_test": 10, "seed": 0,
    }  # fmt: skip
    write_training_record(tmp_path / "published", result)
    check(tmp_path / "published", "published")


@pytest.mark.parametrize("name", NAMES)
def test_every_promise_is_one_that_the_code_can_read(name: str) -> None:
    for stated in committed(name)["guarantees"].values():
        assert from_dict(stated).sentence == stated["sentence"]


def test_a_deployed_fleet_has_the_sections_of_the_others() -> None:
    """Its run takes minutes; the operator's guide walks through it."""
    fleet, label = (headings((COMMITTED / f"{name}.md").read_text()) for name in ("fleet", "label"))
    assert fleet[1:] == label[1:]
    assert list(committed("fleet")) == list(committed("label"))
