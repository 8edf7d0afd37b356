"""A wearable: train on consented series, give devices a file, release labels within a budget.

    python examples/wearable.py

The trainer's model is public. Each device computes a label from its own series, randomizes it and
sends one symbol; its ledger refuses a second release of the same series.
"""

from pathlib import Path

from tacit import DPSoftShapeClassifier, TacitError, load_dataset
from tacit.ledger import Ledger
from tacit.local import estimate_prevalence
from tacit.local.device import Device
from tacit.local.model import load_model

EPSILON = 2.0


def main() -> None:
    """Walk from training to the labels that the server sees."""
    data = load_dataset("GunPoint")

    # The trainer: 50 series whose owners agreed to training.
    classifier = DPSoftShapeClassifier(epsilon=EPSILON, channel="krr", random_state=0)
    classifier.fit(data.X_train, data.y_train)
    classifier.export_device("gunpoint.tacit")
    print(f"device file: {Path('gunpoint.tacit').stat().st_size / 1024:.0f} kB")
    print(classifier.guarantee_.sentence)

    # A device: NumPy alone, one debit before every release.
    device = Device.load("gunpoint.tacit")
    with Ledger.open("device.db", per_subject_epsilon=EPSILON) as ledger:
        sent = device.release(data.X_test[0], ledger=ledger)
        try:
            device.release(data.X_test[0], ledger=ledger)
        except TacitError as error:
            print(f"a second release is refused: {error}")
        print(f"spent {ledger.spent().epsilon:g} in all, chain intact: {bool(ledger.verify())}")

    # The server: labels of single series are uncertain, shares over many are not.
    print(f"the server's label for one series: {classifier.classify(sent)[0]}")
    everybody = classifier.release(data.X_test)
    right = (classifier.classify(everybody) == data.y_test).mean()
    shares = estimate_prevalence(load_model("gunpoint.tacit"), everybody)
    print(f"right on {right:.0%} of {len(data.y_test)} series")
    print("estimated shares:", dict(zip(shares.classes, shares.share.round(2), strict=True)))


if __name__ == "__main__":
    main()
