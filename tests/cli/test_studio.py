"""`tacit studio` opens a browser without showing its token to the machine's other accounts."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tacit.cli.app import app

pytest.importorskip("fastapi")
pytest.importorskip("vl_convert")


def test_the_token_is_in_a_private_file_not_in_an_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    during: list[tuple[str, int]] = []
    page = tmp_path / "work" / "open-studio.html"

    def serve(_: Any, listening: socket.socket) -> None:
        listening.close()
        during.append((page.read_text(), page.stat().st_mode & 0o777))

    monkeypatch.setattr("typer.launch", opened.append)
    monkeypatch.setattr("tacit.studio.app.serve", serve)
    done = CliRunner().invoke(app, ["studio", "--port", "0", "--workspace", str(tmp_path / "work")])
    assert done.exit_code == 0, done.output
    url = done.stdout.split()[-1]
    token = url.partition("token=")[2]
    assert opened == [page.as_uri()]
    assert token not in opened[0]
    ((text, mode),) = during
    assert url in text
    assert mode == 0o600
    assert not page.exists()
