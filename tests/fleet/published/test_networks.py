"""The paper's networks, and many clients trained at once like one after the other."""

from __future__ import annotations

import pytest
import torch

from tacit.errors import TacitError
from tacit.fleet.published.networks import (
    cnn_spec,
    new_network,
    parameters_of,
    predict_scores,
    train_clients,
    train_one,
)


def test_the_lineages_network_has_its_number_of_parameters() -> None:
    network = new_network(cnn_spec(n_channels=9, length=128, n_classes=6), seed=0)
    assert sum(value.numel() for value in network.parameters()) == 200_902


@pytest.mark.parametrize("light", [True, False])
@pytest.mark.parametrize(
    ("n_channels", "length", "n_classes"),
    [(9, 128, 6), (3, 128, 6), (1, 3000, 5), (1, 5120, 3), (1, 8, 2)],
)
def test_every_shape_of_the_paper_runs(
    n_channels: int, length: int, n_classes: int, light: bool
) -> None:
    spec = cnn_spec(n_channels=n_channels, length=length, n_classes=n_classes, light=light)
    network = new_network(spec, seed=0)
    scores = predict_scores(network, parameters_of(network), torch.zeros(2, n_channels, length))
    assert scores.shape == (2, n_classes)
    assert torch.isfinite(scores).all()


def test_many_clients_at_once_equal_one_after_the_other() -> None:
    generator = torch.Generator().manual_seed(0)
    network = new_network(cnn_spec(n_channels=2, length=32, n_classes=3, light=True), seed=1)
    start = parameters_of(network)
    x = torch.randn(4, 5, 2, 32, generator=generator)
    y = torch.randint(0, 3, (4, 5), generator=generator)
    y[3, 3:] = -1  # the last client holds only three series
    together = train_clients(network, start, [(x, y), (x, y)], rate=0.1)
    for c in range(4):
        kept = y[c] >= 0
        alone = train_one(network, start, [(x[c][kept], y[c][kept])] * 2, rate=0.1)
        for name, value in alone.items():
            torch.testing.assert_close(together[name][c], value, atol=1e-5, rtol=1e-4)


def test_initial_weights_follow_the_seed_and_leave_the_global_generator_alone() -> None:
    spec = cnn_spec(n_channels=1, length=16, n_classes=2, light=True)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, second = new_network(spec, seed=3), new_network(spec, seed=3)
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(first.classifier.weight, second.classifier.weight)
    assert not torch.equal(first.classifier.weight, new_network(spec, seed=4).classifier.weight)


def test_impossible_shapes_are_refused() -> None:
    with pytest.raises(TacitError, match="length"):
        cnn_spec(n_channels=1, length=7, n_classes=2)
    with pytest.raises(TacitError, match="n_classes"):
        cnn_spec(n_channels=1, length=70, n_classes=1)
    with pytest.raises(TacitError, match="batch"):
        train_clients(torch.nn.Identity(), {}, [], rate=0.1)
