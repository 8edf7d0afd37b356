"""What the code does, in words: mechanisms, trust models, randomness. No number stands here."""

from __future__ import annotations

MECHANISMS = {
    "label": "The device classifies its series and sends one symbol, drawn from a public channel "
    "over the classes in exact whole-number arithmetic.",
    "place": "The device sends one symbol for the class and where in the series its evidence lies, "
    "drawn from a public channel in exact whole-number arithmetic.",
    "vector": "The device sends one randomized vector of features, drawn on a lattice by an exact "
    "sampler.",
    "shapes": "The device sends clipped distances to public shapes with exact discrete Laplace "
    "noise.",
    "published": "Laplace noise whose scale follows the network's attention to the series itself, "
    "as the paper has it.",
    "silo": "The owners' series stay secret-shared; the computing parties multiply, compare and "
    "sort shares and open only what is listed.",
    "privunit": "Every client clips its update, randomizes it by PrivUnitG on a lattice, seals it "
    "for the analyser, and sends it through a shuffler.",
    "distributed": "Every client clips its update, adds its part of discrete Gaussian noise, and "
    "sends one share to each of two servers, which reveal sums only.",
}
_SIMULATED = (
    "Simulated on one machine, which held all series: no service and no shuffler took part."
)
_HYBRID = (
    "The training: 'tacit train hybrid' simulates all clients on one machine, which holds their "
    "series; only where services trained the fleet's model did series stay with their client."
)
# By setting: local, hybrid, published, silo, fleet (deployed), simulated (a fleet on one machine).
PROOFS = {
    "local": "Proofs: docs/guarantees/local-releases.md.",
    "hybrid": "Proofs: docs/guarantees/local-releases.md for releases, docs/guarantees/fleet.md "
    "for the training.",
    "published": "No proof exists. What was measured instead: "
    "docs/guarantees/published-softshape.md.",
    "silo": "Proofs: docs/guarantees/silo-protocols.md.",
    "fleet": "Proofs: docs/guarantees/fleet.md.",
    "simulated": "Proofs: docs/guarantees/fleet.md.",
}
DEPLOYMENT_MODELS = {
    "local": "local model: noise is added on each device before anything leaves",
    "shuffle": "shuffle model: noise on each client, amplified by a shuffler",
    "distributed": "distributed model: noise shares of many clients, sums only are revealed",
    "central": "central model: a trusted curator adds the noise",
}
RANDOMNESS = (
    "Noise, shares and keys come from the operating system's generator and cannot be seeded. "
    "Sound mechanisms draw in whole numbers, so that last bits of floating-point numbers give "
    "nothing away."
)
SIDE_CHANNELS = (
    "Running time, message sizes and whether somebody takes part are not protected; see what is "
    "not covered."
)
_COLLECTOR = (
    "How releases travel is not in the model. Collected with 'tacit serve --store', they come over "
    "TLS 1.3 with one key per device, and no series is kept; without --store the server is plain "
    "HTTP without keys. Access to the machine that trains is the operator's to control."
)
SECURITY = {
    "local": _COLLECTOR,
    "hybrid": _COLLECTOR,
    "published": "No collector takes what a published model makes. Access to the machine that "
    "trains is the operator's to control.",
    "silo": "Parties speak TLS 1.3 pinned to each other's certificates; engines have no network "
    "port. Access to each owner's machine is the owner's to control.",
    "fleet": "Services accept TLS 1.3 only, nodes sign their reports, and reports are sealed for "
    "their recipient. Access to the services' machines is the operator's to control.",
    "simulated": f"{_SIMULATED} Access to that machine is its owner's to control.",
}
_TRAINER = "The series that trained the model were held by whoever trained it."
COLLECTION = {
    "local": f"Series in use stay on their device. {_TRAINER}",
    "hybrid": f"Series in use stay on their device. {_HYBRID}",
    "published": f"{_TRAINER} What is made of series in use is not protected.",
    "silo": "Each owner keeps its series. What an owner itself collected, and may use, is not "
    "changed by the computation.",
    "fleet": "Series stay with their client; the services never hold one.",
    "simulated": f"{_SIMULATED} A deployment of the same plan would leave series with their "
    "client.",
}
# What a guarantee's own words could hide, said beside its trust model.
SETTINGS = {
    "hybrid": _HYBRID,
    "simulated": f"{_SIMULATED} The guarantee is that of the model against whoever sees it, and "
    "of a deployment of the same plan.",
    "silo": "The fingerprint here is that of the whole plan of the run, with counts and versions. "
    "The number that owners compare beforehand covers what they agreed on, and is another one; "
    "'tacit silo plan' shows it.",
}
FLEET_LEDGER = (
    "Its one subject is the run, as the analyser sees no persons. What one person spent, in "
    "earlier runs too, stands in the person's own ledger, which was not read."
)
NO_UNIT = "No unit is protected."
NO_TRUST = "Nobody who sees what leaves is kept from learning about the series."
NO_EPSILON = (
    "No epsilon holds for this mechanism. The nominal epsilon is a parameter of the paper, not a "
    "promise; do not file it as one."
)
NO_LEDGER = (
    "No ledger was given: how often one unit took part is not recorded here, so the guarantee "
    "above is that of a single use, and no total over repeated uses can be stated."
)
NO_RECORD = (
    "No record of the training lies beside the model and no test was given, so no accuracy is "
    "stated: models trained with 'tacit train ... --out' have a record; for others give --tested."
)
NO_DP = (
    "The opened values are not noised: what they say about single series is not bounded by an "
    "epsilon."
)
