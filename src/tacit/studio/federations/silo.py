"""A silo's run as the studio shows it: its terms before, its parties during, its receipt after.

A folder of `federations/` holds a party's output (`receipt.json`; at the initiator also the model
and, as `own.npz`, its own series of that run), or one party's folder, or those of all parties as
`tacit silo init` wrote them. What a party says of itself while it runs is read from `run.jsonl`
beside its `party.toml`, where `tacit silo party --log-format json` was sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.data.formats import read_series
from tacit.errors import TacitError
from tacit.report.charts import ChartType
from tacit.report.silo_charts import absence_sentence, match_figure, values_sentence
from tacit.silo.explain import Match
from tacit.silo.party.folder import PartyFolder, read_folder
from tacit.silo.party.model_file import MODEL
from tacit.silo.party.receipts import RECEIPT, Receipt, read_receipt
from tacit.silo.plan import Terms
from tacit.silo.stored_model import OWN, load_stored

LOG = "run.jsonl"
RECORD = "training.json"  # what was measured, beside the model
PARTY = "party.toml"
FINISHED = "finished"
ELSEWHERE = "its folder is not here"
_SHAPELETS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One feature in words: which it is, what it says here, and how the classes differ in it."""

    name: str
    what: str
    influence: float
    place: str
    value: str
    classes: list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One of the initiator's own series, and what decided its class."""

    index: int
    n_series: int
    prediction: str
    probabilities: list[tuple[str, float]]
    features: list[Reason]
    absent: str  # a sentence on features that the series does not hold, or nothing
    meaning: str
    chart: ChartType


def openings_of(receipt: Receipt) -> list[tuple[str, str, int]]:
    """What was opened, to whom, and how often."""
    counted: dict[tuple[str, str], int] = {}
    for opening in receipt.opened:
        to = "everybody" if opening.to < 0 else receipt.plan.parties[opening.to]
        key = (opening.what, to)
        counted[key] = counted.get(key, 0) + 1
    return [(what, to, n) for (what, to), n in counted.items()]


def why(folder: Path, index: int) -> Why | None:
    """Why one of the initiator's own series gets its class; None where its files are not here."""
    if not ((folder / MODEL).is_file() and (folder / OWN).is_file()):
        return None
    own, labels = read_series(folder / OWN, label=None)
    if labels is None:
        raise TacitError(f"{OWN} has no labels; copy the initiator's own file of that run.")
    if not 0 <= index < len(own):
        raise TacitError(f"series {index} is not there; {OWN} has 0 to {len(own) - 1}.")
    model = load_stored(folder, own=own)
    found = model.explain(own[index], own_labels=labels, n_shapelets=_SHAPELETS)
    return Why(
        index=index,
        n_series=len(own),
        prediction=found.prediction,
        probabilities=list(found.probabilities.items()),
        features=[_reason(match) for match in found.matches],
        absent=absence_sentence(found.matches),
        meaning=values_sentence(found.matches),
        chart=match_figure(found),
    )


def _reason(match: Match) -> Reason:
    where = f"from step {match.position}" if match.position >= 0 else "nowhere in this series"
    return Reason(
        name=f"{match.kind} {match.shapelet + 1}",
        what=match.description or "a piece of one of the initiator's series",
        influence=match.influence,
        place=where,
        value=f"{match.distance:.3g}",
        classes=[(label, f"{mean:.3g}") for label, mean in match.class_distances.items()],
    )


def model_files(folder: Path) -> list[Path]:
    """What classifying elsewhere needs of a finished run; nothing where there is no model."""
    if not (folder / MODEL).is_file():
        return []
    known = (folder / name for name in (MODEL, RECEIPT, OWN, RECORD))
    return [file for file in known if file.is_file()]


def receipt_of(folder: Path) -> Receipt:
    """The receipt of a silo run."""
    return read_receipt(folder)


def is_silo(folder: Path) -> bool:
    """Whether a folder holds a silo's run, or one that is to come."""
    return (folder / RECEIPT).is_file() or bool(_party_files(folder))


def finished_folder(folder: Path) -> Path | None:
    """Where the receipt lies, the initiator's if it is here; None before the end."""
    places = [folder, *(file.parent / "out" for file in _party_files(folder))]
    found = [place for place in places if (place / RECEIPT).is_file()]
    return next((place for place in found if (place / MODEL).is_file()), next(iter(found), None))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartySeen:
    """One party as its folder tells: where it listens, and how far it is."""

    name: str
    address: str
    state: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SiloRun:
    """What was agreed on, and the parties whose folders are here."""

    terms: Terms
    parties: list[PartySeen]
    commands: list[str]

    @property
    def finished(self) -> bool:
        """Whether every party that is here has its receipt."""
        return all(party.state == FINISHED for party in self.parties)


def silo_run(folder: Path) -> SiloRun:
    """The run of one or all party folders, before its end."""
    files = _party_files(folder)
    folders = {file: read_folder(file, accept_any_plan=True) for file in files}
    first = next(iter(folders.values()))
    here = {found.name: _seen(found, file.parent) for file, found in folders.items()}
    parties = [
        here.get(peer.name)
        or PartySeen(name=peer.name, address=peer.address, state=ELSEWHERE, done=0, total=0)
        for peer in first.peers
    ]
    commands = [
        f"tacit silo party {file} --data {found.name}.npz --log-format json 2> {file.parent / LOG}"
        for file, found in folders.items()
    ]
    return SiloRun(terms=first.terms, parties=parties, commands=commands)


def _seen(found: PartyFolder, home: Path) -> PartySeen:
    address = found.peers[found.rank].address
    state, done, total = "not started", 0, 0
    for line in _lines(home / LOG):
        event = line.get("event")
        if event == "progress":
            done, total = int(line["done"]), int(line["total"])
            state = str(line["message"])
        elif event == "failed":
            state = f"failed: {line['reason']}"
        elif event == "waiting":
            state = f"waiting for {', '.join(line['parties'])}"
        elif event is not None:
            state = str(event)
    if (found.out / RECEIPT).is_file():
        state = FINISHED
    return PartySeen(name=found.name, address=address, state=state, done=done, total=total)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """What a party wrote; a line that is being written, or another program's, is passed over."""
    if not path.is_file():
        return
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        if isinstance(line, dict):
            yield line


def _party_files(folder: Path) -> list[Path]:
    own = folder / PARTY
    return [own] if own.is_file() else sorted(folder.glob(f"*/{PARTY}"))
