"""A whole federation on this machine: one process per party, real TCP, mutual TLS.

This is what `FedSTClassifier.fit` runs. The parties are the same programs that organisations run on
their own machines; only their data come from this process, over a socket and not through files.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.silo.party.folder import Limits, write_folders
from tacit.silo.party.links.frames import encode
from tacit.silo.party.model_file import read_model
from tacit.silo.party.party import OTHERS_FAULT, OWN_FAULT
from tacit.silo.party.receipts import Receipt, read_receipt
from tacit.silo.plan import Plan
from tacit.silo.secure.compiler import default_cache
from tacit.silo.secure.session import LocalInputs
from tacit.system.posix import needs_posix
from tacit.system.progress import Progress, silent

# Below the range from which systems hand out ports, so that nobody is given one of ours.
_PORTS = range(20000, 32000)


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationResult:
    """What P0 got (`arrays`, `info`), and every party's receipt, by rank."""

    arrays: Mapping[str, NDArray[Any]]
    receipts: tuple[Receipt, ...]
    seconds: float

    @property
    def info(self) -> Mapping[str, Any]:
        """The plain values of P0's result."""
        return self.receipts[0].info


def run_federation(
    plan: Plan,
    inputs: Sequence[LocalInputs],
    *,
    progress: Progress | None = None,
    limits: Limits | None = None,
    cache: Path | None = None,
) -> FederationResult:
    """Run the plan's program in one process per party on this machine and collect the results.

    Parties: those of the plan, of which the first two (CHEETAH) or three (ABY3) compute.
    Corruption: one computing party, passive; no dealer. On one machine this protects nobody from
    that machine's owner; it is the same protocol that separate machines run.
    Opens: what the receipts list.
    """
    needs_posix("secure training")
    if len(inputs) != plan.n_parties:
        raise TacitError(f"the plan has {plan.n_parties} parties, got {len(inputs)} inputs.")
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="tacit-silo-") as scratch,
        local_addresses(len(plan.parties)) as addresses,
    ):
        folder = Path(scratch)
        configs = write_folders(
            folder / "parties",
            plan.terms,
            addresses=addresses,
            limits=limits or Limits(),
        )
        # The caller wrote the plan, so the caller agrees to its program.
        options = ["--cache", str(cache or default_cache()), "--program", plan.program]
        run_parties(configs, options, inputs, progress=progress or silent)
        outs = [config.parent / "out" for config in configs.values()]
        return FederationResult(
            arrays=read_model(outs[0]),
            receipts=tuple(read_receipt(out) for out in outs),
            seconds=time.monotonic() - start,
        )


def run_parties(
    configs: Mapping[str, Path],
    options: Sequence[str],
    inputs: Sequence[LocalInputs],
    *,
    progress: Progress = silent,
) -> None:
    """One process per configuration, with the inputs of the same rank, until all have ended."""
    _PartyProcesses(configs, options, progress=progress).finish(inputs)


@contextmanager
def local_addresses(n_parties: int) -> Iterator[list[str]]:
    """An address on this machine for each party, all of them different.

    Nobody else is given one of them before our own processes listen there: on Linux the ports
    stay bound until the end. Listening there is still possible, because SO_REUSEADDR, which
    every server sets, shares a port with a socket that is merely bound.
    """
    with ExitStack() as held:
        ports = [_hold_port(held) for _ in range(n_parties)]
        if sys.platform != "linux":
            held.close()
        yield [f"127.0.0.1:{port}" for port in ports]


def _hold_port(held: ExitStack) -> int:
    for _ in range(200):
        port = _PORTS[secrets.randbelow(len(_PORTS))]
        holder = held.enter_context(socket.socket())
        with suppress(OSError):
            holder.bind(("127.0.0.1", port))
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return port
    raise TacitError("found no free port on 127.0.0.1.")


class _PartyProcesses:
    """The party processes of one run; none of them outlives `finish`."""

    def __init__(
        self, configs: Mapping[str, Path], options: Sequence[str], *, progress: Progress
    ) -> None:
        self._progress = progress
        self._processes: list[subprocess.Popen[bytes]] = []
        self._feeds: list[socket.socket] = []
        for config in configs.values():
            ours, theirs = socket.socketpair()
            with theirs, (config.parent / "stderr.txt").open("wb") as errors:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tacit.silo.party", str(config), *options],
                    stdin=theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
            self._processes.append(process)
            self._feeds.append(ours)
        self._errors = [config.parent / "stderr.txt" for config in configs.values()]

    def finish(self, inputs: Sequence[LocalInputs]) -> None:
        """Hand out the data, show the initiator's progress, wait; raise if any party failed."""
        try:
            for feed, own in zip(self._feeds, inputs, strict=True):
                _feed(feed, own)
            listener = threading.Thread(target=self._listen, daemon=True)
            listener.start()
            codes = [process.wait() for process in self._processes]
            listener.join(timeout=1.0)
        finally:
            self._end()
        if any(codes):
            raise TacitError(self._sentence(codes))

    def _listen(self) -> None:
        stream = self._processes[0].stdout
        assert stream is not None
        for line in stream:
            with suppress(ValueError, KeyError):
                step = json.loads(line)
                self._progress(step["done"], step["total"], step["message"])

    def _sentence(self, codes: Sequence[int]) -> str:
        """What the party at fault says itself, else what another one says about it."""
        said = [path.read_text(errors="replace").strip().splitlines() for path in self._errors]
        last = [lines[-1] for lines in said if lines]
        for whose in (OWN_FAULT, OTHERS_FAULT):
            for line in last:
                if line.startswith(whose):
                    return line.removeprefix(whose)
        return f"the parties ended with codes {list(codes)} and no explanation."

    def _end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for feed in self._feeds:
            feed.close()


def _feed(feed: socket.socket, own: LocalInputs) -> None:
    from safetensors.numpy import save

    arrays = {
        "X": np.ascontiguousarray(own.X, dtype=np.float64),
        "y": np.ascontiguousarray(own.y, dtype=np.int64),
    }
    # A party that already refused is explained by its own sentence.
    with suppress(OSError):
        feed.sendall(encode({"t": "data", "private": dict(own.private)}, save(arrays)))
