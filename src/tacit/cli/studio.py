"""`tacit studio`: the same work in a browser, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.common import JsonFlag, LogFormatOption, emit
from tacit.system.extras import needs
from tacit.system.logs import log_to_standard_error
from tacit.system.posix import needs_posix


def studio(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8737,
    workspace: Annotated[
        Path, typer.Option("--workspace", help="Folder for data, models, jobs and ledgers.")
    ] = Path("tacit-workspace"),
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open nothing.")
    ] = False,
    log_format: LogFormatOption = "text",
    as_json: JsonFlag = False,
) -> None:
    """Open the studio: import, plan, train, look, attack and budgets as pages.

    It listens on this machine alone, and its address holds a token. Ctrl-C stops it, not its jobs.

    Example: `tacit studio --workspace my-project`
    """
    needs_posix("'tacit studio'")
    needs("studio", "fastapi", "uvicorn", what="'tacit studio'")
    needs("charts", "altair", "vl_convert", what="'tacit studio'")
    from tacit.local.collector.server import bound_socket
    from tacit.studio.access import entrance, new_token
    from tacit.studio.app import create_app, serve
    from tacit.studio.workspace import open_workspace

    log_to_standard_error(log_format)
    opened = open_workspace(workspace.expanduser())
    host, token = "127.0.0.1", new_token()
    listening = bound_socket(host, port)
    taken = listening.getsockname()[1]
    url = f"http://{host}:{taken}/?token={token}"
    app = create_app(opened, token=token, host=host, port=taken)
    emit(
        {"url": url, "workspace": opened.root},
        as_json=as_json,
        render=lambda: typer.echo(f"Studio on {opened.root}\n{url}"),
    )
    with entrance(opened, url) as page:
        if not (no_browser or as_json):
            typer.launch(page.as_uri())
        serve(app, listening)
