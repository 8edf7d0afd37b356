"""Results for people: rounded numbers, sentences and short lists; JSON has the rest.

An epsilon or a delta is shown no smaller than it is, what remains or is proved no larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FEW = 12
_ROUNDED_DOWN = ("lower_bound", "remaining")
_ROUNDED_UP = ("epsilon", "delta", "spent", "budgets", "reidentification")
Rows = list[tuple[str, str]]


def readable(value: Any, *, key: str = "") -> str:
    """One cell of a table."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, key=key)
    if isinstance(value, Mapping):
        return _of_mapping(value, key=key)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _of_list(value, key=key)
    return str(value)


def number(value: float, *, key: str = "") -> str:
    """A number with as many digits as anybody needs, rounded to the safe side."""
    from tacit.guarantee import rounded_down, rounded_up

    if any(word in key for word in _ROUNDED_DOWN):
        return rounded_down(value, digits=4)
    if any(word in key for word in _ROUNDED_UP):
        return rounded_up(value, digits=4)
    if "seconds" in key:
        return f"{value:.1f}" if value < 1e5 else f"{value:.0f}"
    short = f"{value:.4g}"
    # A confidence of .999999 is not 1, and a chance of 1e-9 is not 0.
    return short if float(short) not in (0.0, 1.0) else f"{value:.9g}"


def _of_mapping(value: Mapping[str, Any], *, key: str) -> str:
    if "sentence" in value:
        return str(value["sentence"])
    inner = {name: f"{key}.{name}" for name in value}
    shown = [f"{words(name)} {readable(value[name], key=inner[name])}" for name in value]
    return _cut(shown) if shown else "none"


def _of_list(value: Sequence[Any], *, key: str) -> str:
    if any(isinstance(one, (Mapping, list, tuple)) for one in value):
        return f"{len(value)} (all with --json)"
    return _cut([readable(one, key=key) for one in value]) if value else "none"


def _cut(shown: list[str]) -> str:
    more = len(shown) - FEW
    return ", ".join(shown[:FEW]) + (f", and {more} more (all with --json)" if more > 0 else "")


def words(key: str) -> str:
    """`train_seconds` as people read it."""
    return key.replace("_", " ")


def table_of(value: Any, *, key: str) -> tuple[list[str], list[list[str]]] | None:
    """Columns and rows where a value is a list of records, or records by name; else None."""
    named = isinstance(value, Mapping) and "sentence" not in value
    records = list(value.values()) if named else value if isinstance(value, list) else []
    if not records or not all(isinstance(one, Mapping) for one in records):
        return None
    columns = list(dict.fromkeys(name for one in records for name in one))
    if any("sentence" in one for one in records) or len(columns) > FEW:
        return None
    rows = [[readable(one.get(name), key=name) for name in columns] for one in records]
    if named:
        return (["", *map(words, columns)], [[n, *r] for n, r in zip(value, rows, strict=True)])
    return [words(name) for name in columns], rows


def split(result: Mapping[str, Any]) -> tuple[Rows, dict[str, Any]]:
    """What goes into the list of names and values, and what becomes a table of its own."""
    tables = {key: made for key, value in result.items() if (made := table_of(value, key=key))}
    rows = [(words(k), readable(v, key=k)) for k, v in result.items() if k not in tables]
    return rows, tables
