"""Real virtual environments that hold chosen distributions of this one and nothing else."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the package's source and some distributions."""

    python: Path
    site: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run its interpreter, isolated from this process's paths and settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [str(self.python), "-I", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=240,
            env=kept,
            cwd=self.site,  # not a folder from which anything could be imported by accident
            check=False,
        )

    def compile(self, module: str) -> None:
        """Import it once: compiling takes memory that a measured process shall not show."""
        done = self.run("-c", f"import {module}")
        assert done.returncode == 0, done.stderr

    def tacit(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run `tacit ARGUMENTS` there."""
        return self.run("-m", "tacit", *arguments)


def make_environment(folder: Path, distributions: Iterable[str]) -> Environment:
    """Make one in `folder`; distributions are linked, so it takes a second and no network."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    for name in distributions:
        for entry in top_entries(name):
            link = site / entry.name
            if not link.exists():
                link.symlink_to(entry)
    (site / "tacit.pth").write_text(f"{ROOT / 'src'}\n")
    return Environment(folder / "bin" / "python", site)


def top_entries(name: str) -> set[Path]:
    """The files and folders that a distribution put into site-packages."""
    found = metadata.distribution(name)
    inside = [file for file in found.files or [] if ".." not in file.parts]
    assert inside, f"{name} does not list its files"
    names = {file.parts[0] for file in inside if file.parts[0] != "__pycache__"}
    return {Path(str(found.locate_file(top))).resolve() for top in names}


def core_requirements() -> list[str]:
    """What pyproject.toml asks for without extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [str(line) for line in project["dependencies"]]


def closure(requirements: Iterable[str]) -> set[str]:
    """The distributions that satisfy these requirements, and those that they need in turn."""
    done: set[tuple[str, str]] = set()
    waiting = [(Requirement(line), "") for line in requirements]
    while waiting:
        wanted, extra = waiting.pop()
        if wanted.marker and not wanted.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(wanted.name)
        for inner in ("", *wanted.extras):
            if (name, inner) not in done:
                done.add((name, inner))
                lines = metadata.distribution(name).requires or []
                waiting += [(Requirement(line), inner) for line in lines]
    return {name for name, _ in done}


def weight(distributions: Iterable[str]) -> int:
    """Bytes that distributions take on disk."""
    files = [file for name in distributions for file in metadata.distribution(name).files or []]
    paths = {Path(str(file.locate())).resolve() for file in files}
    return sum(path.stat().st_size for path in paths if path.is_file())


if __name__ == "__main__":
    core = closure(core_requirements())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    every = [line for name, lines in extras.items() if name not in ("all", "dev") for line in lines]
    whole = core | closure(every)
    for title, names in (("core", core), ("everything", whole)):
        sys.stdout.write(f"{title}: {len(names)} packages, {weight(names) / 1e6:.0f} MB\n")
