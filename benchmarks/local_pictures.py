"""One page with the pictures of the published mode: the paper's Fig. 3, 4 and 5, and its budget.

    TACIT_DATA=... python benchmarks/local_pictures.py --out local.html

Fig. 3 on CBF and Fig. 4 on SyntheticControl at epsilon 0.1, Fig. 5 on Trace; the last figure
draws the record of `local_published.py` under the ceiling of every total-epsilon release.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tacit.data import Dataset, load_dataset
from tacit.local.softshape.explain import explain
from tacit.local.softshape.published import TrainedSoftShape, published_guarantee, train_published
from tacit.report.charts import with_guarantee
from tacit.report.local_charts import (
    allocation_figure,
    budget_figure,
    latent_figure,
    routing_figure,
)
from tacit.report.page import Text, write_page

EPSILON = 0.1
BUDGETS = (0.1, 0.5, 1.0, 5.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("local.html"))
    parser.add_argument("--record", type=Path, default=Path("results/local_published.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    blocks: list[Any] = [*allocation(), *latent(), *routing()]
    if options.record.exists():
        blocks += budget(options.record)
    write_page(
        options.out,
        title="DP-SoftShape as published: what it keeps, blurs and leaks",
        guarantee=published_guarantee(EPSILON),
        blocks=blocks,
    )
    print(options.out)


def trained_on(name: str) -> tuple[Dataset, TrainedSoftShape]:
    data = load_dataset(name)
    position = {label: code for code, label in enumerate(data.classes)}
    codes = np.array([position[label] for label in data.y_train])
    return data, train_published(data.X_train, codes, len(data.classes), epsilon=EPSILON)


def allocation() -> list[Any]:
    data, trained = trained_on("CBF")
    found = explain(trained, data.X_test[0], epsilon=EPSILON)
    figure = allocation_figure(
        data.X_test[0],
        patch_starts=found.patch_starts.tolist(),
        patch_length=found.patch_length,
        alpha=found.alpha,
        noise_scale=found.noise_scale,
        title=f"CBF at nominal epsilon {EPSILON:g}: scores and noise per patch",
    )
    return [Text("", heading="What is kept and what is blurred"), captioned(figure)]


def latent() -> list[Any]:
    data, trained = trained_on("SyntheticControl")
    clean = replace(trained, epsilon=None).traces(data.X_test)[0]
    figure = latent_figure(
        {"without noise": clean, "with noise": trained.traces(data.X_test)[0]},
        [str(label) for label in data.y_test],
        title=f"SyntheticControl at nominal epsilon {EPSILON:g}",
    )
    return [Text("", heading="Representations under noise"), captioned(figure)]


def routing() -> list[Any]:
    data, trained = trained_on("Trace")
    found = explain(trained, data.X_test[0], epsilon=EPSILON)
    if found.routing is None:
        return []
    figure = routing_figure(
        data.X_test[0],
        found.routing,
        patch_centres=found.patch_centres.tolist(),
        title=f"Trace at nominal epsilon {EPSILON:g}: routing of the kept patches",
    )
    return [Text("", heading="Which expert reads which part"), captioned(figure)]


def budget(record: Path) -> list[Any]:
    lines = [json.loads(text) for text in record.read_text(encoding="utf-8").splitlines()]
    full = [line for line in lines if line["variant"] == "full"]

    def means(key: str) -> list[float]:
        return [
            float(np.mean([ln[key] for ln in full if ln["epsilon"] == epsilon]))
            for epsilon in BUDGETS
        ]

    figure = budget_figure(
        BUDGETS, {"published, nominal epsilon": means("accuracy")}, ceiling=means("ceiling")
    )
    note = "Above the dashed line no release with this total epsilon can be: the curve shows that "
    return [Text(note + "the nominal epsilon is none.", heading="Accuracy"), captioned(figure)]


def captioned(figure: Any) -> Any:
    return with_guarantee(figure, published_guarantee(EPSILON))


if __name__ == "__main__":
    main()
