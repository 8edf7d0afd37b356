"""Flower's task processes, cut down to the fleet's own application.

Flower starts a command from the search path for every task, and what a task runs is what the other
side sent. `tacit fleet node` and `tacit fleet server` therefore put a folder of commands of the
same names first on that path. A node's `flwr-clientapp` and the server's `flwr-serverapp` compare
the received bundle with the one built from the installed package and go on as Flower would; the
commands for all other kinds of task refuse.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.fleet.deployment.flower.bundle import check_bundle, write_app
from tacit.system.files import write_atomic

# -P: the working directory is not a place to import code from.
_RUN = "#!/bin/sh\nexec '{python}' -P -c '{code}' \"$@\"\n"
_REFUSE = (
    "#!/bin/sh\n"
    "echo 'tacit: refused a task for {command}; a fleet runs its own application only.' >&2\n"
    "exit 1\n"
)


def own_bundle() -> bytes:
    """The bundle as this installation would build it."""
    from flwr.cli.build import build_fab_from_disk

    with tempfile.TemporaryDirectory() as folder:
        write_app(Path(folder))
        built: bytes = build_fab_from_disk(Path(folder))
        return built


def clientapp() -> None:
    """Flower's ClientApp process; it compares the bundle and runs the installed application.

    Nothing of the bundle is written or imported, because its place on disk would be chosen by
    names that the server sends along.
    """
    import flwr.supernode.runtime.run_clientapp as runtime
    from flwr.supernode.cli import flwr_clientapp

    def load(**_: Any) -> Callable[..., Any]:
        from tacit.fleet.deployment.flower.app import client_app

        return lambda *_: client_app

    _replace(runtime, "install_from_fab", _check)
    _replace(runtime, "get_load_client_app_fn", load)
    sys.argv[0] = "flwr-clientapp"  # by which Flower knows the process when it ends
    flwr_clientapp()


def serverapp() -> None:
    """Flower's ServerApp process with the check in front of the installation."""
    import flwr.superlink.runtime.run_serverapp  # noqa: F401  (its package hides it)
    from flwr.superlink.cli import flwr_serverapp

    from tacit.fleet.deployment.flower.access import show_secret

    runtime = sys.modules["flwr.superlink.runtime.run_serverapp"]
    install = runtime.install_from_fab

    def checked(fab_file: bytes, *args: Any, **kwargs: Any) -> Path:
        _check(fab_file)
        installed: Path = install(fab_file, *args, **kwargs)
        return installed

    _replace(runtime, "install_from_fab", checked)
    show_secret()
    sys.argv[0] = "flwr-serverapp"
    flwr_serverapp()


def _check(fab_file: bytes, *_: Any, **__: Any) -> None:
    check_bundle(fab_file, own_bundle())
    sys.stderr.write("tacit: the server's application is the installed one\n")


def _replace(module: Any, name: str, function: Callable[..., Any]) -> None:
    # Fails, and so runs nothing, if another version of Flower has no such step to replace.
    getattr(module, name)
    setattr(module, name, function)


def write_node_commands(folder: Path) -> None:
    """Write what a node's SuperNode may start, to be put first on its search path."""
    _write_commands(folder, {"flwr-clientapp": clientapp})


def write_server_commands(folder: Path) -> None:
    """Write what the server's SuperLink may start, to be put first on its search path."""
    from tacit.fleet.deployment.flower.access import superexec

    _write_commands(folder, {"flwr-serverapp": serverapp, "flower-superexec": superexec})


def code_that_runs(function: Callable[[], None]) -> str:
    """A line of Python for a fresh process; taken from the function, so that it cannot be stale."""
    return f"from {function.__module__} import {function.__name__}; {function.__name__}()"


def _write_commands(folder: Path, commands: dict[str, Callable[[], None]]) -> None:
    """The given commands, and a refusal for every other one that Flower has for a task."""
    from flwr.supercore.constant import TASK_TYPE_TO_COMMAND

    for command in {*TASK_TYPE_TO_COMMAND.values(), *commands}:
        text = _REFUSE.format(command=command)
        if command in commands:
            text = _RUN.format(python=sys.executable, code=code_that_runs(commands[command]))
        write_atomic(folder / command, text.encode(), mode=0o755)
