"""What a running service does beside its work: follow renewed certificates, give memory back.

A certificate, its key or a list of trusted certificates may be replaced while the service runs;
connections that begin afterwards use the new files. Files that cannot be used change nothing and
show as trouble, as does a certificate of one's own that has expired, until they can.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tacit.errors import TacitError, reason_of
from tacit.system.certificates import days_left, fingerprint
from tacit.system.memory import return_memory

_LOG = logging.getLogger("tacit.fleet")
_LOOK_SECONDS = 2.0
_TRIM_SECONDS = 10.0


@dataclass
class Followed:
    """Files that are loaded again, by `load`, when any of them has changed."""

    paths: tuple[Path, ...]
    load: Callable[[], None]
    _stamp: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        self._stamp = self._found()

    def look(self) -> str | None:
        """Load what has changed; why that is not possible yet, or None."""
        try:
            found = self._found()
            if found != self._stamp:
                self.load()
                _LOG.info("loaded %s again", ", ".join(path.name for path in self.paths))
            self._stamp = found
        except (OSError, TacitError) as error:  # ssl.SSLError too
            names = " and ".join(str(path) for path in self.paths)
            return f"{names} cannot be used ({reason_of(error)})"
        return None

    def _found(self) -> tuple[tuple[int, int], ...]:
        return tuple((found.st_mtime_ns, found.st_ino) for found in map(Path.stat, self.paths))


@dataclass
class Upkeep:
    """One service's files, its own certificate, and the one that it will use next."""

    certificate: Path
    next_certificate: Path
    followed: list[Followed] = field(default_factory=list)
    trouble: str | None = None
    announced: str | None = None  # fingerprint of the next certificate

    def follow_own(self, context: ssl.SSLContext, certificate: Path, key: Path) -> None:
        """Let the context use a certificate and key of its own that may be renewed."""

        def load() -> None:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)  # fits?
            context.load_cert_chain(certificate, key)

        self.followed.append(Followed((certificate, key), load))

    def follow_trusted(self, context: ssl.SSLContext, trusted: Path) -> None:
        """Let the context trust what is added to a file of certificates."""
        self.followed.append(Followed((trusted,), lambda: context.load_verify_locations(trusted)))

    def look(self) -> None:
        """Follow all files once, and say what is wrong."""
        said = [one.look() for one in self.followed]
        said.append(self._expired())
        now = next((text for text in said if text is not None), None)
        if now is not None and now != self.trouble:
            _LOG.warning("%s", now)
        self.trouble = now
        with contextlib.suppress(TacitError):
            there = self.next_certificate.exists()
            self.announced = fingerprint(self.next_certificate) if there else None

    def days(self) -> float:
        """How long the service's own certificate is still valid."""
        try:
            return days_left(self.certificate)
        except TacitError:
            return 0.0

    async def run(self) -> None:
        """Look after everything until cancelled."""
        since_trim = 0.0
        while True:
            self.look()
            await asyncio.sleep(_LOOK_SECONDS)
            since_trim += _LOOK_SECONDS
            if since_trim >= _TRIM_SECONDS:
                return_memory()
                since_trim = 0.0

    def _expired(self) -> str | None:
        if self.days() > 0.0:
            return None
        return f"the certificate {self.certificate} has expired; run 'tacit fleet renew'"
