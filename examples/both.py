"""Nobody shows a series: clients train a model together, and devices release labels with it.

    python examples/both.py

The fleet is simulated here. Its model is protected per client, each release per series; a person
who takes part in both gets the sum.
"""

from pathlib import Path

from tacit import DPHybridClassifier, load_dataset
from tacit.local.device import Device


def main() -> None:
    """Train with thirty clients, carry the model to a device, classify what it releases."""
    data = load_dataset("ItalyPowerDemand")
    classifier = DPHybridClassifier(
        n_clients=30, epsilon=8.0, delta=1e-5, release_epsilon=3.0, random_state=0
    )
    classifier.fit(data.X_train, data.y_train)
    print(f"training: {classifier.training_guarantee_.sentence}")
    print(f"release: {classifier.guarantee_.sentence}")
    together = classifier.composed_guarantee(10)
    print(f"ten releases and training: epsilon {together.epsilon:.2f}, delta {together.delta:g}")

    # A device: one small file and NumPy; the features grow from a public seed.
    classifier.export_device("power.tacit")
    device = Device.load("power.tacit")
    print(f"device file: {Path('power.tacit').stat().st_size / 1024:.0f} kB")
    sent = device.release(data.X_test)

    right = (classifier.classify(sent) == data.y_test).mean()
    clean = (classifier.device_labels(data.X_test) == data.y_test).mean()
    print(f"right on {right:.0%} of {len(sent)} series, {clean:.0%} before the noise")


if __name__ == "__main__":
    main()
