"""Uploads of vectors: numbers that the model can have released, kept bit by bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_problems import label_head, trained
from tacit.errors import TacitError
from tacit.local.collector.export import export_releases
from tacit.local.collector.storage.store import Store, Stored, Upload, store_uploads
from tacit.local.collector.uploads import UploadReader
from tacit.local.model import LocalModel, new_model
from tacit.local.releases.decoder import ServerNetwork
from tacit.local.releases.vector import VectorHead


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """Two numbers per series, Laplace noise; the sign of the first one decides."""
    server = ServerNetwork(
        np.ones(2), np.array([[1.0, -1.0], [0.0, 0.0]]), np.zeros(2), np.eye(2), np.zeros(2)
    )
    body = label_head(trained("label", 2.0, "krr")).body
    head = VectorHead(body, np.eye(2), None, server, 2.0)
    return new_model(head, np.array(["down", "up"]), n_channels=1, n_timepoints=24)


def body_of(model: LocalModel, values: Any, n: int = 2) -> bytes:
    windows = [f"w{k}" for k in range(n)]
    plain = {"model": model.identity, "kind": "vector", "windows": windows, "values": values}
    return json.dumps(plain).encode()


def test_vectors_are_kept_and_compared_bit_by_bit(model: LocalModel, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "v.db"), model=model)
    reader = UploadReader(model)

    def put(values: Any) -> list[Stored]:
        checked = reader.read(body_of(model, values))
        sent = Upload(
            device=1,
            group="",
            windows=[name.encode() for name in checked.windows],
            symbols=checked.symbols,
            vectors=checked.vectors,
        )
        return store.write(lambda database: store_uploads(database, [sent], day=20_000))

    values = [[0.1, -3.5], [-0.2, 7.0]]
    assert put(values) == [Stored(2, 0)]
    assert put(values) == [Stored(0, 2)]
    assert put([[0.1, -3.5], [-0.2, np.nextafter(7.0, 8.0)]]) == [Stored(0, 0, (1,))]
    counts = store.read("SELECT symbol, n FROM collector_counts ORDER BY symbol")
    assert counts == [(0, 1), (1, 1)], "the classes that the server decides on"
    store.write(
        lambda database: database.query(
            "INSERT INTO collector_devices VALUES (1, 'n', 'k', '', 1, 0)"
        )
    )
    assert export_releases(store, tmp_path / "v.csv") == 2
    lines = (tmp_path / "v.csv").read_text().splitlines()
    assert lines[0] == "day,group,decided,value_0,value_1"
    assert lines[1].endswith(",0.1,-3.5")
    store.close()


@pytest.mark.parametrize(
    "values",
    [
        [[float("nan"), 0.0]] * 2,
        [[float("inf"), 0.0]] * 2,
        [[1e300, 0.0]] * 2,
        [[0.0]] * 2,
        [[0.0, 0.0, 0.0]] * 2,
        [[0.0, 0.0], [0.0]],
        [0.0, 0.0],
        [["a", "b"]] * 2,
        [[0.0, 0.0]],
    ],
    ids=str,
)
def test_numbers_that_no_device_sent(model: LocalModel, values: Any) -> None:
    with pytest.raises(TacitError):
        UploadReader(model).read(body_of(model, values))
