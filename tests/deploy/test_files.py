"""What the files in deploy/ start exists; ports and folders are those that the package writes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from command import tacit
from deploy_files import (
    DEPLOY,
    HARDENING,
    INSTRUCTIONS,
    ROLES,
    ROOT,
    UNITS,
    Stage,
    compose,
    mounts,
    settings,
    stages,
    unit,
    unit_start,
)  # fmt: skip
from system_packages import needed
from tacit.cli.app import _commands
from tacit.cli.manner.walk import leaves
from tacit.fleet.deployment import light_node

STAGES = stages()
FAMILIES = ("local.yaml", "silo.yaml", "fleet.yaml")
SERVICES = [(file, name) for file in FAMILIES for name in compose(file)["services"]]
each_role = pytest.mark.parametrize("role", ROLES)
each_service = pytest.mark.parametrize(("file", "name"), SERVICES)
LIGHT = ["python", "-m", "tacit.fleet.deployment.light_node"]


def check_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command exists and takes these options; it is not run."""
    if words[:3] == LIGHT:
        monkeypatch.setattr(light_node, "run_light_node", lambda *_, **__: 0)
        monkeypatch.setattr(light_node, "log_to_standard_error", lambda _: None)
        assert light_node.main(words[3:]) == 0, words
        return
    assert words[0] == "tacit"
    commands = {" ".join(path): command for path, command in leaves(_commands())}
    path = next(n for n in (2, 1) if " ".join(words[1 : 1 + n]) in commands)
    command = commands[" ".join(words[1 : 1 + path])]
    with command.make_context("tacit", words[1 + path :]) as context:
        assert context.params["log_format"] == "json"


def test_the_containerfile_has_a_target_for_every_role() -> None:
    for stage in STAGES.values():
        assert {name for name, _ in stage.own} <= INSTRUCTIONS
    assert set(ROLES) <= set(STAGES)
    bases = {stage.base for stage in STAGES.values() if stage.base not in STAGES}
    assert bases == {"python:3.11-slim"}


@each_role
def test_a_role_runs_without_rights_in_its_folder(role: str) -> None:
    stage = STAGES[role]
    user, _, group = stage.last("USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert stage.last("WORKDIR") == "/var/lib/tacit" == stage.environment["HOME"]
    assert stage.environment["NUMBA_CACHE_DIR"].startswith("/tmp/")
    assert "pip" not in " ".join(stage.all("RUN")), "installed in another stage"


@each_role
def test_a_role_installs_its_own_extras_pinned(role: str) -> None:
    (copied,) = [text for name, text in STAGES[role].own if name == "COPY"]
    source = STAGES[copied.split()[0].removeprefix("--from=")]
    assert copied.split()[1:] == ["/opt/tacit", "/opt/tacit"]
    pinned = source.environment["PIP_CONSTRAINT"]
    assert pinned == f"{source.last('WORKDIR')}/constraints.txt"
    installed = source.last("RUN")
    extras = re.findall(r"\[([\w,]+)\]", installed)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        "collector": ["studio,postgres"], "party": ["silo"], "light-node": [],
    }.get(role, ["fleet"])  # fmt: skip
    assert extras == wanted
    assert all(
        name in known["optional-dependencies"] for text in extras for name in text.split(",")
    )
    if role == "light-node":
        pins = (ROOT / "constraints.txt").read_text()
        for name in re.findall(r"pip install ([a-z\- ]+?) && ", installed)[0].split():
            assert re.search(rf"^{name.replace('-', '[-_]')}==", pins, re.M), name


def test_what_the_containerfile_copies_exists_and_reaches_the_engine() -> None:
    sent = (ROOT / ".dockerignore").read_text().split()
    copied = [text for stage in STAGES.values() for name, text in stage.own if name == "COPY"]
    for text in (text for text in copied if not text.startswith("--from=")):
        for place in shlex.split(text)[:-1]:
            assert (ROOT / place).exists(), place
            assert f"!{place}" in sent


