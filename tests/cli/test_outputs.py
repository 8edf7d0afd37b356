"""Where results go is looked at before the work is done, and names are shown as they are."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from command import assert_refused, tacit
from tacit.cli import app
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger

# They take `load_dataset` when first imported, which must not happen while it is replaced here.
for name in (
    "report.demo",
    "audit.attacks.softshape",
    "audit.attacks.pidp",
    "audit.attacks.timefl",
    "arena.methods",
):
    importlib.import_module(f"tacit.{name}")

Capture = pytest.CaptureFixture[str]
TRAIN = ("train", "softshape", "--data", "ItalyPowerDemand")
FLEET = ("train", "timefl", "--data", "ItalyPowerDemand", "--clients", 40)


@pytest.mark.parametrize(
    "command",
    [
        (*TRAIN, "--page", "{folder}"),
        (*TRAIN, "--page", "{file}/x.html"),
        (*TRAIN, "--out", "{file}"),
        (*FLEET, "--page", "{folder}"),
        (*FLEET, "--checkpoint", "{folder}"),
        ("train", "fedst", "--data", "GunPoint", "--page", "{file}/x.html"),
        ("demo", "--out", "{file}"),
        ("attack", "pidp", "--out", "{file}/x.html"),
        ("arena", "run", "quick", "--out", "{file}"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_at_once(
    command: tuple[object, ...], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_args: object, **_named: object) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr("tacit.data.load_dataset", never)
    file, folder = tmp_path / "releases.json", tmp_path / "folder"
    file.write_text("{}")
    folder.mkdir()
    words = [str(word).format(file=file, folder=folder) for word in command]
    assert_refused(
        tacit(capsys, *words), "folder", "give" if folder.name in words[-1] else "choose"
    )
    assert file.read_text() == "{}"
    assert not list(folder.iterdir())


def test_a_checkpoint_is_never_overwritten_by_a_new_run(capsys: Capture, tmp_path: Path) -> None:
    checkpoint = tmp_path / "run"
    command = (*FLEET, "--rounds", 2, "--checkpoint", checkpoint)
    assert tacit(capsys, *command).code == 0
    before = checkpoint.read_bytes()
    assert_refused(tacit(capsys, *command), "exists", "--resume")
    assert checkpoint.read_bytes() == before
    assert tacit(capsys, *command, "--resume").code == 0


def test_brackets_in_names_are_shown(capsys: Capture, tmp_path: Path) -> None:
    database = tmp_path / "le[x].db"
    cost = DpGuarantee(epsilon=1.0, model="local", unit="series")
    with Ledger.open(database) as ledger:
        ledger.debit(subject="[w]a[/w]", guarantee=cost, purpose="[icu]")
    shown = tacit(capsys, "ledger", "show", "--db", database)
    assert shown.code == 0
    for text in ("[w]a[/w]", "[icu]"):
        assert text in shown.out.replace("\n", "")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left", "page.html")])
def test_interruptions_and_full_disks_are_sentences(
    error: BaseException, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr("tacit.data.load_dataset", fail)
    code = app.run(["data", "show", "GunPoint"])
    told = capsys.readouterr().err.strip()
    if isinstance(error, OSError):
        assert code == 2
        assert told == "tacit: cannot use page.html: No space left; choose another."
    else:
        assert code == 130
        assert told.endswith("tacit: interrupted; nothing after the last checkpoint was kept.")


def test_an_error_that_names_no_place_is_a_defect_and_shows_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("tacit.data.load_dataset", fail)
    with pytest.raises(TimeoutError):
        app.run(["data", "show", "GunPoint"])


@pytest.mark.seconds
def test_a_suite_whose_data_cannot_be_had_is_refused_before_it_runs(
    capsys: Capture, tmp_path: Path
) -> None:
    command = ("arena", "run", "quick", "--out", tmp_path / "q", "--data", "GunPiont")
    assert_refused(tacit(capsys, *command), "GunPiont")
    assert not (tmp_path / "q").exists()
