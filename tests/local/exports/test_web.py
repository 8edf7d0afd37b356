"""The web export in a real browser: the golden features to the bit, and the channel exactly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from browser import chromium, evaluated, served
from exported import FALSE_ALARM, exported, golden, model, portable, problem, worst_p_value
from system_packages import needed
from tacit.errors import TacitError
from tacit.local.device import Device
from tacit.local.exports.golden import golden_json
from tacit.local.exports.write import export_model
from tacit.local.release import load_releases

NAMES = ("gunpoint label", "gunpoint place", "channels")
LOADED = "const { loadDevice } = await import(given[0]); const device = loadDevice(); "
REFUSED = "try { CALL; return null; } catch (error) { return [error.name, error.message]; }"
DRAWS = 20_000


class Page:
    """A tab of the browser, and where it finds the exports."""

    def __init__(self, driver: object, address: str, folder: Path) -> None:
        self.driver, self.address, self.folder = driver, address, folder

    def module(self, name: str) -> str:
        place = exported(name, self.folder, "web")
        (place / "series.json").write_text(golden_json(portable(name), golden(name)))
        return f"{self.address}/{place.name}/device.mjs"

    def ask(self, name: str, body: str, *more: object) -> object:
        return evaluated(self.driver, LOADED + body, self.module(name), *more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    needed("chromium")
    needed("chromedriver")
    folder = tmp_path_factory.mktemp("web")
    (folder / "index.html").write_text("<!doctype html><title>devices</title>")
    with served(folder) as address, chromium() as driver:
        driver.get(f"{address}/index.html")
        yield Page(driver, address, folder)


@pytest.mark.seconds
@pytest.mark.parametrize("name", NAMES)
def test_features_and_symbols_equal_the_reference_and_numpy(name: str, page: Page) -> None:
    for file in ("golden.json", "series.json"):
        wrong = page.ask(
            name,
            "const told = await fetch(given[1]); return device.check(await told.json());",
            page.module(name).replace("device.mjs", file),
        )
        assert wrong == []
    X = problem(name)[1]
    symbols = page.ask(name, "return given[1].map((x) => device.privateSymbol(x));", X.tolist())
    assert symbols == model(name).head.summarise(X).tolist()


@pytest.mark.seconds
def test_the_golden_check_notices_one_bit_and_another_label(page: Page) -> None:
    plain = json.loads(golden_json(portable("channels"), golden("channels")[:2]))
    plain["vectors"][0]["symbol"] += 1
    letters = plain["vectors"][1]["features"]
    plain["vectors"][1]["features"] = ("B" if letters[0] != "B" else "C") + letters[1:]
    found = page.ask("channels", "return device.check(given[1]);", plain)
    assert isinstance(found, list)
    assert len(found) == 2
    assert "vector 1 is symbol" in found[0]
    assert found[1] == "vector 2 has 1 features that differ."


@pytest.mark.seconds
@pytest.mark.parametrize("name", ["italy 2.0", "gunpoint place", "channels"])
def test_symbols_leave_with_the_exact_probabilities_of_the_channel(name: str, page: Page) -> None:
    """Binomial in every cell, false alarm 1e-6 in all; the twin below notices 10 % more epsilon."""
    assert worst_p_value(counts_of(name, page), portable(name).thresholds) > FALSE_ALARM


@pytest.mark.seconds
def test_a_channel_that_is_ten_percent_weaker_is_noticed(page: Page) -> None:
    weaker = counts_of("italy 2.2", page)
    assert worst_p_value(weaker, portable("italy 2.0").thresholds) < FALSE_ALARM


def counts_of(name: str, page: Page) -> NDArray[np.int64]:
    size = len(portable(name).thresholds)
    body = (
        "return Array.from({ length: given[1] }, (_, own) => { const row = Array(given[1]).fill(0);"
        " for (let i = 0; i < given[2]; i++) row[device.randomize(own)]++; return row; });"
    )
    return np.array(page.ask(name, body, size, DRAWS), dtype=np.int64)


@pytest.mark.seconds
@pytest.mark.parametrize("name", ["gunpoint label", "channels"])
def test_a_release_is_what_the_server_reads(name: str, page: Page, tmp_path: Path) -> None:
    X = problem(name)[1][:5]
    body = "return given[1].map((x) => JSON.stringify(device.release(x)));"
    lines = page.ask(name, body, X.tolist())
    assert isinstance(lines, list)
    assert all(re.fullmatch("[0-9a-f]{32}", json.loads(line)["id"]) for line in lines)
    (tmp_path / "copied.jsonl").write_text("\n".join([*lines, lines[0]]))
    with pytest.raises(TacitError, match="line 6 is a copy of"):
        load_releases(tmp_path / "copied.jsonl")
    (tmp_path / "releases.jsonl").write_text("\n".join(lines))
    read = load_releases(tmp_path / "releases.jsonl")
    labels = model(name).labels(read)
    told = page.ask(name, "return given[1].flatMap((r) => device.classify(JSON.parse(r)));", lines)
    assert isinstance(told, list)
    assert [one["label"] for one in told] == labels
    assert read.guarantee == model(name).guarantee


@pytest.mark.seconds
@pytest.mark.parametrize("fault", ["nan", "inf", "huge", "flat", "short", "channels"])
def test_bad_series_get_the_sentence_of_the_numpy_runtime(fault: str, page: Page) -> None:
    x = problem("italy 2.0")[1][0, 0].copy()
    if fault in ("nan", "inf", "huge"):
        x[3] = {"nan": np.nan, "inf": -np.inf, "huge": -1.5e15}[fault]
    bad = {"flat": np.full(24, 0.5), "short": x[:-1], "channels": np.stack([x, x])}.get(fault, x)
    with pytest.raises(TacitError) as sentence:
        Device(model("italy 2.0")).release(bad[None] if fault == "channels" else bad)
    texts = np.vectorize(str)(bad).tolist()  # JSON knows neither nan nor inf
    number = "(v) => Array.isArray(v) ? v.map(read) : v === 'nan' ? NaN : "
    number += "v === '-inf' ? -Infinity : Number(v)"
    told = page.ask(
        "italy 2.0", f"const read = {number}; const bad = given[1].map(read); let drawn = 0;"
        "const kept = crypto.getRandomValues; "
        "crypto.getRandomValues = (x) => { drawn++; return kept.call(crypto, x); };"
        "try { device.release(bad); return null; } catch (e) { return [e.name, e.message, drawn]; }"
        "finally { delete crypto.getRandomValues; }",
        texts,
    )  # fmt: skip
    assert told == ["TacitError", str(sentence.value), 0]


@pytest.mark.seconds
def test_text_is_refused(page: Page) -> None:
    told = page.ask("italy 2.0", REFUSED.replace("CALL", "device.release(given[1])"), ["a"] * 24)
    assert isinstance(told, list)
    assert told[0] == "TacitError"
    assert "not numbers" in told[1]


@pytest.mark.seconds
def test_a_browser_without_secure_randomness_releases_nothing(page: Page) -> None:
    x = problem("italy 2.0")[1][0, 0].tolist()
    hide = "Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true }); "
    for call in ("device.release(given[1])", "device.randomize(0)", "loadDevice()"):
        body = (
            f"{hide} try {{ {REFUSED.replace('CALL', call)} }} finally {{ delete window.crypto; }}"
        )
        told = page.ask("italy 2.0", body, x)
        assert isinstance(told, list)
        assert told[0] == "TacitError"
        assert "no secure randomness" in told[1]
        page.driver.refresh()  # type: ignore[attr-defined]
    assert page.ask("italy 2.0", "return device.release(given[1]).values.length;", x) == 1


@pytest.mark.seconds
def test_an_altered_channel_or_a_foreign_model_is_not_loaded(page: Page) -> None:
    place = exported("italy 2.0", page.folder, "web")
    text = (place / "device.mjs").read_text()
    first = str(portable("italy 2.0").thresholds[0, 0])
    assert first in text
    altered = text.replace(first, str(int(first) + 2**58), 1)
    (place / "altered.mjs").write_text(altered)
    address = page.module("italy 2.0").replace("device.mjs", "altered.mjs")
    body = REFUSED.replace("CALL", "(await import(given[1])).loadDevice()")
    told = page.ask("italy 2.0", body, address)
    assert told == ["TacitError", "the channel of this model was altered; export it again."]
    foreign = page.ask("italy 2.0", REFUSED.replace("CALL", "loadDevice({ format: 'other' })"))
    assert isinstance(foreign, list)
    assert "not a Tacit model for the web" in foreign[1]


@pytest.mark.parametrize("name", NAMES[:2])
def test_module_and_model_are_below_400_kilobytes(name: str, tmp_path: Path) -> None:
    export_model(model(name), tmp_path / "out", format="web")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"device.mjs", "golden.json"}
    assert (tmp_path / "out" / "device.mjs").stat().st_size < 400_000


def test_the_module_asks_only_the_secure_generator_and_the_network_never() -> None:
    import tacit.local.exports

    place = Path(tacit.local.exports.__file__).parent / "web_runtime" / "device.mjs"
    source = place.read_text()
    assert "Math.random" not in source
    code = "\n".join(line for line in source.splitlines() if not line.startswith("//"))
    for word in ("import ", "import(", "fetch(", "XMLHttp", "eval("):
        assert word not in code
