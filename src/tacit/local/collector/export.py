"""The single releases of a store as a CSV or Parquet file, written whole or not at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tacit.errors import TacitError
from tacit.local.collector.storage.clock import date_of
from tacit.local.collector.storage.store import Store
from tacit.system.extras import needs
from tacit.system.files import write_once

_ROWS = 50_000
_PAGE = (
    "SELECT r.device, r.window_digest, r.day, d.grp, r.symbol, r.vector FROM collector_releases r "
    "JOIN collector_devices d ON d.number = r.device "
    "WHERE (r.device, r.window_digest) > (?, ?) ORDER BY r.device, r.window_digest LIMIT ?"
)

Table = dict[str, list[Any]]


def export_releases(store: Store, path: Path, *, devices: bool = False) -> int:
    """Write every release that the store holds; returns how many.

    The day, the group and the value; with `devices` also which device sent it, as a number that
    has no meaning outside the store.
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise TacitError(f"{path} must end in .csv or .parquet, to say which file is wanted.")
    if suffix == ".parquet":
        needs("import", "pyarrow", what="a Parquet file")
    written = 0

    def pages() -> Iterator[Table]:
        nonlocal written
        for table in _pages(store, devices=devices):
            written += len(table["day"])
            yield table

    write = _write_csv if suffix == ".csv" else _write_parquet
    try:
        write_once(path, lambda file: write(file, pages()), mode=0o600)
    except FileExistsError:
        raise TacitError(f"{path} exists; choose another file.") from None
    except OSError as error:
        raise TacitError(
            f"cannot write the releases to {path}: {error.strerror or error}; nothing was written, "
            "choose another --out."
        ) from error
    return written


def _pages(store: Store, *, devices: bool) -> Iterator[Table]:
    """Some rows at a time, and one page at least, for the names of the columns."""
    last: tuple[int, bytes] = (-1, b"")
    first = True
    while True:
        rows = store.read(_PAGE, (*last, _ROWS))
        if not rows and not first:
            return
        yield _table(rows, kind=store.meta["kind"], devices=devices)
        if len(rows) < _ROWS:
            return
        last, first = (rows[-1][0], bytes(rows[-1][1])), False


def _table(rows: list[tuple[Any, ...]], *, kind: str, devices: bool) -> Table:
    table: Table = {"device": [row[0] for row in rows]} if devices else {}
    table["day"] = [date_of(row[2]).isoformat() for row in rows]
    table["group"] = [row[3] for row in rows]
    table["symbol" if kind in ("label", "place") else "decided"] = [row[4] for row in rows]
    if rows and rows[0][5] is not None:
        vectors = np.frombuffer(b"".join(row[5] for row in rows), dtype="<f8")
        columns = vectors.reshape(len(rows), -1).T
        table |= {f"value_{j}": column.tolist() for j, column in enumerate(columns)}
    return table


def _write_csv(file: BinaryIO, pages: Iterator[Table]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    for number, table in enumerate(pages):
        if number == 0:
            writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    text.detach()


def _write_parquet(file: BinaryIO, pages: Iterator[Table]) -> None:
    import pyarrow
    import pyarrow.parquet

    writer: Any = None
    for table in pages:
        made = pyarrow.table(table, schema=None if writer is None else writer.schema)
        if writer is None:
            writer = pyarrow.parquet.ParquetWriter(file, made.schema)
        writer.write_table(made)
    writer.close()
