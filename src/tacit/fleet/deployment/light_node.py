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

import logging
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from tacit.errors import TacitError, check_positive
from tacit.fleet.deployment.config import NodeConfig, read_config, read_run
from tacit.fleet.deployment.node import (
    Acknowledgement,
    RoundOffer,
    ShufflerClient,
    load_series,
    read_key,
    take_part,
)
from tacit.system.certificates import trust_only

_LOG = logging.getLogger("tacit.fleet")
_LONGEST_WAIT = 60.0


@dataclass
class LightNode:
    """One node's way through a run."""

    config: NodeConfig
    poll_seconds: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    _reported: tuple[int, str] | None = None
    _said: str = ""

    def run(self) -> int:
        """Take part until the run is over; returns in how many rounds a report was accepted."""
        fleet = read_run(self.config.plan)
        shuffler = ShufflerClient(self.config, fleet)
        accepted, wait = 0, self.poll_seconds
        try:
            while True:
                try:
                    offer = shuffler.offer()
                    if offer.finished:
                        _LOG.info("the run is over; %d reports were accepted", accepted)
                        return accepted
                    accepted += self._answer(fleet.run, shuffler, offer)
                    wait = self.poll_seconds
                except (httpx.HTTPError, ValueError, KeyError) as error:
                    self._say(f"the shuffler does not answer ({type(error).__name__})")
                    wait = min(2.0 * wait, _LONGEST_WAIT)
                self.sleep(wait * (0.5 + secrets.randbelow(1000) / 1000))  # not all at once
        finally:
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
        if not answer.accepted:
            self._say(f"round {offer.round_number}: {answer.reason}")
            return 0
        self._said = ""
        self._reported = (offer.round_number, offer.instance)
        _LOG.info("reported for round %d", offer.round_number)
        return 0 if again else 1

    def _say(self, text: str) -> None:
        """Log what is new, not at every attempt."""
        if text != self._said:
            _LOG.warning("%s", text)
        self._said = text


def run_light_node(path: Path, *, poll_seconds: float = 5.0) -> int:
    """Check everything that the node needs, then run it to the end of the run."""
    check_positive(poll_seconds, name="poll-seconds")
    config = read_config(path, NodeConfig)
    read_key(config.signing_key)
    load_series(config.data)
    trust_only(config.shuffler_certificate)
    return LightNode(config, poll_seconds=poll_seconds).run()


def main(arguments: list[str]) -> int:
    """`light_node CONFIG [POLL_SECONDS]`, for installations without the command line's packages."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        path, *poll = arguments
        run_light_node(Path(path), poll_seconds=float(poll[0]) if poll else 5.0)
    except ValueError as error:
        said = str(error) if isinstance(error, TacitError) else "usage: light_node CONFIG [SECONDS]"
        sys.stderr.write(f"tacit: {said}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
