"""Three hospitals: one classifier from series that none of them shows to the others.

    python examples/hospitals.py

Each hospital is a process of its own; they compute on secret shares over TLS. The first one learns
the shapelets among its own series and the classifier, and can explain a decision with them.
Needs the extra `silo`.
"""

from typing import Any

from tacit import FedSTClassifier, load_dataset
from tacit.data import split_parties
from tacit.system.seeds import generator


def main() -> None:
    """Train, compare with one hospital alone, and explain one decision."""
    data = load_dataset("ItalyPowerDemand")
    hospital = split_parties(data.y_train, n_parties=3, rng=generator(0))
    print("series per hospital:", [int((hospital == rank).sum()) for rank in range(3)])

    # Small settings, so that the example ends soon; leave them out for the defaults.
    settings: dict[str, Any] = {
        "n_candidates": 40,
        "n_shapelets": 10,
        "n_steps": 30,
        "random_state": 0,
    }
    together = FedSTClassifier(n_parties=3, **settings)
    together.fit(data.X_train, data.y_train, party=hospital)
    alone = FedSTClassifier(n_parties=3, scope="local", **settings)
    alone.fit(data.X_train, data.y_train, party=hospital)

    for name, classifier in (("together", together), ("first alone", alone)):
        accuracy = (classifier.predict(data.X_test) == data.y_test).mean()
        print(f"{name}: accuracy {accuracy:.3f}")
    print(together.guarantee_.sentence)

    decision = together.explain(data.X_test[0], n_shapelets=3)
    print(f"class {decision.prediction}, because of:")
    for match in decision.matches:
        print(
            f"  shapelet of own series {match.series} from step {match.start} on, best match at "
            f"step {match.position}, {match.influence:.0%} of the decision"
        )


if __name__ == "__main__":
    main()
