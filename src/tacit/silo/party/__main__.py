"""One party of a federation on this machine: `python -m tacit.silo.party`, see `localhost`.

Its series come from the parent process over a socket on standard input, and its progress goes to
standard output, one JSON object per line.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from tacit.errors import TacitError
from tacit.silo.party.folder import PartyFolder, read_folder
from tacit.silo.party.links.frames import FrameSocket
from tacit.silo.party.own_data import OwnData
from tacit.silo.party.party import OTHERS_FAULT, OWN_FAULT, run_party


def _data_from_stdin(folder: PartyFolder) -> OwnData:
    """Data from the parent process, which has it in memory: no file with data is written."""
    from safetensors.numpy import load

    frames = FrameSocket(socket.socket(fileno=sys.stdin.fileno()))
    header, payload = frames.recv()
    threading.Thread(target=_die_with, args=(frames,), daemon=True).start()
    arrays = load(payload)
    classes = np.array(folder.terms.classes or (), dtype=np.str_)
    return OwnData(X=arrays["X"], labels=classes[arrays["y"]], private=header["private"])


def _die_with(frames: FrameSocket) -> None:
    """The process that started this party and holds its data is gone: nobody waits for a result."""
    with suppress(EOFError, OSError):
        frames.recv()
    os._exit(3)


def main(arguments: list[str]) -> int:
    """Run a party for a parent process that reads lines of JSON from standard output."""
    parser = argparse.ArgumentParser(prog="python -m tacit.silo.party")
    parser.add_argument("config", type=Path)
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--program", default=None)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def progress(done: int, total: int, message: str) -> None:
        print(json.dumps({"done": done, "total": total, "message": message}), flush=True)

    try:
        folder = read_folder(options.config)
        run_party(
            folder,
            _data_from_stdin(folder),
            progress=progress,
            cache=options.cache,
            program=options.program,
        )
    except TacitError as error:
        whose = OWN_FAULT if getattr(error, "own", True) else OTHERS_FAULT
        sys.stderr.write(f"{whose}{' '.join(str(error).split())}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
