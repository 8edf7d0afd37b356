"""A light node: one process on NumPy, httpx and cryptography that polls the shuffler for rounds.

    python -m tacit.fleet.deployment.light_node nodes/node-1/node.toml

For devices on which Flower would be too much. It asks the shuffler which round is open, fetches the
round's model from there, reports once, and ends by itself when the run is over. What it has
committed to is on its disk, so it may lose power or be offline for days at any moment: it goes on
with the round that is open then. Reports, keys, ledger and guarantee are those of any other node.

The shuffler hands on the analyser's public model. One that cheats could hand on another, as the
Flower server could: that can spoil what is learned, never what a report protects.
"""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tacit.errors import TacitError, check_positive
from tacit.fleet.deployment.config import NodeConfig, read_config, read_run
from tacit.fleet.deployment.node import (
    NO_REPORT,
    Acknowledgement,
    RoundOffer,
    ShufflerClient,
    check_person,
    read_key,
    take_part,
)
from tacit.system.certificates import trust_only
from tacit.system.logs import log_to_standard_error
from tacit.system.metrics import serve_metrics

_LOG = logging.getLogger("tacit.fleet")
_LONGEST_WAIT = 60.0


@dataclass
class LightNode:
    """One node's way through a run."""

    config: NodeConfig
    poll_seconds: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    figures: dict[str, float] = field(default_factory=dict)  # for --metrics
    _reported: tuple[int, str] | None = None
    _said: str = ""
    _failed: bool = False  # whether the last report could not be made
    _known_next: str | None = None  # certificate that was trusted last

    def run(self) -> int:
        """Take part until the run is over; returns in how many rounds a report was accepted."""
        fleet = read_run(self.config.plan)
        shuffler: ShufflerClient | None = ShufflerClient(self.config, fleet)
        accepted, wait = 0, self.poll_seconds
        try:
            while True:
                try:
                    shuffler = shuffler or ShufflerClient(self.config, fleet)
                    offer = shuffler.offer()
                    self.figures.update(shuffler_answers=1, round=offer.round_number or 0)
                    self._follow(shuffler, offer)
                    if offer.finished:
                        _LOG.info("the run is over; %d reports were accepted", accepted)
                        return accepted
                    accepted += self._answer(fleet.run, shuffler, offer)
                    self.figures.update(trouble=int(self._failed))
                    wait = self.poll_seconds
                except (httpx.HTTPError, ValueError, KeyError) as error:
                    self.figures.update(shuffler_answers=0)
                    self._say(f"the shuffler does not answer ({type(error).__name__})")
                    wait = min(2.0 * wait, _LONGEST_WAIT)
                    if shuffler is not None:
                        shuffler.close()  # the next one trusts what is on disk then
                    shuffler = None
                except OSError as error:  # a full disk; it goes on when there is room
                    self.figures.update(trouble=1)
                    self._say(f"the node's own files cannot be used ({error.strerror})")
                    wait = min(2.0 * wait, _LONGEST_WAIT)
                self.sleep(wait * (0.5 + secrets.randbelow(1000) / 1000))  # not all at once
        finally:
            if shuffler is not None:
                shuffler.close()

    def _answer(self, run: str, shuffler: ShufflerClient, offer: RoundOffer) -> int:
        """Report for the open round, unless this shuffler process has the report already."""
        if offer.round_number is None or (offer.round_number, offer.instance) == self._reported:
            return 0
        again = self._reported is not None and self._reported[0] == offer.round_number
        model = shuffler.model(offer.round_number)
        if model is None:
            return 0
        answer: Acknowledgement = take_part(
            self.config, run=run, round_number=offer.round_number, model=model
        )
        self._failed = answer.reason == NO_REPORT
        if not answer.accepted:
            self._say(f"round {offer.round_number}: {answer.reason}")
            return 0
        self._said = ""
        self._reported = (offer.round_number, offer.instance)
        _LOG.info("reported for round %d", offer.round_number)
        return 0 if again else 1

    def _follow(self, shuffler: ShufflerClient, offer: RoundOffer) -> None:
        """Trust the shuffler's next certificate before it is in use."""
        if offer.next_certificate in (None, self._known_next):
            return
        if shuffler.trust_next(offer):
            _LOG.info("trusting the shuffler's next certificate too")
        self._known_next = offer.next_certificate

    def _say(self, text: str) -> None:
        """Log what is new, not at every attempt."""
        if text != self._said:
            _LOG.warning("%s", text)
        self._said = text


def run_light_node(path: Path, *, poll_seconds: float = 5.0, metrics: str | None = None) -> int:
    """Check everything that the node needs, then run it to the end of the run."""
    check_positive(poll_seconds, name="poll-seconds")
    config = read_config(path, NodeConfig)
    read_key(config.signing_key)
    check_person(config, read_run(config.plan))
    trust_only(config.shuffler_certificate)
    node = LightNode(config, poll_seconds=poll_seconds)
    if metrics is not None:
        serve_metrics(metrics, part="node", figures=lambda: node.figures)
    return node.run()


def main(arguments: list[str]) -> int:
    """The node for installations without the command line's packages."""
    parser = argparse.ArgumentParser(prog="light_node", allow_abbrev=False)
    parser.add_argument("config", type=Path)
    parser.add_argument("poll_seconds", type=float, nargs="?", default=5.0)
    parser.add_argument("--log-format", choices=("text", "json"), default="text")
    parser.add_argument("--metrics", metavar="HOST:PORT")
    try:
        asked = parser.parse_args(arguments)
    except SystemExit as end:  # argparse has said why
        return int(end.code or 0)
    log_to_standard_error(asked.log_format)
    try:
        run_light_node(asked.config, poll_seconds=asked.poll_seconds, metrics=asked.metrics)
    except TacitError as error:
        sys.stderr.write(f"tacit: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
