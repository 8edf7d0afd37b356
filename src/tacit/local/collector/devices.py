"""Who may send: one-time codes, devices with their keys, and how both end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.errors import TacitError, check_at_least, check_positive
from tacit.local.collector.messages import Refused, code_digest, device_name, new_code
from tacit.local.collector.storage.clock import DAY_SECONDS, time_of
from tacit.local.collector.storage.database import Database
from tacit.local.collector.storage.store import Store

_GROUP = re.compile(r"[^\x00-\x1f\x7f]{0,64}")
_KEPT_CODES = 30 * DAY_SECONDS  # after that an expired code is unknown


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """What a collector knows of a device."""

    number: int
    name: str
    public_key: bytes
    group: str
    revoked: bool


def make_codes(store: Store, *, count: int, group: str = "", days: float = 7.0) -> list[str]:
    """New one-time codes for a group of devices; the store keeps digests only."""
    check_at_least(count, 1, name="the number of codes")
    check_positive(days, name="the days that codes are valid")
    if not _GROUP.fullmatch(group):
        raise TacitError(f"a group has at most 64 printable characters, got {group!r}.")
    codes = [new_code() for _ in range(count)]
    expires = int(store.clock.now() + days * DAY_SECONDS)
    rows = [(code_digest(code), group, expires, "") for code in codes]
    store.write(
        lambda database: database.run_many(
            "INSERT INTO collector_codes (digest, grp, expires, device) VALUES (?, ?, ?, ?)", rows
        )
    )
    return codes


def enrol(code: str, public_key: bytes, *, now: float) -> Callable[[Database], str]:
    """The change that enrols a device by its code; asked again with the same key, it agrees."""
    name, digest = device_name(public_key), code_digest(code)

    def action(database: Database) -> str:
        found = database.query(
            "SELECT grp, expires, device FROM collector_codes WHERE digest = ?", (digest,)
        )
        if not found:
            raise Refused(403, "the code is not known here; ask the operator for one.")
        group, expires, used_by = found[0]
        if used_by == name:
            return name
        if used_by:
            raise Refused(403, "the code has been used by another device; ask for a new one.")
        if now >= expires:
            raise Refused(403, f"the code expired at {time_of(expires)}; ask for a new one.")
        if _find(database, name) is not None:
            raise Refused(409, "this device is enrolled already; it needs no code.")
        return _take_code(database, digest, name, public_key, group, now=now)

    return action


def _take_code(
    database: Database, digest: bytes, name: str, public_key: bytes, group: str, *, now: float
) -> str:
    # Decided by the database: another collector may be given the same code at this moment.
    taken = database.query(
        "UPDATE collector_codes SET device = ? WHERE digest = ? AND device = '' RETURNING grp",
        (name, digest),
    )
    if not taken:
        raise Refused(403, "the code has been used by another device; ask for a new one.")
    database.query(
        "INSERT INTO collector_devices (name, public_key, grp, enrolled, revoked) "
        "VALUES (?, ?, ?, ?, 0)",
        (name, public_key, group, int(now // DAY_SECONDS)),
    )
    return name


def find_device(store: Store, name: str) -> DeviceRecord | None:
    """The device of this name, revoked or not."""
    found = store.read(*_by_name(name))
    return None if not found else _record(found[0])


def _find(database: Database, name: str) -> DeviceRecord | None:
    found = database.query(*_by_name(name))
    return None if not found else _record(found[0])


def _by_name(name: str) -> tuple[str, tuple[str]]:
    columns = "number, name, public_key, grp, revoked"
    return f"SELECT {columns} FROM collector_devices WHERE name = ?", (name,)


def _record(row: tuple[Any, ...]) -> DeviceRecord:
    number, name, public_key, group, revoked = row
    return DeviceRecord(number, name, bytes(public_key), group, bool(revoked))


def revoke(store: Store, name: str, *, erase: bool = False) -> int:
    """Accept nothing more of a device; with `erase` forget its releases. Returns how many."""

    def action(database: Database) -> int:
        device = _find(database, name)
        if device is None:
            raise TacitError(f"no device {name!r} is enrolled here; see its key file.")
        database.query(
            "UPDATE collector_devices SET revoked = 1 WHERE number = ?", (device.number,)
        )
        return _erase(database, device) if erase else 0

    return store.write(action)


def _erase(database: Database, device: DeviceRecord) -> int:
    held = database.query(
        "SELECT day, symbol, count(*) FROM collector_releases WHERE device = ? "
        "GROUP BY day, symbol ORDER BY day, symbol",
        (device.number,),
    )
    database.run_many(
        "UPDATE collector_counts SET n = n - ? WHERE day = ? AND grp = ? AND symbol = ?",
        [(n, day, device.group, symbol) for day, symbol, n in held],
    )
    database.query("DELETE FROM collector_releases WHERE device = ?", (device.number,))
    return sum(n for _, _, n in held)


def forget_codes(database: Database, *, now: float) -> int:
    """Remove codes that expired long ago; no release goes with them."""
    database.query("DELETE FROM collector_codes WHERE expires < ?", (int(now - _KEPT_CODES),))
    return 0
