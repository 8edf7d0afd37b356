"""The collector: enrols devices, checks and stores what they send, and tells what is counted."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from tacit.errors import TacitError
from tacit.local.collector.counts import (
    Period,
    class_shares,
    count_symbols,
    n_symbols_of,
    totals_of,
)
from tacit.local.collector.devices import DeviceRecord, enrol, find_device
from tacit.local.collector.messages import (
    ENROL_PATH,
    KEY_BYTES,
    RELEASES_PATH,
    Refused,
    check_signature,
    device_name,
    read_authorization,
    signed_bytes,
    window_digest,
)
from tacit.local.collector.metrics import Metrics
from tacit.local.collector.storage.database import StoreUnavailable
from tacit.local.collector.storage.store import Store, Stored, Upload
from tacit.local.collector.storage.writer import Writer
from tacit.local.collector.uploads import UploadReader, as_object
from tacit.local.model import LocalModel
from tacit.local.prevalence import Target

_REMEMBERED = 10_000  # devices
_REMEMBERED_SECONDS = 15.0  # until a device is looked up again; its uploads are checked each time
_REVOKED = "this device was revoked by the operator; nothing was counted."


@dataclass(frozen=True, slots=True)
class _Remembered:
    device: DeviceRecord
    until: float


class Collector:
    """One process that collects for one model."""

    def __init__(self, model: LocalModel, store: Store) -> None:
        self.model, self.store = model, store
        self.writer = Writer(store)
        self.metrics = Metrics()
        self._reader = UploadReader(model)
        self._devices: OrderedDict[str, _Remembered] = OrderedDict()

    def close(self) -> None:
        """Finish what waits for the store, then let go of it."""
        self.writer.close()
        self.store.close()

    def about(self) -> dict[str, Any]:
        """What a device needs to know before it sends anything."""
        return {
            "collector": self.store.collector,
            "model": self.model.identity,
            "kind": self.model.head.kind,
            "guarantee": self.model.guarantee.to_dict(),
        }

    async def enrol(self, body: bytes, header: str | None) -> dict[str, Any]:
        """Enrol a device; it proves that it holds the key that it brings."""
        plain = as_object(body, what="code and public_key")
        code, key = plain.get("code"), _key(plain.get("public_key"))
        if not isinstance(code, str) or len(code) > 100:
            raise Refused(422, "the code is missing; ask the operator for one.")
        name, signature = read_authorization(header)
        if name != device_name(key):
            raise Refused(401, "the header names another device than the key's.")
        check_signature(key, signature, signed_bytes(self.store.collector, ENROL_PATH, body))
        action = enrol(code, key, now=self.store.clock.now())
        await asyncio.wrap_future(self.writer.change(action))
        return {"device": name, **self.about()}

    async def known(self, header: str | None) -> tuple[DeviceRecord, bytes]:
        """The device that a header names, with the signature that is still to be checked."""
        name, signature = read_authorization(header)
        device = await self._device(name)
        if device is None:
            raise Refused(401, "this device is not enrolled here; enrol it with a code.")
        if device.revoked:
            raise Refused(403, _REVOKED)
        return device, signature

    async def take(self, device: DeviceRecord, signature: bytes, body: bytes) -> dict[str, Any]:
        """Store the releases of one request; returns after they are on disk."""
        check_signature(
            device.public_key, signature, signed_bytes(self.store.collector, RELEASES_PATH, body)
        )
        checked = self._reader.read(body)
        upload = Upload(
            device=device.number,
            group=device.group,
            windows=[window_digest(name, self.store.collector) for name in checked.windows],
            symbols=checked.symbols,
            vectors=checked.vectors,
        )
        stored = await asyncio.wrap_future(self.writer.upload(upload))
        self._count(stored, len(checked.windows))
        if stored.revoked:
            self._devices.pop(device.name, None)
            raise Refused(403, _REVOKED)
        if stored.conflicts:
            names = [checked.windows[place] for place in stored.conflicts]
            raise Conflict(names, len(checked.windows))
        return {"stored": stored.new, "repeated": stored.repeated}

    def _count(self, stored: Stored, n: int) -> None:
        count = self.metrics.releases
        if stored.conflicts or stored.revoked:
            count.labels("refused").inc(n)
            return
        count.labels("stored").inc(stored.new)
        count.labels("repeated").inc(stored.repeated)

    async def _device(self, name: str) -> DeviceRecord | None:
        now = time.monotonic()
        kept = self._devices.get(name)
        if kept is not None and now < kept.until:
            return kept.device
        device = await run_in_threadpool(find_device, self.store, name)
        if device is None:
            self._devices.pop(name, None)
            return None
        self._devices[name] = _Remembered(device, now + _REMEMBERED_SECONDS)
        self._devices.move_to_end(name)
        while len(self._devices) > _REMEMBERED:
            self._devices.popitem(last=False)
        return device

    def totals(self) -> dict[str, Any]:
        """How many releases and devices the store holds."""
        return totals_of(self.store)

    def counts(self, *, by: Period, per_group: bool, last: int | None) -> dict[str, Any]:
        """How often each symbol came."""
        slices = count_symbols(
            self.store, n_symbols=n_symbols_of(self.model), by=by, per_group=per_group, last=last
        )
        return {
            **self.about(),
            "slices": [
                {
                    "start": None if one.start is None else one.start.isoformat(),
                    "group": one.group,
                    "counts": one.counts.tolist(),
                }
                for one in slices
            ],
        }

    def prevalence(
        self, *, by: Period, per_group: bool, last: int | None, of: Target, level: float
    ) -> dict[str, Any]:
        """Class shares with intervals by period and group."""
        shares = class_shares(
            self.store, self.model, by=by, per_group=per_group, last=last, of=of, level=level
        )
        return {
            **self.about(),
            "by": by,
            "of": of,
            "level": level,
            "classes": list(self.model.classes),
            "periods": [one.to_dict() for one in shares],
        }

    def health(self) -> dict[str, Any]:
        """Whether releases can be taken now."""
        ok = self.writer.alive and self.writer.failing is None
        return {
            "status": "ok" if ok else "failing",
            "kind": self.model.head.kind,
            "model": self.model.identity,
            "store": self.writer.failing or "ok",
            "clock": self.clock_said(),
        }

    def clock_said(self) -> str:
        """`ok`, or why nothing is erased by this clock."""
        if step := self.store.clock.step:
            return f"set by {step:+.0f} s since the start; restart"
        with contextlib.suppress(StoreUnavailable):
            return self.store.clock_doubt() or "ok"
        return "ok"

    def metrics_text(self) -> bytes:
        """The page for Prometheus."""
        totals = self.totals()
        return self.metrics.text(
            commits=self.writer.commits,
            commit_seconds=self.writer.commit_seconds,
            writable=self.writer.failing is None,
            held=totals["releases"],
            devices=totals["devices"],
        )


class Conflict(Refused):
    """Windows that hold another release already."""

    def __init__(self, windows: list[str], n: int) -> None:
        shown = ", ".join(windows[:3]) + (" and others" if len(windows) > 3 else "")
        super().__init__(
            409,
            f"window {shown} has another release already, and a window is released once; none of "
            f"the {n} releases of this request was counted.",
        )
        self.windows = windows


def _key(text: Any) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        key = b""
    if len(key) != KEY_BYTES:
        raise TacitError("public_key must be an Ed25519 key: 32 bytes in base64.")
    return key
