"""What leaves a device: randomised values, their kind, and what they reveal at most."""

from __future__ import annotations

import html
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.guarantee import DpGuarantee, Guarantee, from_dict
from tacit.system.files import write_atomic

Kind = Literal["label", "place", "vector", "shapes"]
KINDS: tuple[Kind, ...] = ("label", "place", "vector", "shapes")
SYMBOL_KINDS: tuple[Kind, ...] = ("label", "place")
_ID = re.compile(r"[A-Za-z0-9._-]{0,48}", re.ASCII)

TRAINING_SERIES = "the series that the model was trained on"
NOT_COVERED = (
    TRAINING_SERIES,
    "whether, when and how often a device releases; releases about one series add up",
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Release:
    """One row per series: a symbol (n,) of `SYMBOL_KINDS`, numbers (n, d) of the other kinds."""

    kind: Kind
    values: NDArray[Any]
    model: str  # which bundle it belongs to, so that no other one decodes it
    guarantee: Guarantee
    # Random, so that a collector can tell a repeated upload from a second release with the same
    # values; it says nothing of the series. Merged releases have none.
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    def __len__(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_plain` reads them back."""
        return {
            "kind": self.kind,
            "model": self.model,
            "guarantee": self.guarantee.to_dict(),
            "id": self.id,
            "values": self.values.tolist(),
        }

    def _repr_html_(self) -> str:
        """For notebooks: how many releases of which kind, and what is promised."""
        model, promise = html.escape(self.model), html.escape(self.guarantee.sentence)
        return f"<b>{len(self)} {self.kind} releases</b> of model {model}<br>{promise}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one JSON file, whole or not at all."""
        target = Path(path)
        text = json.dumps(self.to_dict(), allow_nan=False)
        try:
            target.parent.resolve(strict=True)  # a typing error must not make a folder
            write_atomic(target, text.encode(), mode=0o666)
        except OSError as error:
            raise TacitError(
                f"cannot write releases to {target}: {error.strerror or error}; "
                "choose another file."
            ) from error


def load_release(path: str | os.PathLike[str]) -> Release:
    """Read a file that `Release.save` wrote."""
    with _reading(path):
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
    return release_from_plain(plain, where=str(path))


def load_releases(*paths: str | os.PathLike[str]) -> Release:
    """Read and merge the releases of one model, in the order of the files.

    A file holds one release, a list of them, or one per line (JSON lines). Another model, kind or
    guarantee among them is refused by file and line, and so is a copy of a release, whose devices
    would count twice.
    """
    return merge_releases(read_parts(*paths))


def read_parts(*paths: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    """Each plain release of the files with its place, not yet checked."""
    places = [Path(path).resolve() for path in paths]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise TacitError(f"{paths[number]} is named twice; every release counts once.")
    return chain.from_iterable(_read_parts(path) for path in paths)


def merge_releases(parts: Iterable[tuple[str, Any]]) -> Release:
    """One release from plain ones, each with the place that a refusal names."""
    values: list[NDArray[Any]] = []
    first: Release | None = None
    start, stated = "", None
    seen: dict[str, str] = {}
    for where, plain in parts:
        if first is None:
            first, start, stated = release_from_plain(plain, where=where), where, plain["guarantee"]
            values.append(first.values)
            seen[first.id] = where
            continue
        # Many devices repeat one guarantee word for word; reading it once is several times faster.
        repeated = isinstance(plain, dict) and plain.get("guarantee") == stated
        known = first.guarantee if repeated else None
        other = release_from_plain(plain, where=where, guarantee=known)
        _check_alike(first, other, start=start, where=where)
        if other.id and seen.setdefault(other.id, where) != where:
            raise TacitError(
                f"{where} is a copy of {seen[other.id]}, and every release counts once; leave one "
                "of them out."
            )
        values.append(other.values)
    if first is None:
        raise TacitError("there is no release in the files; collect at least one.")
    return first if len(values) == 1 else replace(first, values=np.concatenate(values), id="")


def _check_alike(first: Release, other: Release, *, start: str, where: str) -> None:
    for describe in (_origin, _stated, _row):
        mine, theirs = describe(other), describe(first)
        if mine != theirs:
            raise TacitError(f"{where} has {mine}, but {start} has {theirs}; read them apart.")
    if other.guarantee != first.guarantee:
        raise TacitError(
            f"{where} and {start} state guarantees that differ in their assumptions or limits; "
            "take the files as the devices wrote them."
        )


def _origin(release: Release) -> str:
    return f"{release.kind!r} releases of model {release.model or '?'}"


def _row(release: Release) -> str:
    return f"rows of shape {release.values.shape[1:]}"


def _stated(release: Release) -> str:
    guarantee = release.guarantee
    if isinstance(guarantee, DpGuarantee):
        budget = f"epsilon {guarantee.epsilon!r} and delta {guarantee.delta!r}"
        return f"a guarantee of {budget} ({guarantee.trust_model})"
    return f"a guarantee of kind {guarantee.kind!r}"


def _read_parts(path: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    """Each release of a file with its place, read line by line where each line is one."""
    with _reading(path), Path(path).open(encoding="utf-8") as file:
        lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
        opening = list(islice(lines, 2))
        if len(opening) == 2 and _is_object(opening[0][1]):
            yield from _read_lines(path, chain(opening, lines))
            return
        whole = json.loads("".join(line for _, line in chain(opening, lines)))
    if isinstance(whole, list):
        yield from ((f"{path}, item {n}", plain) for n, plain in enumerate(whole, start=1))
    else:
        yield str(path), whole


def _read_lines(
    path: str | os.PathLike[str], lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[str, Any]]:
    for number, line in lines:
        where = f"{path}, line {number}"
        try:
            plain = json.loads(line)
        except ValueError as error:
            raise TacitError(f"{where} is not JSON; take the file as it was written.") from error
        yield where, plain


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except TacitError:
        raise
    except OSError as error:
        raise TacitError(
            f"cannot read releases from {path}: {error.strerror or error}; check the path."
        ) from error
    except ValueError as error:
        raise TacitError(
            f"{path} is not a file of releases: it is not JSON; check the path."
        ) from error


def release_from_plain(
    plain: Any, *, where: str = "the releases", guarantee: Guarantee | None = None
) -> Release:
    """Check and rebuild what `Release.to_dict` made; `guarantee` if the caller has read it."""
    if not isinstance(plain, dict) or not {"kind", "model", "guarantee", "values"} <= set(plain):
        raise TacitError(
            f"{where} must be one object with kind, model, guarantee and values; "
            "make it with 'tacit release'."
        )
    if plain["kind"] not in KINDS:
        raise TacitError(f"{where} has kind {plain['kind']!r}; known are {', '.join(KINDS)}.")
    wanted = np.intp if plain["kind"] in SYMBOL_KINDS else np.float64
    try:
        raw = np.asarray(plain["values"])
        if raw.dtype.kind == "b":
            raise TypeError("true and false are not symbols")
        values = raw.astype(wanted, casting="safe" if raw.dtype.kind in "iu" else "same_kind")
        stated = from_dict(plain["guarantee"]) if guarantee is None else guarantee
    except (TypeError, ValueError, AttributeError) as error:
        raise TacitError(
            f"{where} holds values or a guarantee that cannot be read; ask for the file again."
        ) from error
    if values.ndim != (1 if plain["kind"] in SYMBOL_KINDS else 2) or not np.all(
        np.isfinite(values)
    ):
        raise TacitError(f"{where} holds values of shape {values.shape}, not one row per series.")
    return Release(
        kind=plain["kind"],
        values=values,
        model=str(plain["model"]),
        guarantee=stated,
        id=_read_id(plain, where),
    )


def _read_id(plain: dict[str, Any], where: str) -> str:
    """Files of earlier versions have none."""
    found = plain.get("id", "")
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise TacitError(f"{where} has an id that no release has; take the file as it was written.")
    return found


def local_guarantee(
    epsilon: float, *, assumptions: tuple[str, ...], trained_privately: bool = False
) -> DpGuarantee:
    """The guarantee of one release of one series, in total, whatever its length and channels.

    `trained_privately`: the training series have a guarantee of their own, beside this one.
    """
    elsewhere = f"{TRAINING_SERIES}, which the training's own guarantee covers"
    named = {TRAINING_SERIES: elsewhere} if trained_privately else {}
    return DpGuarantee(
        epsilon=epsilon,
        model="local",
        unit="series",
        neighbours="replace",
        assumptions=assumptions,
        not_covered=tuple(named.get(what, what) for what in NOT_COVERED),
    )
