"""The population page: what a store has counted, quick with many releases, and no device named."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from collector_parts import counting_model
from studio_server import Studio, running_studio
from studio_stores import DAYS, N_DEVICES, filled_store
from tacit.errors import TacitError
from tacit.local.collector.storage.store import Store
from tacit.studio.collecting import budgets_left

pytestmark = [pytest.mark.seconds, pytest.mark.xdist_group("studio")]


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "models" / "italy").mkdir(parents=True)
    counting_model().save(workspace / "models" / "italy" / "model.tacit")
    (workspace / "stores").mkdir()
    filled_store(workspace / "stores" / "hospital.db")
    with running_studio(workspace) as running:
        yield running


@pytest.fixture(scope="module")
def client(studio: Studio) -> Iterator[httpx.Client]:
    with studio.client() as opened:
        yield opened


def test_a_store_of_another_name_finds_its_model(client: httpx.Client) -> None:
    assert "/population/hospital" in client.get("/population").text
    page = client.get("/population/hospital").text
    assert "<b>100,000</b>" in page
    assert "<b>100</b>" in page
    assert len(re.findall(r"<circle", page)) == DAYS
    assert "ward 1" in page
    # About three of ten released symbol 1; k-ary response at epsilon 2 turns that into 0.237.
    (headline,) = re.findall(r"<h1>(.*?)</h1>", page)
    assert re.fullmatch(r"Devices call 7\d to 7\d % of their windows class .+", headline)


def test_data_without_labels_hide_no_model(client: httpx.Client, studio: Studio) -> None:
    """An import without labels lies first in the list, and no job says what made this model."""
    unlabelled = studio.workspace / "data" / "plain.npz"
    np.savez(unlabelled, X=np.zeros((4, 1, 30)))
    try:
        for path in ("/population/hospital", "/collect/hospital/device", "/look/italy"):
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
    finally:
        unlabelled.unlink()


def test_a_device_leads_on_and_refuses_where_its_button_is(client: httpx.Client) -> None:
    page = client.get("/collect/hospital/device").text
    assert '<a href="/population/hospital">' in page
    button = page.index('id="randomise"')
    assert button < page.index('id="refused"') < page.index('id="made"')


def test_what_a_device_has_left(client: httpx.Client) -> None:
    page = client.get("/population/hospital?budget=2500&by=week").text
    assert (
        "The busiest device sent 1000 releases, epsilon 2000 together: 500 of 2500 is left" in page
    )
    assert "0 devices have less than one release left" in page
    assert "100 devices have less" in client.get("/population/hospital?budget=2001").text
    unsaid = client.get("/population/hospital").text
    assert "epsilon 2000 together. Say what a device may spend" in unsaid
    assert "is left to it" not in unsaid
    for query, word in (("budget=0", "above 0"), ("by=hour", "by must be one of")):
        answer = client.get(f"/population/hospital?{query}")
        assert answer.status_code == 422
        assert word in answer.json()["error"]


def test_no_device_is_named(client: httpx.Client, studio: Studio) -> None:
    store = Store.open(str(studio.workspace / "stores" / "hospital.db"))
    names = [name for (name,) in store.read("SELECT name FROM collector_devices")]
    store.close()
    page = client.get("/population/hospital").text
    assert len(names) == N_DEVICES
    assert not [name for name in names if name in page]


def test_a_store_without_its_model_says_so(studio: Studio, client: httpx.Client) -> None:
    orphan = studio.workspace / "stores" / "orphan.db"
    store = Store.open(str(orphan), model=counting_model())
    store.write(
        lambda database: database.query("UPDATE collector_meta SET value='x' WHERE name='model'")
    )
    store.close()
    assert "copy its bundle" in client.get("/population/orphan").json()["error"]
    assert client.get("/population/nothing").status_code == 422
    assert not (studio.workspace / "stores" / "nothing.db").exists()


def test_budgets_left() -> None:
    windows = [(1, 5), (3, 2)]
    assert budgets_left(windows, epsilon=2.0, budget=7.0) == {"most": 3, "left": 1.0, "through": 2}
    assert budgets_left([], epsilon=2.0, budget=1.0) == {"most": 0, "left": 1.0, "through": 0}
    with pytest.raises(TacitError, match="above 0"):
        budgets_left(windows, epsilon=2.0, budget=float("nan"))
