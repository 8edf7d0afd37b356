"""What the form of the training page becomes: the options of a command, or a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.errors import TacitError
from tacit.studio.jobs import CHECKPOINT, FOLDER
from tacit.studio.pages.train import options_of

FLEET = {"epsilon": "8", "delta": "1e-5", "clients": "20"}


def options(method: str, **body: Any) -> str:
    return " ".join(options_of(method, body))


def test_each_way_has_its_options() -> None:
    assert options("softshape", epsilon="2") == "--epsilon 2.0 --release label --channel optimal"
    assert "--release vector" in options("softshape", epsilon="2", release="vector")
    silo = options("fedst", parties="3", candidates="50", shapelets="5", features="all")
    assert silo.startswith("--parties 3 --candidates 50 --shapelets 5 --features all")
    fleet = options("timefl", **FLEET, rounds="7", split="subject")
    assert fleet.endswith(f"--split subject --rounds 7 --checkpoint {FOLDER}/{CHECKPOINT}")
    assert "--delta 1e-05" in fleet
    published = options("timefl", **FLEET, mode="published", rounds="")
    assert published == "--mode published --epsilon 8.0 --clients 20 --split iid"
    assert options("softshape", epsilon="2", mode="published") == "--mode published --epsilon 2.0"
    hybrid = options("hybrid", **FLEET, release_epsilon="3", rounds="")
    assert hybrid.endswith("--release-epsilon 3.0")
    assert "--rounds" not in hybrid


@pytest.mark.parametrize(
    ("method", "body", "sentence"),
    [
        ("softshape", {"epsilon": "2", "release": "raw"}, "release must be one of label"),
        ("softshape", {"epsilon": "2", "mode": "x"}, "mode must be one of sound"),
        ("timefl", {**FLEET, "split": "x"}, "split must be one of iid"),
        ("timefl", {**FLEET, "clients": "1.5"}, "clients must be a whole number"),
        ("timefl", {"epsilon": "8", "clients": "2"}, "delta must be a number"),
        ("hybrid", FLEET, "release_epsilon must be a number"),
        ("magic", {}, "method must be one of softshape, fedst"),
    ],
)
def test_what_no_command_takes_is_refused(method: str, body: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TacitError, match=sentence):
        options_of(method, body)
