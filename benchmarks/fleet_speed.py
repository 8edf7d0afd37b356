"""Speed of the simulator, each figure with its rival in the same run.

    python benchmarks/fleet_speed.py

1. Sound privunit, 1000 clients, 40 rounds of full participation on UCIHAR, features included:
   at most 10 s on two cores.
2. Published network, 100 clients a round, batches of 8: at least 1.6 times a plain loop over
   clients. Both sides compute the same weights, which is checked.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable

import numpy as np
import torch

from tacit.arena.record import commit, versions
from tacit.data import load_dataset
from tacit.fleet.experiment import FleetTask, run_task
from tacit.fleet.published.networks import (
    TimeSeriesCnn,
    cnn_spec,
    new_network,
    parameters_of,
    train_clients,
    train_one,
)

N_CLIENTS, BATCH, STEPS = 100, 8, 2


def best_of(times: int, work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def check_equal(network: TimeSeriesCnn, x: torch.Tensor, y: torch.Tensor) -> None:
    """Both sides give the same weights; in float64, because ReLU and pooling amplify rounding."""
    exact = copy.deepcopy(network).double()
    start = parameters_of(exact)
    together = train_clients(exact, start, [(x, y)] * STEPS, rate=0.1)
    alone = [train_one(exact, start, [(x[c], y[c])] * STEPS, rate=0.1) for c in range(len(x))]
    for name, value in together.items():
        torch.testing.assert_close(value, torch.stack([one[name] for one in alone]))


def batched_against_loop() -> dict[str, float]:
    network = new_network(cnn_spec(n_channels=9, length=128, n_classes=6, light=True), seed=0)
    start = parameters_of(network)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((N_CLIENTS, BATCH, 9, 128))).float()
    y = torch.from_numpy(rng.integers(0, 6, (N_CLIENTS, BATCH)))
    check_equal(network, x[:10].double(), y[:10])
    batched = best_of(5, lambda: train_clients(network, start, [(x, y)] * STEPS, rate=0.1))
    loop = best_of(
        5,
        lambda: [
            train_one(network, start, [(x[c], y[c])] * STEPS, rate=0.1) for c in range(N_CLIENTS)
        ],
    )
    return {"batched_seconds": batched, "loop_seconds": loop, "ratio": loop / batched}


def sound_run() -> dict[str, float]:
    data = load_dataset("UCIHAR")
    start, processor = time.perf_counter(), time.process_time()
    result = run_task(data, FleetTask(n_clients=1000, n_rounds=40, mechanism="privunit"))
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - processor,
        "accuracy": result["accuracy"],
    }


def main() -> int:
    sound, network = sound_run(), batched_against_loop()
    line = {
        "sound_privunit_1000_clients_40_rounds": sound,
        "published_network_100_clients_batch_8": network,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "commit": commit(),
        "versions": versions(),
    }
    print(json.dumps(line))
    return int(sound["seconds"] > 10.0 or network["ratio"] < 1.6)


if __name__ == "__main__":
    raise SystemExit(main())
