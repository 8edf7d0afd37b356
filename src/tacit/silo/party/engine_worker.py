"""The engine process of one party: `python -m tacit.silo.party.engine_worker FD`, its child.

It speaks frames with its party over the inherited socket, runs one program, and never writes
results anywhere else. It dies with its party.
"""

from __future__ import annotations

import ctypes
import importlib
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.silo.party.links.frames import FrameSocket, Header
from tacit.silo.party.mailbox import EngineMailbox
from tacit.silo.party.programs import load_program
from tacit.silo.plan import Plan, plan_from_dict
from tacit.silo.secure.faults import PeerFault
from tacit.silo.secure.session import LocalInputs, ProgramResult

_PR_SET_PDEATHSIG = 1
_NO_MEMORY = (
    "the engine ran out of memory; agree on a smaller batch_size or fewer series with all parties."
)


def main(descriptor: int) -> None:
    """Wait for the order, run the program, report, and stay until the party ends this process."""
    _die_with_parent()
    frames = FrameSocket(socket.socket(fileno=descriptor))
    _warm_up()
    box = EngineMailbox(frames)
    order, payload = box.orders.get()
    try:
        report, arrays = run_order(order, payload, box)
        frames.send({"t": "result", **report}, arrays)
    except PeerFault as fault:
        frames.send({"t": "fault", "rank": fault.rank, "what": fault.what})
    except TacitError as error:
        frames.send({"t": "error", "sentence": str(error), "own": True})
    except MemoryError:
        frames.send({"t": "error", "sentence": _NO_MEMORY, "own": True})
    except RuntimeError as error:
        # SPU's own errors, a lost link in most cases; the party decides who is at fault.
        traceback.print_exc()
        frames.send({"t": "error", "sentence": _first_line(error), "own": False})
    box.wait_for_end()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the party decides what Ctrl-C means


def _warm_up() -> None:
    """Import the heavy libraries before they are needed, with 64-bit integers in JAX."""
    import jax

    jax.config.update("jax_enable_x64", True)
    importlib.import_module("spu.utils.frontend")


def _first_line(error: BaseException) -> str:
    """The first line that says something; the engine's own errors begin with a bare "what:"."""
    lines = (line.strip().removeprefix("what:").strip() for line in str(error).splitlines())
    return next((line[:200] for line in lines if line), type(error).__name__)


def run_order(order: Header, payload: bytes, box: EngineMailbox) -> tuple[Header, bytes]:
    """Build the session of the order, run its program, and describe what happened."""
    from safetensors.numpy import load, save

    from tacit.silo.secure.compiler import Compiler
    from tacit.silo.secure.spu_session import SpuSession

    plan, rank = plan_from_dict(order["plan"]), int(order["rank"])
    # An owner that does not compute receives nothing while the others search and train; its party
    # knows from their heartbeats that they are alive.
    waits = rank >= plan.n_computing
    box.names, box.timeout = plan.parties, None if waits else float(order["engine_seconds"])
    data = load(payload)
    inputs = LocalInputs(X=data["X"], y=data["y"].astype(np.intp), private=order["private"])
    program = load_program(order["program"])
    log = Path(order["log"])
    link = _open_link(order, plan, rank, log)
    cache = Path(order["cache"]) if order.get("cache") else None
    session = SpuSession(
        plan,
        rank,
        mailbox=box,
        link=link,
        log=log,
        compiler=Compiler(cache),
        report=box.progress,
    )
    start = time.monotonic()
    result = program(session, inputs, plan)
    session.public_barrier()
    seconds = time.monotonic() - start
    return _report(session, result, seconds), save(_contiguous(result))


def _contiguous(result: ProgramResult) -> dict[str, Any]:
    return {name: np.ascontiguousarray(array) for name, array in result.arrays.items()}


def _report(session: Any, result: ProgramResult, seconds: float) -> Header:
    from dataclasses import asdict

    return {
        "info": dict(result.info),
        "opened": [o.to_dict() for o in session.opened],
        "traffic": [asdict(t) for t in session.traffic],
        "bytes_sent": session.bytes_sent,
        "rounds": session.rounds,
        "seconds": seconds,
    }


def _open_link(order: Header, plan: Plan, rank: int, log: Path) -> Any | None:
    """SPU's own link among the computing parties, over sockets that the party carries."""
    from spu import libspu

    options = libspu.logging.LogOptions()
    options.enable_console_logger = False
    options.system_log_path = str(log)
    libspu.logging.setup_logging(options)
    if rank >= plan.n_computing:
        return None
    desc = libspu.link.Desc()
    desc.id = plan.fingerprint[:16]
    for name, address in zip(plan.parties, order["addresses"], strict=False):
        desc.add_party(name, address)
    milliseconds = int(1000 * float(order["engine_seconds"]))
    desc.recv_timeout_ms = desc.http_timeout_ms = milliseconds
    desc.http_max_payload_size = 32 << 20
    desc.connect_retry_interval_ms = 100
    desc.connect_retry_times = max(1, int(10 * float(order["join_seconds"])))
    desc.retry_opts.max_retry = 0
    return libspu.link.create_brpc(desc, rank)


if __name__ == "__main__":
    main(int(sys.argv[1]))
