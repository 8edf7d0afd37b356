"""The Flower application: the server drives rounds, the nodes answer with acknowledgements.

Flower is transport here, not the privacy layer. Down goes the model, which is the protected
output; up comes whether a node's report was taken, never an update. Reports go from the node to
the shuffler. The round itself ends at the analyser, so the server waits for the analyser and not
for Flower's replies: a dead node holds nothing up.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from tacit.fleet.deployment.config import (
    NodeConfig,
    RunDescription,
    ServerConfig,
    read_config,
    read_run,
)
from tacit.system.certificates import trust_only

_LOG = logging.getLogger("tacit.fleet")
_POLL_SECONDS = 0.3
_LOOK_SECONDS = 2.0  # between two looks at the shuffler
_START_SECONDS = 30.0  # nodes that start with the server get this long to appear
_MARGIN_SECONDS = 5.0  # what a round may take beyond the shuffler's deadline before asking again

server_app = ServerApp()
client_app = ClientApp()


@server_app.main()  # type: ignore[untyped-decorator]
def drive_rounds(grid: Grid, context: Context) -> None:
    """Drive rounds until the analyser says that the run is finished."""
    config = read_config(Path(str(context.run_config["server-config"])), ServerConfig)
    fleet = read_run(config.plan)
    analyser, shuffler = AnalyserClient(config), ShufflerWatch(config)
    # Some on the list may be light nodes, whom Flower never sees; later, who was there is known.
    expected = len(list(config.node_keys.glob("*.pub")))
    while not (status := analyser.status())["finished"]:
        round_number, model = analyser.model()
        nodes = _wait_for_nodes(grid, expected=expected, patience_seconds=_START_SECONDS)
        expected = len(nodes)
        _LOG.info("round %d of %d: asking %d nodes", round_number, status["rounds"], len(nodes))
        asked = grid.push_messages(
            [_question(node, fleet=fleet, round_number=round_number, model=model) for node in nodes]
        )
        _wait_for_round(grid, analyser, shuffler, fleet, round_number, asked)


@client_app.train()  # type: ignore[untyped-decorator]
def answer(message: Message, context: Context) -> Message:
    """Take part in one round and acknowledge it."""
    from tacit.fleet.deployment.node import NO_REPORT, Acknowledgement, take_part

    try:
        config = read_config(Path(str(context.node_config["tacit-config"])), NodeConfig)
        question = message.content["round"]
        acknowledgement = take_part(
            config,
            run=str(question["run"]),
            round_number=int(question["round"]),
            model=bytes(question["model"]),
        )
    except Exception:  # Flower would send its text to the server, and it may quote the data
        _LOG.exception("no report")
        acknowledgement = Acknowledgement(accepted=False, reason=NO_REPORT)
    content = ConfigRecord({"accepted": acknowledgement.accepted, "reason": acknowledgement.reason})
    return Message(content=RecordDict({"acknowledgement": content}), reply_to=message)


class AnalyserClient:
    """The server's view of the analyser: its status, and the model to broadcast."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._connect()

    def _connect(self) -> None:
        self._http = httpx.Client(
            base_url=self._config.analyser_url,
            verify=trust_only(self._config.analyser_certificate),
            timeout=20.0,
            trust_env=False,
        )

    def status(self) -> dict[str, Any]:
        """Where the run stands; waits while the analyser restarts."""
        answer: dict[str, Any] = self._get("/v1/status").json()
        return answer

    def model(self) -> tuple[int, bytes]:
        """The round that the model is for, and the model."""
        response = self._get("/v1/model")
        return int(response.headers["x-tacit-round"]), response.content

    def _get(self, path: str) -> httpx.Response:
        while True:
            try:
                return self._http.get(path).raise_for_status()
            except httpx.TransportError as error:
                _LOG.warning("the analyser does not answer yet (%s)", type(error).__name__)
                time.sleep(_POLL_SECONDS)
                self._http.close()
                self._connect()  # its certificate may have been renewed


class ShufflerWatch:
    """Notices that the shuffler was restarted, and so has forgotten the round's reports."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._instance: str | None = None
        self._look_at = 0.0

    def restarted(self) -> bool:
        """Whether another process answers than the last time; asks every few seconds."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + _LOOK_SECONDS
        try:
            found = self._ask()
        except (httpx.HTTPError, ValueError, KeyError):
            return False  # it is away; what it will have forgotten shows when it is back
        before, self._instance = self._instance, found
        return before not in (None, found)

    def _ask(self) -> str:
        tls = trust_only(self._config.shuffler_certificate)
        url = f"{self._config.shuffler_url}/v1/status"
        response = httpx.get(url, verify=tls, timeout=10.0, trust_env=False)
        return str(response.raise_for_status().json()["instance"])


def _question(node: int, *, fleet: RunDescription, round_number: int, model: bytes) -> Message:
    content = ConfigRecord({"run": fleet.run, "round": round_number, "model": model})
    return Message(
        content=RecordDict({"round": content}),
        dst_node_id=node,
        message_type="train",
        ttl=fleet.round_seconds + 60.0,
    )


def _wait_for_nodes(grid: Grid, *, expected: int, patience_seconds: float) -> list[int]:
    """The nodes that are online: all of them, or after some patience those that there are.

    How many report is for the shuffler to count: others may be light nodes, which Flower does not
    see, and the reports of too few wait there for more.
    """
    impatient = time.monotonic() + patience_seconds
    while True:
        nodes = list(grid.get_node_ids())
        enough = expected if time.monotonic() < impatient else 1
        if len(nodes) >= enough:
            return nodes
        time.sleep(_POLL_SECONDS)


def _wait_for_round(
    grid: Grid,
    analyser: AnalyserClient,
    shuffler: ShufflerWatch,
    fleet: RunDescription,
    round_number: int,
    asked: Iterable[str],
) -> None:
    """Return when the analyser has moved on, or when it is time to ask the nodes again."""
    waiting = set(asked)
    give_up: float | None = None
    while True:
        status = analyser.status()
        if status["finished"] or status["round"] != round_number:
            return
        for reply in grid.pull_messages(list(waiting)):
            waiting.discard(reply.metadata.reply_to_message_id)
            _note(reply)
            # The shuffler's time runs from the first report, so ours does too.
            give_up = give_up or time.monotonic() + fleet.round_seconds + _MARGIN_SECONDS
        if shuffler.restarted():
            _LOG.warning("the shuffler was restarted in round %d; asking again", round_number)
            return
        if give_up is not None and time.monotonic() > give_up:
            _LOG.warning("round %d was not released; asking again", round_number)
            return
        time.sleep(_POLL_SECONDS)


def _note(reply: Message) -> None:
    if reply.has_error():
        _LOG.warning("a node could not take part: %s", reply.error.reason)
        return
    record = reply.content["acknowledgement"]
    if not record["accepted"]:
        _LOG.warning("a report was not taken: %s", record["reason"])
