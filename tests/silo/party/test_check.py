"""A dry run finds what would keep the parties from starting, and begins nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from silo_parties import own_series
from tacit.errors import TacitError
from tacit.silo.party.check import check_federation
from tacit.silo.party.folder import Limits, read_folder, rewrite_plan, write_folders
from tacit.silo.party.hello import Refusal
from tacit.silo.party.localhost import local_addresses
from tacit.silo.party.own_data import OwnData
from tacit.silo.plan import Terms
from tacit.system.certificates import self_signed

TERMS = Terms(program="fedst", parties=("a", "b", "c"), protocol="ABY3", params={"n_shapelets": 2})


@pytest.fixture
def configs(tmp_path: Path) -> Iterator[dict[str, Path]]:
    with local_addresses(3) as addresses:
        limits = Limits(join_seconds=60.0)
        yield write_folders(tmp_path / "f", TERMS, addresses=addresses, limits=limits)


def own(rank: int, *, length: int = 12, n_channels: int = 1) -> OwnData:
    X, labels = own_series(rank, length=length)
    return OwnData(X=np.repeat(X, n_channels, axis=1), labels=labels)


def check_all(
    configs: Mapping[str, Path],
    *,
    data: Mapping[str, OwnData | Refusal] | None = None,
    names: str = "abc",
    join_seconds: float | None = None,
) -> dict[str, str]:
    """What each party finds when all check at once: "ready", or all that is wrong."""

    def check(name: str) -> str:
        folder = read_folder(configs[name], accept_any_plan=True)
        if join_seconds is not None:
            folder = replace(folder, limits=replace(folder.limits, join_seconds=join_seconds))
        try:
            found = check_federation(folder, (data or {}).get(name, own("abc".index(name))))
        except TacitError as error:
            return str(error)
        return " ".join(peer.problem for peer in found.values() if peer.problem) or "ready"

    with ThreadPoolExecutor() as pool:
        return dict(zip(names, pool.map(check, names), strict=True))


@pytest.mark.seconds
def test_all_parties_are_ready(configs: dict[str, Path]) -> None:
    out = configs["a"].parent / "out"
    out.mkdir()
    (out / "receipt.json").write_text("of an earlier run")
    assert check_all(configs) == {"a": "ready", "b": "ready", "c": "ready"}
    assert (out / "receipt.json").read_text() == "of an earlier run"


@pytest.mark.seconds
def test_another_plan_is_found(configs: dict[str, Path]) -> None:
    rewrite_plan(configs["b"], replace(TERMS, params={"n_shapelets": 3}))
    said = check_all(configs)
    assert "party 'b' has a different plan" in said["a"]
    assert "params.n_shapelets is 2 here and 3 there" in said["a"]
    assert "'c'" not in said["a"]


@pytest.mark.seconds
def test_a_plan_edited_by_hand_is_found_everywhere(configs: dict[str, Path]) -> None:
    text = configs["b"].read_text()
    configs["b"].write_text(text.replace("n_shapelets = 2", "n_shapelets = 3"))
    said = check_all(configs)
    for name in "ac":
        assert "party 'b' cannot take part: its plan does not have the fingerprint" in said[name]
    assert "--accept" in said["b"]


@pytest.mark.seconds
def test_an_unknown_setting_is_found_everywhere(configs: dict[str, Path]) -> None:
    wrong = replace(TERMS, params={"colour": "red"})
    for config in configs.values():
        rewrite_plan(config, wrong)
    for said in check_all(configs).values():
        assert "unknown setting colour" in said


@pytest.mark.seconds
def test_a_party_that_is_not_there_is_found(configs: dict[str, Path]) -> None:
    said = check_all(configs, names="ab", join_seconds=8.0)
    for name in "ab":
        assert "party 'c' was not reached at 127.0.0.1" in said[name]


@pytest.mark.seconds
def test_a_foreign_certificate_is_found(configs: dict[str, Path]) -> None:
    home = configs["c"].parent
    new = self_signed("c", both_sides=True)
    new.write(key=home / "party.key", certificate=home / "party.crt")
    shutil.copy(home / "party.crt", home / "peers" / "c.crt")
    said = check_all(configs, join_seconds=10.0)
    assert "the certificate presented at the address of party 'c'" in said["a"]
    assert "exchange certificates" in said["c"]


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (own(1, length=13), "party 'b' has series of length 13 with 1 channel(s)"),
        (own(1, n_channels=2), "party 'b' has series of length 12 with 2 channel(s)"),
        (Refusal("row 2 is empty.", public="its own data were rejected"), "party 'b' cannot"),
    ],
    ids=["length", "channels", "rejected"],
)
def test_data_that_do_not_fit_are_found_everywhere(
    configs: dict[str, Path], data: OwnData | Refusal, words: str
) -> None:
    said = check_all(configs, data={"b": data})
    assert words in said["a"]
    assert words in said["c"]
    assert "row 2" not in said["a"]
    assert ("row 2" in said["b"]) or words in said["b"]


@pytest.mark.seconds
def test_too_little_memory_is_found(configs: dict[str, Path]) -> None:
    text = configs["b"].read_text()
    configs["b"].write_text(text.replace("\n[limits]", "\n[limits]\nmemory_gb = 0.01"))
    assert "GB of memory and this party has 0.01 GB" in check_all(configs)["b"]
