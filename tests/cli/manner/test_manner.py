"""One manner of speaking: equal options, closed choices, examples and guides on all commands."""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer

from command import assert_refused, tacit
from command_page import PAGE, page
from tacit.cli.app import _commands
from tacit.cli.manner import about, choices
from tacit.cli.manner.walk import arguments_of, choices_of, kind_of, leaves, options_of

ROOT = Path(__file__).parents[3]
COMMANDS = dict(leaves(_commands()))
each_command = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
Words = tuple[str, ...]


def named(option: str) -> dict[Words, Any]:
    """Every command with this option, and the option."""
    return {
        path: one
        for path, command in COMMANDS.items()
        for one in options_of(command)
        if option in one.opts
    }


OPTIONS = sorted({name for c in COMMANDS.values() for one in options_of(c) for name in one.opts})
# One name for two things, each for a reason.
DIFFERS = {
    "--parties": "names when a federation is set up, their number in a simulation",
    "--format": "of a recording to import, of a device to export to",
}
# Filters that may be repeated: 'arena run' chooses tasks by the values of other commands' options.
FILTERS = {("arena", "run")}


@pytest.mark.parametrize("option", [name for name in OPTIONS if name not in DIFFERS])
def test_an_option_of_one_name_takes_the_same_everywhere(option: str) -> None:
    found = {p: one for p, one in named(option).items() if p not in FILTERS}
    kinds = {p: (kind_of(one), choices_of(one), one.multiple) for p, one in found.items()}
    assert len(set(kinds.values())) <= 1, kinds


def test_every_argument_says_what_it_is() -> None:
    silent = {p: one.name for p, c in COMMANDS.items() for one in arguments_of(c) if not one.help}
    assert not silent


def test_the_exceptions_are_still_needed() -> None:
    for option in DIFFERS:
        assert len({(kind_of(one), choices_of(one)) for one in named(option).values()}) > 1


@pytest.mark.parametrize(
    "option",
    [
        "--json", "--data", "--seed", "--page", "--part", "--mechanism", "--split", "--quality",
        "--classifier", "--log-format", "--mode", "--db", "--resume",
    ],
)  # fmt: skip
def test_what_is_shared_is_explained_in_the_same_words(option: str) -> None:
    told = {one.help for path, one in named(option).items() if path not in FILTERS}
    assert len(told) == (1 if option != "--resume" else 2)


@each_command
def test_pages_are_asked_for_by_page(path: Words) -> None:
    for one in options_of(COMMANDS[path]):
        if "HTML" in (one.help or ""):
            assert one.opts == ["--page"]


@pytest.mark.parametrize("path", about.FORMER)
def test_former_names_still_work_and_are_no_option_any_more(path: str) -> None:
    command = COMMANDS[tuple(path.split())]
    today = {name for one in options_of(command) for name in one.opts}
    for old, new in about.FORMER[path].items():
        assert old not in today
        assert new in today
        words = [*path.split(), old, "x", f"{old}=y", "--", old]
        expected = [*path.split(), new, "x", f"{new}=y", "--", old]
        assert about.with_new_names(words) == expected


def test_a_former_name_reaches_the_command(capsys: Any, tmp_path: Path) -> None:
    for name in ("--out", "--page"):
        refused = tacit(capsys, "attack", "pidp", name, tmp_path)
        assert_refused(refused, "is a folder")


# --- choices

# Text that may be anything: names, columns, addresses, expressions, lists. Everything else that is
# text would be a closed choice that help does not show.
OPEN_TEXT = {
    "--address", "--allow-origin", "--analyser-host", "--analyser-key", "--array", "--as",
    "--axes", "--certificate-name", "--channels", "--class-shares", "--classes", "--code",
    "--curator", "--data", "--device", "--epsilon", "--features", "--group", "--host",
    "--hosts", "--ignore", "--initiator", "--intended-use", "--invitation", "--label",
    "--listen", "--max-gap", "--method", "--metrics", "--missing-code", "--mixed", "--name",
    "--option", "--own", "--parties",
    "--person", "--program", "--reason", "--round", "--series", "--server", "--server-host",
    "--set", "--shuffler-host", "--shuffler-key", "--signing-key", "--store", "--stride",
    "--subject", "--time", "--to", "--window",
}  # fmt: skip


