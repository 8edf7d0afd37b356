"""A researcher: account for a mechanism, try to refute its claim, and attack a published one.

python examples/researcher.py
"""

from tacit.accounting import calibrate_shuffle, compose_shuffled
from tacit.audit import audit, build
from tacit.audit.attacks.pidp import attack_pidp


def main() -> None:
    """From an epsilon on paper to what runs of the code say about it."""
    # Account: which local epsilon keeps ten rounds of 1000 reports within (1, 1e-6)?
    local = calibrate_shuffle(central_epsilon=1.0, n=1000, delta=1e-6, rounds=10)
    central = compose_shuffled([(local, 1000)] * 10, delta=1e-6)
    print(f"local epsilon {local:.3f} per report gives {central:.4f} over ten rounds")

    # Audit: a sound mechanism is consistent with its claim, a wrong claim is refuted.
    honest = audit(build("krr", epsilon=1.0), trials=100_000)
    print(f"krr at 1: at least {honest.lower_bound:.3f}, {honest.verdict}")
    wrong = audit(build("krr", epsilon=2.0, claim=1.0), trials=100_000)
    print(f"krr at 2 that claims 1: at least {wrong.lower_bound:.3f}, {wrong.verdict}")

    # Attack: FedST's dot-product protocol gives the initiator's shapelet away.
    broken = attack_pidp(data="GunPoint", length=20, runs=1)
    print(f"Pi_DP: shapelet recovered exactly: {broken.succeeded}, in {broken.seconds:.1f} s")
    print(f"the same solver on replicated shares: {broken.sound.rate:.0%} recovered")


if __name__ == "__main__":
    main()
