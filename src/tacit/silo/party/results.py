"""A run's files at one party: written beside their places, and shown once every party is done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tacit.silo.party.model_file import MODEL, write_model
from tacit.silo.party.receipts import RECEIPT, Receipt, write_receipt
from tacit.system.files import sync_folder, write_atomic

_STAGE = ".unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a finished run leaves at a party; `model` holds the initiator's arrays (safetensors)."""

    receipt: Receipt
    model: bytes | None


class Results:
    """The output folder of one run; all methods raise OSError where the drive does not obey."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stage = folder / _STAGE

    def begin(self) -> None:
        """Check that the folder can be written to; an earlier result stays where it is."""
        write_atomic(self._folder / ".writable", b"")
        (self._folder / ".writable").unlink()

    def stage(self, outcome: Outcome) -> None:
        """Have everything on the drive, where nobody takes it for a result yet."""
        self.drop()
        if outcome.model is not None:
            write_model(self._stage, outcome.model)
        write_receipt(self._stage, outcome.receipt)

    def publish(self) -> None:
        """Move what was staged to its place, the receipt last; an earlier result goes aside."""
        for name in (RECEIPT, MODEL):
            earlier = self._folder / name
            if earlier.exists():
                earlier.replace(earlier.with_name(f"{name}.previous"))
        for name in (MODEL, RECEIPT):
            staged = self._stage / name
            if staged.exists():
                staged.replace(self._folder / name)
        sync_folder(self._folder)
        self.drop()

    def drop(self) -> None:
        """Forget what was staged."""
        if self._stage.exists():
            for file in self._stage.iterdir():
                file.unlink()
            self._stage.rmdir()
