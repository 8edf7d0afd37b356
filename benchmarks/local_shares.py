"""What it would do to the label release to mix equal class shares into those of the training part.

    TACIT_DATA=... python benchmarks/local_shares.py

The channel is designed for the class shares of the training part; where the test part has others,
mixing in some equal shares is an insurance. First its price on UCR sets that share no series with
the 19 of `local_sound.py`, by their class counts alone: the classifier is right on a given part of
each class and errs evenly. Then its effect on the 19 themselves, whose test parts must not decide.
The rule in use mixes in none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from local_sound import SETS

from tacit.arrays import Floats
from tacit.data import list_datasets, load_dataset
from tacit.local.encoding.body import train_kernels
from tacit.local.releases.channel import design_channel
from tacit.local.releases.confusion import class_shares, design_gain

EQUAL = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
MOST_CLASSES = 12
# Other cuts of the same recordings as one of the 19.
RELATED = ("Phalan", "FaceAll", "FacesUCR", "FiftyWords")


def main() -> None:
    print(f"equal shares mixed in:{'':>20}", *(f"{equal:8g}" for equal in EQUAL))
    counts = list(other_counts())
    for epsilon in (1.0, 2.0):
        for right in (0.8, 0.95):
            found = np.array(
                [[price(*both, equal, epsilon, right) for equal in EQUAL] for both in counts]
            )
            gain = found - found[:, :1]
            error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
            title = f"{len(gain)} other sets, epsilon {epsilon:g}, {right:g} right"
            print(f"{title:>42}", *(f"{value:8.4f}" for value in found.mean(axis=0)))
            print(f"{'against none':>42}", *(f"{value:+8.4f}" for value in gain.mean(axis=0)))
            print(f"{'standard error':>42}", *(f"{value:8.4f}" for value in error))
    for epsilon, table in core_accuracies().items():
        print(f"{f'the 19, epsilon {epsilon:g}':>42}", *(f"{v:8.4f}" for v in table.mean(axis=0)))
        moved = table[:, EQUAL.index(0.1)] - table[:, 0]
        most = int(np.abs(moved).argmax())
        print(f"    at 0.1 most on {SETS[most]}: {moved[most]:+.4f} of {moved.sum():+.4f} in all")


def other_counts() -> Iterator[tuple[Floats, Floats]]:
    """Class counts of the training and the test part."""
    for row in list_datasets():
        if row["name"] in SETS or any(part in row["name"] for part in RELATED):
            continue
        if row["channels"] == 1 and row["n_classes"] <= MOST_CLASSES and row["n_test"]:
            data = load_dataset(row["name"])
            train, test = (
                (y[:, None] == data.classes).sum(axis=0) for y in (data.y_train, data.y_test)
            )
            yield train.astype(np.float64), test.astype(np.float64)


def mixed(shares: Floats, equal: float) -> Floats:
    return (1.0 - equal) * shares + equal / len(shares)


def price(train: Floats, test: Floats, equal: float, epsilon: float, right: float) -> float:
    """Expected accuracy on the test part's shares."""
    n_classes = len(train)
    called = np.full((n_classes, n_classes), (1.0 - right) / (n_classes - 1))
    np.fill_diagonal(called, right)
    channel = design_channel(
        (mixed(class_shares(train), equal)[:, None] * called).T, epsilon=epsilon
    )
    return float((channel * ((test / test.sum())[:, None] * called).T).sum())


def core_accuracies() -> dict[float, Floats]:
    """Expected accuracy on each of the 19 (rows) by what is mixed in (columns), seed 0."""
    rows: dict[float, list[list[float]]] = {1.0: [], 2.0: [], 3.0: []}
    for name in SETS:
        data = load_dataset(name)
        names, y = np.unique(data.y_train, return_inverse=True)
        rng = np.random.default_rng(0)
        trained = train_kernels(data.X_train, y, n_classes=len(names), rng=rng)
        called = trained.body.posterior(data.X_test).argmax(axis=1)
        truth = np.searchsorted(names, data.y_test)
        gain = design_gain(trained.held_out, y)
        shares = gain.sum(axis=0)
        for epsilon, found in rows.items():
            designs = [gain * mixed(shares, equal) / shares for equal in EQUAL]
            channels = [design_channel(design, epsilon=epsilon) for design in designs]
            found.append([float(channel[called, truth].mean()) for channel in channels])
    return {epsilon: np.array(found) for epsilon, found in rows.items()}


if __name__ == "__main__":
    main()
