"""What an installation can do: a device on NumPy alone, and the core without any extra.

Both are virtual environments that really lack everything else.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from environments import Environment, closure, core_requirements, make_environment
from local_problems import trained
from tacit.cli.app import run

EXTRAS = ("torch", "spu", "jax", "flwr", "fastapi", "uvicorn", "httpx", "altair", "pyarrow", "ray")
DATA = "ItalyPowerDemand"  # comes with aeon

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return make_environment(tmp_path_factory.mktemp("bare") / "venv", ["numpy"])


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return make_environment(tmp_path_factory.mktemp("core") / "venv", closure(core_requirements()))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    trained("label").save(folder)
    return folder


def assert_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2, one line on standard error that holds `words`, nothing else."""
    assert (done.returncode, done.stdout) == (2, ""), done
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("tacit: ")
    for word in words:
        assert word in lines[0], lines[0]


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_bare_environment_holds_numpy_and_nothing_else(bare: Environment) -> None:
    # An installed checkout describes itself beside its source, which is on the path here.
    code = "import importlib.metadata as m; print(*{d.name for d in m.distributions()})"
    assert set(bare.run("-c", code).stdout.split()) - {"tacit-ts"} == {"numpy"}


@pytest.mark.parametrize("kind", ["label", "place", "vector", "shapes"])
def test_a_device_releases_with_numpy_alone(bare: Environment, kind: str, tmp_path: Path) -> None:
    trained(kind).export_device(tmp_path / "device.tacit")
    code = (
        "import json, sys, numpy\n"
        "from tacit.ledger import Ledger\n"
        "from tacit.local.device import Device\n"
        "device = Device.load(sys.argv[1])\n"
        "with Ledger.open(sys.argv[2], per_subject_epsilon=2.0) as ledger:\n"
        "    made = device.release(numpy.sin(numpy.arange(24.0)), ledger=ledger)\n"
        "made.save(sys.argv[3])\n"
        "print(json.dumps([made.kind, ledger.path.name, device.classify(made)]))\n"
    )
    places = [tmp_path / name for name in ("device.tacit", "device.db", "releases.json")]
    made, ledger, labels = answer(bare.run("-c", code, *places))
    assert (made, ledger) == (kind, "device.db")
    assert len(labels) == 1
    assert run(["classify", str(places[0]), "--releases", str(places[2]), "--json"]) == 0


@pytest.mark.parametrize("door", [("-m", "tacit"), ("-c", "import tacit.cli; tacit.cli.main()")])
def test_on_a_device_the_command_line_says_what_to_install(
    bare: Environment, door: tuple[str, str]
) -> None:
    assert_one_sentence(bare.run(*door), "typer", "pip install tacit-ts")
    assert_one_sentence(bare.run(*door, "train", "--help"), "pip install tacit-ts")


def test_the_core_environment_has_no_extra(core: Environment) -> None:
    code = (
        f"import importlib.util as u; print([n for n in {EXTRAS!r} if u.find_spec(n)]); import aeon"
    )
    assert core.run("-c", code).stdout.strip() == "[]"


def test_the_core_trains_releases_and_classifies(core: Environment, tmp_path: Path) -> None:
    out, releases, ledger = (tmp_path / name for name in ("bundle", "releases.json", "ledger.db"))
    trained_there = core.tacit(
        "train", "softshape", "--data", DATA, "--epsilon", 2, "--out", out, "--json"
    )
    found = answer(trained_there)
    assert found["accuracy"] > 0.7  # the ceiling at epsilon 2 is .88
    assert found["guarantee"]["epsilon"] == 2.0
    made = core.tacit(
        "release", out, "--data", DATA, "--out", releases, "--ledger", ledger, "--json"
    )
    assert answer(made)["count"] == 1029
    classified = core.tacit("classify", out, "--releases", releases, "--json")
    assert len(answer(classified)["labels"]) == 1029


