"""What an installation lacks is said in one sentence, with the line to type."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.system.extras import CORE, EXTRAS, MissingExtra, missing, needs

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_what_is_installed_is_not_asked_for() -> None:
    needs("networks", "json", "numpy", what="this")


def test_what_is_missing_names_the_line_to_type() -> None:
    with pytest.raises(
        MissingExtra, match=r"^a page needs no_such_module, .*'tacit-ts\[charts\]'$"
    ):
        needs("charts", "numpy", "no_such_module", what="a page")
    assert issubclass(MissingExtra, TacitError)
    assert issubclass(MissingExtra, ImportError)


def test_a_module_that_is_blocked_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pyarrow"):
        needs("import", "pyarrow", what="reading .parquet")


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("torch.nn", "pip install 'tacit-ts[networks]'"),
        ("flwr", "pip install 'tacit-ts[fleet]'"),
        ("typer", "pip install tacit-ts"),
    ],
)
def test_a_failed_import_becomes_the_sentence(module: str, line: str) -> None:
    sentence = str(missing(ModuleNotFoundError("no", name=module)))
    assert sentence.startswith(f"this command needs {module.split('.')[0]}, ")
    assert sentence.endswith(line)


@pytest.mark.parametrize("name", ["tacit.no_such_module", "no_such_module", None])
def test_a_defect_is_no_missing_extra(name: str | None) -> None:
    assert missing(ModuleNotFoundError("no", name=name)) is None


def test_the_engine_names_its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 13))
    with pytest.raises(MissingExtra, match=r"Python 3.11 only.*'tacit-ts\[silo\]'$"):
        needs("silo", "no_such_module", what="FedSTClassifier")


def test_the_extras_are_those_of_the_project() -> None:
    declared = set(PROJECT["optional-dependencies"])
    assert set(EXTRAS) == declared - {"all", "dev", "docs"}  # no command needs the last two
    everything = PROJECT["optional-dependencies"]["all"][0]
    assert set(everything.split("[")[1].rstrip("]").split(",")) == set(EXTRAS)
    assert len(CORE) == len(PROJECT["dependencies"])
