"""A fleet: forty devices with a few series each learn one classifier in noisy rounds.

    python examples/fleet.py

Simulated on one machine with the noise and the accounting of a deployment; docs/guide has the page
about running it on many.
"""

from tacit import DPTimeFLClassifier, load_dataset
from tacit.accounting import shuffle_epsilon


def main() -> None:
    """Train with both mechanisms and say what each promises."""
    data = load_dataset("ItalyPowerDemand")
    for mechanism in ("distributed", "privunit"):
        classifier = DPTimeFLClassifier(
            n_clients=40,
            epsilon=8.0,
            delta=1e-5,
            mechanism=mechanism,
            n_rounds=20,
            random_state=0,
        )
        classifier.fit(data.X_train, data.y_train)
        accuracy = (classifier.predict(data.X_test) == data.y_test).mean()
        print(f"{mechanism}: accuracy {accuracy:.3f} after {len(classifier.history_)} rounds")
        print(" ", classifier.guarantee_.sentence)

    # Shuffling hides a report among many: forty are few.
    for n in (40, 1000, 100_000):
        bound = shuffle_epsilon(local_epsilon=1.0, n=n, delta=1e-6)
        print(f"one report of local epsilon 1 among {n}: central {bound.central_epsilon:.3f}")


if __name__ == "__main__":
    main()
