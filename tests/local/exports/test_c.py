"""The C export: the golden features to the bit, the channel's probabilities, no allocation."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from exported import (
    FALSE_ALARM,
    STRICT,
    answers,
    asked,
    compiled,
    exported,
    golden,
    model,
    portable,
    problem,
    worst_p_value,
)
from system_packages import needed
from tacit.errors import TacitError
from tacit.local.release import load_releases

NAMES = ("gunpoint label", "gunpoint place", "channels")
OK, WRONG_SHAPE, NOT_FINITE, TOO_LARGE, CONSTANT, NO_RANDOMNESS = range(6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("c")


@pytest.mark.seconds
@pytest.mark.parametrize("name", NAMES)
def test_features_and_symbols_equal_the_reference_and_numpy(name: str, folder: Path) -> None:
    X = problem(name)[1]
    codes, symbols, features = answers(compiled(name, folder), X, portable(name).body.n_features)
    assert not codes.any()
    assert features.tobytes() == np.stack([one.features for one in golden(name)]).tobytes()
    assert symbols.tolist() == [one.symbol for one in golden(name)]
    assert symbols.tolist() == model(name).head.summarise(X).tolist()
    assert len(set(symbols.tolist())) > 1


@pytest.mark.seconds
@pytest.mark.parametrize("name", NAMES[:2])
def test_the_makefile_builds_the_golden_test_and_it_passes(name: str, folder: Path) -> None:
    place = exported(name, folder, "c")
    needed("cc")
    done = subprocess.run(
        [needed("make"), "-C", str(place), "check"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "4 of 4 golden vectors agree" in done.stdout


@pytest.mark.seconds
def test_the_golden_test_notices_one_changed_weight(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "changed"
    problem("italy 2.0")[0].export_device(place, format="c")
    weights = (place / "tacit_weights.h").read_text()
    line = weights.rindex("[", 0, weights.index("static const tacit_pool"))  # the last kernels
    changed = weights[:line] + weights[line:].replace("0x1.", "0x1.8", 1)
    assert changed != weights
    (place / "tacit_weights.h").write_text(changed)
    done = subprocess.run(
        [needed("make"), "-C", str(place), "check"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert "features differ" in done.stdout


@pytest.mark.seconds
@pytest.mark.parametrize("name", ["italy 2.0", "gunpoint place", "channels"])
def test_symbols_leave_with_the_exact_probabilities_of_the_channel(name: str, folder: Path) -> None:
    """Binomial in every cell, false alarm 1e-6 in all; the twin below notices 10 % more epsilon."""
    thresholds = portable(name).thresholds
    assert worst_p_value(counts_of(name, folder), thresholds) > FALSE_ALARM


@pytest.mark.seconds
def test_a_channel_that_is_ten_percent_weaker_is_noticed(folder: Path) -> None:
    weaker = counts_of("italy 2.2", folder)
    assert worst_p_value(weaker, portable("italy 2.0").thresholds) < FALSE_ALARM


def counts_of(name: str, folder: Path, draws: int = 40_000) -> np.ndarray:  # type: ignore[type-arg]
    size = len(portable(name).thresholds)
    counted = asked(compiled(name, folder), "count", str(draws))
    return np.frombuffer(counted, dtype="<i8").reshape(size, size)


@pytest.mark.seconds
def test_the_example_prints_a_release_that_the_server_reads(folder: Path, tmp_path: Path) -> None:
    place, X = exported("gunpoint place", folder, "c"), problem("gunpoint place")[1]
    subprocess.run(
        [needed("make"), "-C", str(place), "example"], capture_output=True, check=True, timeout=120
    )
    numbers = " ".join(repr(float(value)) for value in X[0].ravel())
    lines = [
        subprocess.run(
            [str(place / "example")], input=numbers, capture_output=True, text=True, check=True,
            timeout=60,
        ).stdout
        for _ in range(2)
    ]  # fmt: skip
    (tmp_path / "releases.jsonl").write_text("".join(lines))
    read = load_releases(tmp_path / "releases.jsonl")
    assert len(model("gunpoint place").labels(read)) == 2
    ids = [json.loads(line)["id"] for line in lines]
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
    (tmp_path / "copied.jsonl").write_text("".join([*lines, lines[0]]))
    with pytest.raises(TacitError, match="line 3 is a copy of"):
        load_releases(tmp_path / "copied.jsonl")
    assert model("gunpoint place").places(read).posterior.shape == (2, 4)
    assert json.loads(lines[0])["guarantee"] == model("gunpoint place").guarantee.to_dict()
    short = subprocess.run(
        [str(place / "example")], input="1 2 3", capture_output=True, text=True, timeout=60
    )
    assert short.returncode == 2
    assert short.stdout == ""
    assert "nothing was released" in short.stderr


@pytest.mark.seconds
def test_bad_series_are_refused_and_use_no_randomness(folder: Path) -> None:
    program, x = compiled("italy 2.0", folder), problem("italy 2.0")[1][0]
    faults = {
        NOT_FINITE: np.where(np.arange(24) == 3, np.nan, x),
        TOO_LARGE: np.where(np.arange(24) == 3, -2e12, x),
        CONSTANT: np.full_like(x, 0.5),
        OK: x,
    }
    infinite = np.where(np.arange(24) == 23, np.inf, x)
    told = asked(program, "release", series=np.stack([*faults.values(), infinite])).decode()
    found = [[int(word) for word in line.split()] for line in told.splitlines()]
    assert [row[0] for row in found] == [*faults, NOT_FINITE]
    assert [row[1:] for row in found if row[0] != OK] == [[-1, 0]] * 4
    assert found[3][2] == 1
    assert asked(program, "short", series=x).decode().split() == [str(WRONG_SHAPE), "-1", "0"]


@pytest.mark.seconds
@pytest.mark.parametrize("source", ["broken", "none"])
def test_without_secure_bytes_nothing_is_released(source: str, folder: Path) -> None:
    program, x = compiled("italy 2.0", folder), problem("italy 2.0")[1][0]
    code, symbol, _ = asked(program, source, series=x).decode().split()
    assert (int(code), int(symbol)) == (NO_RANDOMNESS, -1)
    assert asked(program, f"json-{source}").decode().split() == ["-1", "0"], "no text without an id"


@pytest.mark.seconds
def test_memory_is_fixed_and_small_and_nothing_is_allocated(folder: Path, tmp_path: Path) -> None:
    """The promise is 64 kB beside the weights for GunPoint."""
    place = exported("gunpoint place", folder, "c")
    assert int(asked(compiled("gunpoint place", folder), "memory")) < 64_000
    object_file = tmp_path / "device.o"
    # Without -fno-pie, constants that hold addresses would lie where a loader can fill them in.
    subprocess.run(
        [needed("cc"), *STRICT, "-fno-pie", "-c", str(place / "tacit_device.c"), "-o", object_file],
        check=True, timeout=120,
    )  # fmt: skip
    names = subprocess.run(
        [needed("nm"), str(object_file)], capture_output=True, text=True, check=True
    ).stdout
    outside = {line.split()[-1] for line in names.splitlines() if " U " in line}
    assert outside <= {"snprintf", "sqrtf", "memset", "memcpy", "__stack_chk_fail"}
    # Neither .data nor .bss: the device has no state of its own.
    assert not [line for line in names.splitlines() if line.split()[-2] in "bBdDC"]
