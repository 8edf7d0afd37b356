"""Who may command the SuperLink: the fleet's own server and the processes that it starts.

Flower serves three interfaces on one port. The Fleet API, for the nodes, asks for a registered
key. The Control API, which starts any run and registers any node, and the Runtime API, which hands
a task with its token to whoever asks first, ask for nothing. `AccessControl` is put in front of
them: what is not the Fleet API needs a secret that is made anew at every start of the server and
that only the environment of its own processes holds.
"""

from __future__ import annotations

import hmac
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from tacit.errors import TacitError

SECRET_VARIABLE = "TACIT_FLEET_SECRET"
REFUSED = "this interface belongs to the fleet's own server; nodes use /v1/fleet."
_HEADER = "x-tacit-fleet-secret"
_OPEN = "/v1/fleet/"
_UNREGISTERED = "unregistered"  # Flower keeps such nodes in its list


class AccessControl:
    """Lets the nodes' interface through, and everything else only with the server's secret."""

    def __init__(self, app: ASGIApp, *, secret: str) -> None:
        self._app = app
        self._secret = secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: pass it on, or refuse it."""
        if scope["type"] == "lifespan" or self._admits(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
        else:
            await JSONResponse({"refused": REFUSED}, status_code=403)(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        if scope["type"] == "http" and scope["path"].startswith(_OPEN):
            return True
        shown = [value for name, value in scope["headers"] if name == _HEADER.encode()]
        return len(shown) == 1 and hmac.compare_digest(shown[0], self._secret)


def superlink() -> None:
    """Flower's SuperLink under access control; it ends with the server that started it."""
    access_control = Middleware(AccessControl, secret=_secret())
    from flwr.supercore.app_utils import start_parent_process_monitor
    from flwr.superlink import extensions
    from flwr.superlink.cli import flower_superlink

    others = extensions.get_middleware
    extensions.get_middleware = lambda: (access_control, *others())
    start_parent_process_monitor(os.getppid())
    sys.argv[0] = "flower-superlink"  # by which Flower knows the process when it ends
    flower_superlink()


def superexec() -> None:
    """Flower's SuperExec on the server, which fetches tasks from the SuperLink with the secret."""
    show_secret()
    from flwr.supercore.cli import flower_superexec

    sys.argv[0] = "flower-superexec"
    flower_superexec()


def flwr() -> None:
    """Flower's own command, with the secret."""
    show_secret()
    from flwr.cli.app import app

    sys.argv[0] = "flwr"
    app()


def keep_nodes() -> None:
    """Let Flower know the nodes whose keys lie in a folder, and no others.

    The command line names the connection and the folder. One process for all of them: starting
    Flower takes a second, registering a few milliseconds.
    """
    show_secret()
    from flwr.cli.flower_config import read_superlink_connection
    from flwr.cli.supernode.register import try_load_public_key
    from flwr.cli.utils import init_http_client_from_connection

    connection, folder = sys.argv[1:]
    wanted = {path: try_load_public_key(path) for path in sorted(Path(folder).glob("*.pub"))}
    client = init_http_client_from_connection(read_superlink_connection(connection))
    try:
        changed = change_nodes(client, wanted)
    finally:
        client.close()
    sys.stdout.write(json.dumps({"success": True, **changed}))


def change_nodes(client: Any, wanted: Mapping[Path, bytes]) -> dict[str, int]:
    """Register what is missing and unregister what is too many; returns how many of each."""
    from flwr.proto import control_pb2

    present = {
        bytes(node.public_key): node.node_id
        for node in client.ListNodes(request=control_pb2.ListNodesRequest()).nodes_info
        if node.status != _UNREGISTERED
    }
    new = {path: key for path, key in wanted.items() if key not in present}
    old = [node for key, node in present.items() if key not in wanted.values()]
    for node in old:
        client.UnregisterNode(request=control_pb2.UnregisterNodeRequest(node_id=node))
    for path, key in new.items():
        try:
            client.RegisterNode(request=control_pb2.RegisterNodeRequest(public_key=key))
        except Exception as error:
            raise TacitError(
                f"Flower did not register {path} ({error}); one that was unregistered before needs "
                "a new identity."
            ) from error
    return {"registered": len(new), "unregistered": len(old)}


def show_secret() -> None:
    """From now on every Flower client in this process shows the secret to its SuperLink."""
    secret = _secret()
    from flwr.supercore.protobuf.client import ProtobufClient

    begin = ProtobufClient.__init__

    def begin_with_secret(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        self._client.headers[_HEADER] = secret

    ProtobufClient.__init__ = begin_with_secret


def _secret() -> str:
    secret = os.environ.get(SECRET_VARIABLE, "")
    if not secret:
        raise TacitError(f"{SECRET_VARIABLE} is not set; start this with 'tacit fleet server'.")
    return secret