def test_the_core_accounts_and_audits(core: Environment) -> None:
    call = ("account", "shuffle", "--local-epsilon", 1, "--n", 10_000, "--delta", 1e-6, "--json")
    assert 0.0 < answer(core.tacit(*call))["central_epsilon"] < 1.0
    found = answer(core.tacit("audit", "krr", "--trials", 20_000, "--json"))
    assert found["verdict"] == "consistent"


def test_the_core_keeps_a_ledger(core: Environment, tmp_path: Path) -> None:
    db = tmp_path / "ledger.db"
    made = core.tacit("ledger", "init", "--db", db, "--per-subject-epsilon", 3, "--json")
    assert made.returncode == 0, made.stderr
    shown = answer(core.tacit("ledger", "show", "--db", db, "--json"))
    assert shown["budgets"]["per_subject_epsilon"] == 3.0
    assert answer(core.tacit("ledger", "verify", "--db", db, "--json"))["intact"] is True


def test_the_core_simulates_a_fleet(core: Environment) -> None:
    call = ("--data", DATA, "--clients", 20, "--epsilon", 8, "--delta", 1e-5, "--rounds", 1)
    found = answer(core.tacit("train", "timefl", *call, "--json"))
    assert found["guarantee"]["epsilon"] <= 8.0


LACKING: dict[str, list[tuple[object, ...]]] = {
    "networks": [
        ("train", "softshape", "--data", DATA, "--mode", "published"),
        ("train", "softshape", "--data", DATA, "--release", "vector"),
        ("train", "softshape", "--data", DATA, "--release", "shapes"),
        ("train", "softshape", "--data", DATA, "--encoder", "softshape"),
        ("train", "timefl", "--data", DATA, "--clients", 9, "--epsilon", 8, "--mode", "published"),
        ("attack", "softshape"),
        ("attack", "timefl"),
        ("audit", "local-vector"),
    ],
    "silo": [
        ("train", "fedst", "--data", DATA),
        ("silo", "init", "s", "--parties", "a,b,c"),
        ("silo", "party", "s/a"),
    ],
    "fleet": [("fleet", "init", "f", "--data", DATA, "--nodes", 3), ("fleet", "up", "f")],
    "studio": [("serve", "BUNDLE")],
    "charts": [
        ("train", "softshape", "--data", DATA, "--page", "p.html"),
        ("train", "timefl", "--data", DATA, "--clients", 9, "--epsilon", 8, "--page", "p.html"),
        ("attack", "pidp", "--out", "p.html"),
        ("demo", "--out", "d"),
    ],
    "import": [("data", "show", "TABLE")],
    "postgres": [("collector", "show", "postgresql://nobody@localhost/none")],
}


# All calls in one process of that environment: importing aeon is most of a call's time.
EACH_CALL = """
import contextlib, io, json, sys
from tacit.cli.app import run

ends = []
for call in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(call)
    ends.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(ends))
"""


def test_the_core_says_which_extra_is_missing(
    core: Environment, bundle: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.parquet"
    table.write_bytes(b"PAR1")
    places: dict[object, Path] = {"BUNDLE": bundle, "TABLE": table}
    places |= {name: tmp_path / str(name) for name in ("p.html", "s", "f", "d")}
    pairs = [(extra, call) for extra, calls in LACKING.items() for call in calls]
    words = [[str(places.get(word, word)) for word in call] for _, call in pairs]
    ends = answer(core.run("-c", EACH_CALL, json.dumps(words)))
    for (extra, call), (code, out, err) in zip(pairs, ends, strict=True):
        done = subprocess.CompletedProcess([*map(str, call)], code, out, err)
        assert_one_sentence(done, f"pip install 'tacit-ts[{extra}]'")
    assert sorted(tmp_path.iterdir()) == [table]


def test_a_whole_process_ends_with_the_sentence_too(core: Environment) -> None:
    call = ("train", "softshape", "--data", DATA, "--mode", "published")
    assert_one_sentence(core.tacit(*call), "'published' needs torch", "'tacit-ts[networks]'")
