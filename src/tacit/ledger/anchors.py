"""A note of how far the ledger had come, kept where whoever may restore the ledger cannot write.

A copy of the ledger from last week is intact in itself. Only something outside can tell that it is
old: a file with count and hash of the last entry, renewed after every debit and compared before the
next one.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import LedgerError, reason_of
from tacit.system.files import write_secret

ANCHORS = "TACIT_ANCHORS"


def configured_anchor(ledger: str | os.PathLike[str]) -> Path | None:
    """The file for the anchor of this ledger in the folder that TACIT_ANCHORS names, if it does."""
    folder = os.environ.get(ANCHORS)
    if not folder:
        return None
    place = Path(ledger).absolute()
    digest = hashlib.sha256(str(place).encode()).hexdigest()[:16]
    return Path(folder) / f"{place.stem}-{digest}.anchor"


@dataclass(frozen=True, slots=True)
class Anchor:
    """The ledger had this many entries, and the last of them this hash."""

    count: int
    hash: str

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"


def parse_anchor(text: str) -> Anchor:
    """Read COUNT:HASH."""
    count, _, hashed = text.strip().partition(":")
    if not count.isdecimal() or len(hashed) != 64:
        raise LedgerError(
            f"an anchor is written COUNT:HASH as 'tacit ledger verify' prints it, got {text!r}."
        )
    return Anchor(int(count), hashed)


def read_anchor(path: Path) -> Anchor | None:
    """The anchor in a file; None if there is no such file."""
    try:
        return parse_anchor(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(
            f"cannot read the anchor {path} ({reason_of(error)}); nothing was released."
        ) from error


def write_anchor(path: Path, anchor: Anchor) -> None:
    """Replace the file's anchor, on disk when this returns."""
    try:
        write_secret(path, f"{anchor}\n".encode("ascii"))
    except OSError as error:
        raise LedgerError(
            f"cannot write the anchor {path}: {error.strerror}; nothing was released."
        ) from error