def test_what_is_not_open_is_a_choice() -> None:
    text = {
        one.opts[0] for c in COMMANDS.values() for one in options_of(c) if kind_of(one) == "text"
    }
    assert text == OPEN_TEXT


@each_command
def test_choices_are_shown_and_refused_by_name(
    path: Words, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # else a long list of choices is broken into lines
    shown = re.sub(r"[\s│]+", "", tacit(capsys, *path, "--help").out)
    for one in options_of(COMMANDS[path]):
        if closed := choices_of(one):
            assert f"[{'|'.join(closed)}]" in shown
            refused = tacit(capsys, *path, one.opts[0], "no-such-choice")
            assert_refused(refused, one.opts[0], "'no-such-choice'", *closed)


def of_estimator(name: str, parameter: str) -> set[str]:
    """What the annotation of a constructor's parameter allows."""
    import tacit as package

    return set(get_args(get_type_hints(getattr(package, name).__init__)[parameter]))


def of_table(module: str, name: str) -> set[str]:
    found = getattr(importlib.import_module(module), name)
    return set(get_args(found) or found)


ACCEPTED: dict[str, Callable[[], set[str]]] = {
    "Mode": lambda: of_estimator("DPTimeFLClassifier", "mode"),
    "Network": lambda: of_table("tacit.fleet.published.settings", "Network"),
    "ReleaseKind": lambda: of_table("tacit.local.release", "Kind"),
    "Encoder": lambda: of_table("tacit.local.estimator", "_CHOICES"),
    "Channel": lambda: of_table("tacit.local.releases.channel", "ChannelKind"),
    "Preset": lambda: of_table("tacit.local.softshape.settings", "PRESETS"),
    "DeviceFormat": lambda: of_table("tacit.local.exports.write", "Format"),
    "Quality": lambda: of_table("tacit.silo.fedst.quality", "QUALITIES"),
    "SiloClassifier": lambda: of_table("tacit.silo.fedst.settings", "CLASSIFIERS"),
    "Scope": lambda: of_table("tacit.silo.fedst.settings", "SCOPES"),
    "Distance": lambda: of_table("tacit.silo.fedst.distances", "DISTANCES"),
    "Mechanism": lambda: of_table("tacit.fleet.reports.mechanisms", "REPORTS"),
    "FleetService": lambda: of_table("tacit.fleet.deployment.members.renewal", "TRUSTED_SERVICES"),
    "Split": lambda: of_table("tacit.data.partition", "Split"),
    "Period": lambda: of_table("tacit.local.collector.counts", "Period"),
    "Target": lambda: of_table("tacit.local.prevalence", "Target"),
    "ImportFormat": lambda: {
        *of_table("tacit.data.importers.sources", "FORMATS"),
        *importlib.import_module("tacit.data.importers.archives").recipes(),
    },
}


@pytest.mark.seconds
@pytest.mark.parametrize("name", ACCEPTED)
def test_choices_are_those_of_the_package(name: str) -> None:
    if name in ("Quality", "SiloClassifier", "Scope", "Distance"):
        pytest.importorskip("jax", reason="the silo extra is not installed")
    accepted = ACCEPTED[name]()
    if name == "Encoder":
        from tacit.local.estimator import _CHOICES

        accepted = set(_CHOICES["encoder"])
    assert set(get_args(getattr(choices, name))) == accepted


# --- help

SERVICES = {
    ("studio",), ("serve",), ("silo", "party"), ("fleet", "shuffler"), ("fleet", "analyser"),
    ("fleet", "node"), ("fleet", "server"), ("fleet", "up"),
}  # fmt: skip


def test_every_service_can_log_for_machines() -> None:
    assert set(named("--log-format")) == SERVICES
    serving = {tuple(path.split()) for path, keys in about.KEYS.items() if "goes on" in keys}
    assert serving <= SERVICES


def examples(path: Words) -> list[str]:
    """The calls that a command's help shows."""
    text = inspect.getdoc(COMMANDS[path].callback) or ""
    return re.findall(r"^Example: `(?:\w+=\S+ )?tacit ([^`]+)`", text, re.M)


@each_command
def test_help_shows_a_complete_call_of_this_command(path: Words) -> None:
    found = examples(path)
    assert found, f"'tacit {' '.join(path)}' has no line 'Example: `tacit ...`'"
    for example in found:
        words = shlex.split(example)
        assert tuple(words[: len(path)]) == path
        # Refused here would be: an unknown option, a missing one, a value that is no choice.
        COMMANDS[path].make_context("example", words[len(path) :], resilient_parsing=False)


def test_the_check_of_examples_notices_a_wrong_one() -> None:
    usage_error = typer.BadParameter.__mro__[1]
    for bad in (["--no-such-option", "1"], ["--delta", "1e-6"]):
        with pytest.raises(usage_error):
            COMMANDS["account", "calibrate"].make_context("example", bad)


@each_command
def test_help_names_the_guide_and_the_json_keys(path: Words, capsys: Any) -> None:
    guide = about.guide_of(path)
    assert guide is not None, f"add 'tacit {' '.join(path)}' to GUIDES in tacit.cli.manner.about"
    assert (ROOT / guide).is_file()
    shown = " ".join(tacit(capsys, *path, "--help").out.split())
    assert f"Guide: {guide}" in shown
    assert "JSON: " in shown


@each_command
def test_help_explains_every_argument(
    path: Words, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    hints = get_type_hints(COMMANDS[path].callback, include_extras=True)
    shown = " ".join(tacit(capsys, *path, "--help").out.split())
    for one in arguments_of(COMMANDS[path]):
        (declared,) = get_args(hints[one.name])[1:]
        assert len(declared.help.split()) > 1
        assert declared.help in shown
        assert f"({declared.help.rstrip('.')}" in PAGE.read_text().replace("\\|", "|")


def test_the_table_of_keys_is_complete() -> None:
    assert set(about.KEYS) == {" ".join(path) for path in COMMANDS}


def test_the_page_of_commands_equals_the_code() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), "run python tests/command_page.py"


# --- results


@pytest.mark.parametrize(
    "command",
    [
        "data show ItalyPowerDemand",
        "account shuffle --local-epsilon 1 --n 1000 --delta 1e-6",
        "account calibrate --central-epsilon 1 --n 1000 --delta 1e-6",
        "account compose --round 1.0:1000x9 --delta 1e-6",
        "account group --epsilon 0.3 --size 4",
        "account gaussian --noise-multiplier 12.3 --rounds 100 --delta 1e-5",
        "audit krr --epsilon 0.7 --trials 20000",
        "attack pidp --length 20 --runs 1",
        "attack timefl --clients 8 --rounds 1",
        "ledger init --db spend.db --per-subject-epsilon 4.3",
        "fleet init fleet --data ItalyPowerDemand --nodes 3",
        "silo init federation --parties a,b,c",
        "silo show federation/a/party.toml",
        "silo plan federation/a/party.toml",
    ],
)
def test_results_are_words_and_short_numbers(
    command: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if command.startswith(("silo show", "silo plan")):
        tacit(capsys, "silo", "init", "federation", "--parties", "a,b,c")
    outcome = tacit(capsys, *command.split())
    assert outcome.code == 0, outcome.err
    assert not re.findall(r"\d\.\d{7,}", outcome.out)
    assert not re.findall(r"[{}]|[\"']\w+[\"']:|\b(?:null|true|false|None)\b", outcome.out)


def test_the_calibrated_epsilon_is_rounded_to_the_safe_side(capsys: Any) -> None:
    words = ("account", "calibrate", "--central-epsilon", 1, "--n", 1000, "--delta", 1e-6)
    exact = tacit(capsys, *words, "--json").json["local_epsilon"]
    row = next(line for line in tacit(capsys, *words).out.splitlines() if "local epsilon" in line)
    shown = float(row.strip("│ ").split("│")[1])
    assert exact - 0.001 < shown <= exact
