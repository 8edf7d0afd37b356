"""Pages of a collector, made elsewhere: the service hands them out and adds nothing to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

_HARMLESS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
DASHBOARD_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    **_HARMLESS,
}
# Scripts come from the collector, and what the page sends goes there: the browser sees to it.
DEVICE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    **_HARMLESS,
}


class File(NamedTuple):
    """One file of the device's page."""

    media_type: str
    text: str


class Dashboard(Protocol):
    """Writes the dashboard from the plain values that the API answers with."""

    def __call__(
        self,
        *,
        about: dict[str, Any],
        totals: dict[str, Any],
        shares: dict[str, Any] | None,
        overall: dict[str, Any] | None,
        groups: dict[str, Any] | None,
    ) -> str:
        """One page without scripts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The dashboard for readers, and a device for browsers by the names of its files."""

    dashboard: Dashboard
    device: Mapping[str, File]
