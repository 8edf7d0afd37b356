"""Mistakes that new users made or are likely to make: each gets one sentence with the next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command import assert_refused, tacit

HEAD = "a,b,c,label\n"
ROWS = "1,2,4,y\n3,1,2,x\n5,6,1,y\n"
# The words of the call, then words that the sentence must hold: what is wrong, and what to do.
MISTAKES = [
    # data
    ("data show GunPiont", "GunPiont", "GunPoint"),
    ("data show no/such/file.csv", "no/such/file.csv", "check the path"),
    ("data show nan.csv", "row 1", "NaN", "missing value", "data import"),
    ("data show gap.csv", "row 1", "empty cell"),
    ("data show nan.tsv", "row 1", "nan", "fill or drop"),
    ("data show words.csv", "words.csv"),
    ("data show empty.csv", "is empty"),
    ("data show image.png", "image.png", ".csv"),
    ("data import nowhere --out new.npz", "nowhere"),
    ("data import nan.csv --out new.npz --format exel", "--format", "'exel'", "parquet"),
    # train
    ("train softshape --data ItalyPowerDemand --epsilon 0", "--epsilon", "above 0"),
    ("train softshape --data ItalyPowerDemand --epsilon three", "--epsilon", "three"),
    ("train softshape --data ItalyPowerDemand --mode publishd", "--mode", "published"),
    ("train softshape --data ItalyPowerDemand --release labels", "--release", "label"),
    ("train softshape --data ItalyPowerDemand --out used", "used", "choose another"),
    ("train softshape --data ItalyPowerDemand --class-shares 1:0.9", "--class-shares", "1=0.9"),
    ("train timefl --data GunPoint --mechanism privunt", "--mechanism", "privunit"),
    ("train timefl --data GunPoint --clients 1", "clients", "1"),
    ("train timefl --data GunPoint --resume", "--checkpoint"),
    ("train timefl --data GunPoint --mode published --out m", "--out", "sound"),
    ("train fedst --data GunPoint --quality g", "--quality", "ig-basic"),
    ("audit nope.tacit", "'nope.tacit'. Known mechanisms"),
    ("fleet node .", "is a folder; name the .toml file"),
    ("train fedst --data GunPoint --page .", "is a folder", "give the name of a file"),
    # releases
    ("release nowhere --data GunPoint --out r.json", "nowhere"),
    ("release nowhere --data GunPoint --out used/model.tacit", "exists", "choose another"),
    ("classify nowhere --releases r.json", "nowhere"),
    ("export nowhere --out x --format wasm", "--format", "web"),
    ("serve nowhere --port 99999", "--port", "99999"),
    ("send r.json --to https://127.0.0.1:1", "r.json"),
    ("collector erase store.db", "--keep-days"),
    ("collector show nowhere.db", "nowhere.db"),
    # federations
    ("silo init f --parties a,b,c --hosts one,two", "--hosts", "2", "3"),
    ("silo init f --parties a,b,c --initiator d", "'d'", "a, b, c"),
    ("silo party nowhere.toml --log-format xml", "--log-format", "json"),
    ("silo classify nowhere --own GunPoint --data GunPiont", "GunPiont"),
    ("fleet init f --data GunPoint --nodes 0", "0"),
    ("fleet classify nowhere --data GunPoint", "nowhere"),
    ("fleet node nowhere.toml --transport http", "--transport", "https"),
    ("fleet status nowhere", "nowhere"),
    # accounts, audits, ledgers, arena
    ("account shuffle --local-epsilon 1 --n 1000 --delta 0.5", "delta", "0.5"),
    ("account shuffle --local-epsilon 1 --n 1000 --delta 1e-6 --randomizer kr", "krr"),
    ("audit nonsense", "nonsense"),
    ("ledger show --db nowhere.db", "nowhere.db"),
    ("ledger verify --ledger nowhere.db", "nowhere.db"),
    ("arena run quik --out x", "quik", "quick"),
    ("arena run quick --out x --engine spark", "--engine", "ray"),
    # words
    ("tarin softshape", "tarin", "train"),
    ("train softshap", "softshap", "softshape"),
    ("train softshape", "--data"),
    ("data show GunPoint --jsn", "--jsn"),
    ("--show-completion tcsh", "tcsh", "zsh"),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TACIT_DATA", raising=False)
    files = {
        "nan.csv": f"{HEAD}1,NaN,2,x\n{ROWS}",
        "gap.csv": f"{HEAD}1,,2,x\n{ROWS}",
        "nan.tsv": "1\t1\tNaN\n2\t2\t3\n",
        "words.csv": "some words\nand more\n",
        "empty.csv": "",
        "image.png": "no series",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    Path("used").mkdir()
    Path("used/model.tacit").write_text("a bundle")


def test_there_are_enough_of_them() -> None:
    assert len(MISTAKES) >= 20


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
def test_a_mistake_gets_one_sentence(mistake: tuple[str, ...], capsys: Any) -> None:
    call, *words = mistake
    before = sorted(Path().rglob("*"))
    assert_refused(tacit(capsys, *call.split()), *words)
    assert sorted(Path().rglob("*")) == before, "a refused call left something behind"