@each_role
def test_commands_and_options_exist(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_command(STAGES[role].start, monkeypatch)
    check_command(unit_start(role), monkeypatch)


@each_service
def test_commands_of_compose_exist(file: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = compose(file)["services"][name]
    if "command" in service:
        check_command(["tacit", *service["command"]], monkeypatch)
        own = STAGES[service["build"]["target"]].start
        assert ["tacit", *service["command"]][: len(own)] == own


@each_role
def test_a_unit_starts_what_the_container_starts(role: str) -> None:
    """But for the collector's name and where figures are offered: on the machine itself."""
    words = unit_start(role)
    if "--certificate-name" in words:
        del words[-2:]
    assert [word.replace("127.0.0.1:", "0.0.0.0:") for word in words] == STAGES[role].start
    assert unit(role)["ExecStart"].startswith("/opt/tacit/bin/")


@each_service
def test_services_of_compose_are_hardened(file: str, name: str) -> None:
    service = compose(file)["services"][name]
    assert service["build"]["target"] in ROLES
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    assert service["read_only"] is True
    assert service["init"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"] == "${TACIT_UID:-10001}:${TACIT_GID:-10001}"
    assert any(place.startswith("/tmp:") for place in service["tmpfs"])


def lines_before(file: str, word: str) -> list[str]:
    """The words of a command in a compose file's first comment."""
    text = (DEPLOY / file).read_text(encoding="utf-8")
    (found,) = re.findall(rf"^#   tacit ({word} .+)$", text, re.M)
    return shlex.split(found)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet as the head of fleet.yaml tells to write it."""
    from tacit.cli.app import run

    folder = tmp_path_factory.mktemp("written")
    words = lines_before("fleet.yaml", "fleet init")
    words[2] = str(folder / words[2])
    assert run([*words, "--kernels", "8", "--json"]) == 0
    return folder / "fleet"


def config(fleet: Path, name: str, service: dict[str, Any]) -> dict[str, Any]:
    """The configuration that a service of fleet.yaml starts with."""
    words = STAGES[service["build"]["target"]].start
    file = next(word for word in words if word.endswith(".toml"))
    return tomllib.loads((fleet / mounts(service)["/var/lib/tacit"] / file).read_text())


@pytest.mark.seconds
def test_ports_hosts_and_folders_of_the_fleet_are_those_that_init_writes(fleet: Path) -> None:
    services = compose("fleet.yaml")["services"]
    for name, service in services.items():
        written = config(fleet, name, service)
        ports = [value for key, value in written.items() if key in ("port", "ingest_port")]
        ports += [written["public_port"]] if "public_port" in written else []
        stage = STAGES[service["build"]["target"]]
        offered = [urlsplit(f"//{w}").port for w in stage.start if w.startswith("0.0.0.0:")]
        assert sorted(stage.ports) == sorted([*ports, *offered]), name
        assert urlsplit(stage.health).port in stage.ports
        assert written.get("host", "0.0.0.0") == "0.0.0.0"
        check_ways(services, name, written)


def check_ways(services: dict[str, Any], name: str, written: dict[str, Any]) -> None:
    """Whom a service talks to is on a network with it, at a port that it offers."""
    for key in ("analyser_url", "shuffler_url", "server"):
        if key in written:
            there = urlsplit(written[key] if "//" in written[key] else f"//{written[key]}")
            other = services[there.hostname or ""]
            assert set(other["networks"]) & set(services[name]["networks"]), (name, key)
            assert there.port in STAGES[other["build"]["target"]].ports


def test_nodes_keep_the_persons_ledgers_outside_the_run() -> None:
    for name, service in compose("fleet.yaml")["services"].items():
        if name.startswith("node-"):
            stage = STAGES[service["build"]["target"]]
            assert stage.environment["TACIT_LEDGERS"] in mounts(service)


def test_the_silo_is_the_one_that_init_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = lines_before("silo.yaml", "silo init")
    words[2] = str(tmp_path / "federation")
    assert tacit(capsys, *words).code == 0
    services = compose("silo.yaml")["services"]
    for name, service in services.items():
        folder = tmp_path / "federation" / mounts(service)["/var/lib/tacit"]
        written = tomllib.loads((folder / "party.toml").read_text())
        assert written["name"] == name
        peers = {peer["name"]: peer["address"] for peer in written["peers"]}
        assert peers == {name: f"{name}:{STAGES['party'].ports[0]}" for name in services}


def test_the_collector_listens_where_it_is_asked() -> None:
    stage, service = STAGES["collector"], compose("local.yaml")["services"]["collector"]
    port = stage.start[stage.start.index("--port") + 1]
    assert [int(port)] == stage.ports == [urlsplit(stage.health).port]
    assert service["ports"] == [f"{port}:{port}"]


@each_role
def test_a_unit_writes_to_its_own_folder_as_a_user_of_its_own(role: str) -> None:
    found = unit(role)
    users = (DEPLOY / "systemd" / "sysusers.conf").read_text()
    assert re.search(rf"^u {found['User']} +- ", users, re.M)
    assert found["User"] == found["Group"]
    folders = [f"/var/lib/{name}" for name in found["StateDirectory"].split()]
    assert found["WorkingDirectory"] == folders[0] == f"/var/lib/{found['User']}"
    if len(folders) > 1:
        assert found["Environment"] == f"TACIT_LEDGERS={folders[1]}"


def test_hardening_is_complete_and_no_unit_takes_it_back() -> None:
    """What it amounts to is judged by systemd below, where systemd is."""
    hardening = {key: value for _, key, value in settings(HARDENING)}
    expected = {
        "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes",
        "PrivateTmp": "yes", "PrivateDevices": "yes", "CapabilityBoundingSet": "",
        "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "UMask": "0077",
        "StateDirectoryMode": "0700", "SuccessExitStatus": "143",
    }  # fmt: skip
    assert expected.items() <= hardening.items()
    for role in ROLES:
        assert not (set(hardening) - {"Environment"}) & set(unit(role))


@pytest.fixture(scope="module")
def installed_units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units as they lie in systemd's folder, with a program that exists."""
    folder = tmp_path_factory.mktemp("units") / "system"
    shutil.copytree(DEPLOY / "systemd", folder)
    for path in folder.glob("*.service"):
        path.write_text(re.sub("/opt/tacit/bin/[a-z]+", sys.executable, path.read_text()))
    return folder


@pytest.mark.seconds
def test_systemd_takes_the_units(installed_units: Path) -> None:
    names = [path.name for path in UNITS.values()]
    done = systemd_analyze("verify", "--man=no", *names, folder=installed_units)
    said = (done.stdout + done.stderr).splitlines()
    assert not [line for line in said if "tacit-" in line], "whatever it says of other units"
    broken = installed_units / "tacit-broken.service"
    broken.write_text("[Service]\nExecStart=/nowhere/tacit\nProtectSystem=mostly\n")
    done = systemd_analyze("verify", "--man=no", broken.name, folder=installed_units)
    broken.unlink()
    assert "mostly" in done.stderr, "the check would notice"


@pytest.mark.seconds
def test_systemd_finds_little_exposed(installed_units: Path) -> None:
    """On its scale from 0 to 10; a unit without the drop-in has more than 9."""
    names = [path.name for path in UNITS.values()]
    options = ("--offline=true", "--threshold=20", "--no-pager")
    done = systemd_analyze("security", *options, *names, folder=installed_units)
    levels = re.findall(r"exposure level for (tacit-[\w-]+)\.service: ([\d.]+)", done.stdout)
    assert sorted(name for name, _ in levels) == sorted(f"tacit-{role}" for role in ROLES)
    assert all(float(level) <= 2.0 for _, level in levels), levels
    assert done.returncode == 0


def systemd_analyze(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / word) if word.endswith(".service") else word for word in words]
    return subprocess.run(
        [needed("systemd-analyze"), *paths],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_guides_table_names_the_ports_of_every_role() -> None:
    page = (ROOT / "docs" / "guide" / "deploy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([\d, ]+) \|", page, re.M)
    assert {role: [int(port) for port in ports.split(",")] for role, ports in rows} == {
        role: STAGES[role].ports for role in ROLES
    }


def test_the_reader_of_containerfiles_joins_lines_and_inherits() -> None:
    below = Stage("a", "x", None, [("USER", "1:1"), ("CMD", '["a"]')])
    above = Stage("b", "a", below, [("ENTRYPOINT", '["t"]'), ("CMD", json.dumps(["b", "--c"]))])
    assert above.start == ["t", "b", "--c"]
    assert above.last("USER") == "1:1"
    assert "useradd" in STAGES["python"].last("RUN")
    assert "\\" not in STAGES["python"].last("RUN")
