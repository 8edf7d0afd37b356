"""tests/ mirrors src/tacit: whoever knows a module's folder knows where its tests stand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
SRC, TESTS = ROOT / "src" / "tacit", ROOT / "tests"
# Folders that are tested from outside: suites by their names in one list, doors by whole services.
TESTED_ABOVE = {
    "arena/silo": "arena/test_suites.py",
    "arena/softshape": "arena/test_suites.py",
    "fleet/deployment/serving": "fleet/deployment/test_ingest.py",
    "studio/federations": "studio/pages/test_federation.py",
}


def folders_with(root: Path, pattern: str) -> set[str]:
    """Folders below `root` that directly hold a file of this pattern, by relative name."""
    return {path.parent.relative_to(root).as_posix() for path in root.rglob(pattern)} - {"."}


def misplaced(tests: Path, src: Path) -> list[str]:
    """Tests named after a module or folder that stands further down than they do."""
    found = []
    for test in sorted(tests.rglob("test_*.py")):
        name, place = test.stem.removeprefix("test_"), test.parent.relative_to(tests)
        here = src / place
        if (here / f"{name}.py").is_file() or (place.parts and place.name == name):
            continue
        inside = [path for path in here.rglob(f"{name}.py") if path.parent != here]
        inside += [path for path in here.rglob(name) if path.is_dir()]
        if inside and place.parts:
            found.append(f"{place / test.name} tests {inside[0].relative_to(src)}")
    return found


def test_every_folder_of_tests_mirrors_one_of_the_package() -> None:
    """tests/deploy alone mirrors a folder beside src."""
    strangers = {
        name
        for name in folders_with(TESTS, "test_*.py")
        if not (SRC / name / "__init__.py").exists()
    }
    assert strangers == {"deploy"}
    assert (ROOT / "deploy").is_dir()


def test_every_folder_of_the_package_has_tests_at_its_place() -> None:
    missing = folders_with(SRC, "*.py") - folders_with(TESTS, "test_*.py")
    assert missing == set(TESTED_ABOVE)
    assert all((TESTS / place).is_file() for place in TESTED_ABOVE.values())


def test_a_test_stands_where_its_module_stands() -> None:
    assert misplaced(TESTS, SRC) == []


def test_a_test_that_stands_too_high_is_noticed(tmp_path: Path) -> None:
    tests, src = tmp_path / "tests", tmp_path / "src"
    (src / "silo" / "party").mkdir(parents=True)
    (tests / "silo").mkdir(parents=True)
    (src / "silo" / "plan.py").touch()
    (src / "silo" / "party" / "folder.py").touch()
    for name in ("test_plan.py", "test_folder.py", "test_party.py", "test_whole_story.py"):
        (tests / "silo" / name).touch()
    assert misplaced(tests, src) == [
        "silo/test_folder.py tests silo/party/folder.py",
        "silo/test_party.py tests silo/party",
    ]
