"""The files in deploy/ as data: stages of the Containerfile, services of compose, units."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
INSTRUCTIONS = {
    "FROM", "ENV", "RUN", "COPY", "WORKDIR", "USER", "STOPSIGNAL", "ENTRYPOINT", "EXPOSE",
    "HEALTHCHECK", "CMD",
}  # fmt: skip
ROLES = ("collector", "party", "shuffler", "analyser", "server", "node", "light-node")
Line = tuple[str, str]


@dataclass
class Stage:
    """One stage, with what it inherits from the stages below it."""

    name: str
    base: str
    below: Stage | None
    own: list[Line] = field(default_factory=list)

    @property
    def lines(self) -> list[Line]:
        return [*(self.below.lines if self.below else []), *self.own]

    def last(self, instruction: str) -> str:
        return [text for name, text in self.lines if name == instruction][-1]

    def all(self, instruction: str) -> list[str]:
        return [text for name, text in self.lines if name == instruction]

    @property
    def start(self) -> list[str]:
        """What runs: the entry point and its arguments."""
        return [*json.loads(self.last("ENTRYPOINT")), *json.loads(self.last("CMD"))]

    @property
    def ports(self) -> list[int]:
        return [int(port) for port in self.last("EXPOSE").split()]

    @property
    def health(self) -> str:
        """The address that its health check asks."""
        return str(json.loads(self.last("HEALTHCHECK").partition("CMD ")[2])[-1])

    @property
    def environment(self) -> dict[str, str]:
        words = [word for text in self.all("ENV") for word in shlex.split(text)]
        return {name: value for name, _, value in (word.partition("=") for word in words)}


def stages() -> dict[str, Stage]:
    """The Containerfile's stages by name."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    found: dict[str, Stage] = {}
    for line in joined:
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            current = found[name] = Stage(name, base, found.get(base))
        current.own.append((instruction, rest.strip()))
    return found


def compose(name: str) -> dict[str, Any]:
    """A compose file, its anchors resolved."""
    content: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))
    return content


def mounts(service: dict[str, Any]) -> dict[str, str]:
    """Where a service's folders come from, without the variable before them."""
    pairs = [re.sub(r"\$\{[^}]*\}", "", volume).rpartition(":") for volume in service["volumes"]]
    return {inside: outside.strip("/") for outside, _, inside in pairs}


UNITS = {role: DEPLOY / "systemd" / f"tacit-{role}.service" for role in ROLES}
HARDENING = DEPLOY / "systemd" / "tacit-.service.d" / "hardening.conf"


def settings(path: Path) -> list[tuple[str, str, str]]:
    """Section, key and value of every setting of a unit or drop-in."""
    section, found = "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, equals, value = line.partition("=")
            assert equals, f"{path.name}: {line}"
            found.append((section, key, value))
    return found


def unit(role: str) -> dict[str, str]:
    """The [Service] settings of a role's unit."""
    return {key: value for section, key, value in settings(UNITS[role]) if section == "Service"}


def unit_start(role: str) -> list[str]:
    """The words of its ExecStart, with names instead of paths of programs."""
    program, *words = shlex.split(unit(role)["ExecStart"])
    return [Path(program).name, *words]
