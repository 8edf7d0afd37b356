"""Three answers about who may see what, and the way that fits: a family, why, and where to go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HOLDERS = ("device", "organisations", "fleet")
TRAINING = ("yes", "no")
GOALS = ("population", "model")


@dataclass(frozen=True, slots=True)
class Advice:
    """The card to mark, one sentence, and the page on which it begins."""

    family: Literal["local", "silo", "fleet"]
    sentence: str
    path: str
    link: str


_LOCAL = Advice(
    "local",
    "Local: the consented series train the model, then each device releases one noised answer per "
    "series, and together the answers say how common each class is.",
    "/plan",
    "Plan a budget",
)
_LOCAL_MODEL = Advice(
    "local",
    "Local: the model comes from the consented series alone and is yours; with the release of "
    "places a device also says where the evidence lies, noised.",
    "/train?method=softshape",
    "Train on the consented series",
)
_LOCAL_IN_SILOS = Advice(
    "local",
    "Local: the consented series train one public model, and each organisation releases one noised "
    "answer per recording; nobody's recordings are pooled.",
    "/plan",
    "Plan a budget",
)
_SILO = Advice(
    "silo",
    "Silo: the organisations search on secret shares, and the first of them gets a model that "
    "shows the shapes it decides by.",
    "/train?method=fedst",
    "Try it with three parties",
)
_SILO_MORE = Advice(
    "silo",
    "Silo: the consented series alone would do for a first model; on secret shares it learns from "
    "all recordings of all organisations, and still shows the shapes it decides by.",
    "/train?method=fedst",
    "Try it with three parties",
)
_SILO_COUNT = Advice(
    "silo",
    "Silo: without a training set the organisations have to learn together first; the first of "
    "them then counts classes in its own recordings.",
    "/train?method=fedst",
    "Try it with three parties",
)
_HYBRID = Advice(
    "fleet",
    "Fleet, then local: devices train together first, because nobody's series may be collected; "
    "then each releases noised answers, and they say how common each class is.",
    "/train?method=hybrid",
    "Train together, then release",
)
_FLEET = Advice(
    "fleet",
    "Fleet: devices train one model together with noised, sealed updates, and nobody's series is "
    "collected.",
    "/train?method=timefl",
    "Train a simulated fleet",
)
_FLEET_MORE = Advice(
    "fleet",
    "Fleet: the consented series alone would do for a first model; noised, sealed updates let it "
    "learn from all devices.",
    "/train?method=timefl",
    "Train a simulated fleet",
)
# (who holds the recordings, whether there is a training set, what is wanted)
ADVICE = {
    ("device", "yes", "population"): _LOCAL,
    ("device", "yes", "model"): _LOCAL_MODEL,
    ("device", "no", "population"): _HYBRID,
    ("device", "no", "model"): _FLEET,
    ("organisations", "yes", "population"): _LOCAL_IN_SILOS,
    ("organisations", "yes", "model"): _SILO_MORE,
    ("organisations", "no", "population"): _SILO_COUNT,
    ("organisations", "no", "model"): _SILO,
    ("fleet", "yes", "population"): _LOCAL,
    ("fleet", "yes", "model"): _FLEET_MORE,
    ("fleet", "no", "population"): _HYBRID,
    ("fleet", "no", "model"): _FLEET,
}


def plain_advice() -> dict[str, dict[str, str]]:
    """The table for the page's script, under the three answers with spaces between them."""
    return {
        " ".join(answers): {
            "family": one.family, "sentence": one.sentence, "path": one.path, "link": one.link,
        }
        for answers, one in ADVICE.items()
    }  # fmt: skip
