"""What a device does: enrol with a code, then send releases until they are acknowledged.

The device's key is made here, written to a private file before anything is sent, and never leaves.
Whatever is lost on the way is sent again: the collector counts each window once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import http.client
import json
import os
import secrets
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tacit.errors import TacitError
from tacit.local.collector.messages import (
    ENROL_PATH,
    RELEASES_PATH,
    Refused,
    authorization,
    device_name,
)
from tacit.local.release import Release, read_parts, release_from_plain
from tacit.system.certificates import TLS_FLOOR, check_private, trust_only
from tacit.system.files import write_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ROWS = 2000  # releases in one request
_SECONDS = 30.0  # for one answer
_LATER = (408, 429, 500, 502, 503, 504)  # statuses after which sending again may help
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Unreachable(TacitError):
    """The collector did not answer in time; whatever was not acknowledged may be sent again."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The key of a device and the collector that it was made for."""

    private_key: bytes
    collector: str
    model: str
    enrolled: bool

    def signer(self) -> Ed25519PrivateKey:
        """What signs requests."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.private_key)

    @property
    def name(self) -> str:
        """The device's name."""
        return device_name(self.signer().public_key().public_bytes_raw())

    def save(self, path: Path) -> None:
        """Write the file that only its owner can read."""
        plain = {
            "private_key": base64.b64encode(self.private_key).decode(),
            "collector": self.collector,
            "model": self.model,
            "enrolled": self.enrolled,
        }
        write_secret(path, json.dumps(plain).encode())

    @classmethod
    def load(cls, path: Path) -> Identity:
        """Read what `save` wrote."""
        check_private(path)
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            key = base64.b64decode(plain["private_key"], validate=True)
            found = cls(key, plain["collector"], plain["model"], plain["enrolled"] is True)
            found.signer()
        except (OSError, ValueError, KeyError, TypeError, binascii.Error) as error:
            raise TacitError(
                f"{path} is not a device key; remove it and enrol with a new code."
            ) from error
        return found


class CollectorClient:
    """A connection to one collector, kept open between requests."""

    def __init__(
        self,
        url: str,
        *,
        key: str | os.PathLike[str],
        trust: str | os.PathLike[str] | None = None,
        insecure: bool = False,
        patience: float = 120.0,
    ) -> None:
        """`trust` is the collector's own certificate; without it the system's authorities count.

        `patience` is how many seconds to try before giving up.
        """
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        _check_url(url, parts.scheme, self._host, insecure=insecure)
        self._tls = _tls(trust) if parts.scheme == "https" else None
        self._prefix = parts.path.rstrip("/")
        self._key_file, self._patience = Path(key), patience
        self._identity = Identity.load(self._key_file) if self._key_file.exists() else None
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> CollectorClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def about(self) -> dict[str, Any]:
        """What the collector collects."""
        return self._ask("GET", "/api/collector")

    def enrol(self, code: str) -> str:
        """Enrol this device, once; returns its name."""
        about = self.about()
        identity = self._identity
        if identity is not None and identity.collector != about["collector"]:
            raise TacitError(
                f"{self._key_file} belongs to another collector; give each its own --key file."
            )
        if identity is None:
            identity = Identity(secrets.token_bytes(32), about["collector"], about["model"], False)
            identity.save(self._key_file)
            self._identity = identity
        public = identity.signer().public_key().public_bytes_raw()
        body = json.dumps({"code": code, "public_key": base64.b64encode(public).decode()}).encode()
        answer = self._signed(identity, ENROL_PATH, body)
        self._identity = replace(identity, enrolled=True)
        self._identity.save(self._key_file)
        return str(answer["device"])

    @property
    def name(self) -> str | None:
        """The name under which this device enrolled, for the operator."""
        return None if self._identity is None else self._identity.name

    @property
    def enrolled(self) -> bool:
        """Whether this device needs no code any more."""
        return self._identity is not None and self._identity.enrolled

    def send(self, release: Release, *, windows: Sequence[str] | None = None) -> dict[str, int]:
        """Send releases until they are acknowledged; returns how many were stored and repeated.

        `windows` names what each row was made of, so that a second release of it is refused; by
        default the random id of the release and the number of the row.
        """
        identity = self._ready(release)
        names = window_names(release) if windows is None else list(windows)
        totals = {"stored": 0, "repeated": 0}
        for start in range(0, len(release), _ROWS):
            body = {
                "model": release.model,
                "kind": release.kind,
                "windows": names[start : start + _ROWS],
                "values": release.values[start : start + _ROWS].tolist(),
            }
            answer = self._signed(identity, RELEASES_PATH, json.dumps(body).encode())
            totals = {name: totals[name] + answer[name] for name in totals}
        return totals

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ready(self, release: Release) -> Identity:
        if self._identity is None or not self._identity.enrolled:
            raise TacitError("this device is not enrolled; give a code that the operator made.")
        if release.model != self._identity.model:
            raise TacitError(
                f"these are releases of model {release.model or '?'}, this device was enrolled for "
                f"model {self._identity.model}; nothing was sent."
            )
        return self._identity

    def _signed(self, identity: Identity, path: str, body: bytes) -> dict[str, Any]:
        header = authorization(
            identity.signer(), collector=identity.collector, path=path, body=body
        )
        return self._ask("POST", path, body, header)

    def _ask(
        self, method: str, path: str, body: bytes = b"", header: str | None = None
    ) -> dict[str, Any]:
        """One request, repeated with growing pauses until it is answered for good."""
        end, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            try:
                status, answer = self._once(method, path, body, header)
            except ssl.SSLCertVerificationError as error:
                raise TacitError(
                    f"{self._host} does not show a certificate that is trusted "
                    f"({error.verify_message}); give the collector's own with --trust."
                ) from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                status, reason = 0, str(error) or type(error).__name__
            else:
                if status < 300:
                    return answer
                reason = str(answer.get("error", f"status {status}"))
                if status not in _LATER:
                    raise Refused(status, f"the collector refused: {reason}")
            # A random part, so that devices that lost one collector do not come back at once.
            wait = pause * (0.5 + secrets.randbelow(1000) / 1000)
            if time.monotonic() + wait > end:
                raise Unreachable(
                    f"no answer from {self._host} in {self._patience:g} s ({reason}); what was not "
                    "acknowledged can be sent again, it counts once."
                )
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _once(
        self, method: str, path: str, body: bytes, header: str | None
    ) -> tuple[int, dict[str, Any]]:
        if self._connection is None:
            self._connection = self._connect()
        headers = {"Content-Type": "application/json"} if body else {}
        if header is not None:
            headers["Authorization"] = header
        self._connection.request(method, self._prefix + path, body=body or None, headers=headers)
        with self._connection.getresponse() as response:
            content = response.read()
        if response.will_close:
            self.close()
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        return response.status, answer if isinstance(answer, dict) else {}

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=_SECONDS)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=_SECONDS, context=self._tls
        )


def window_names(release: Release) -> list[str]:
    """A name for each row that stays the same however often the file is sent."""
    if not release.id:
        raise TacitError(
            "these releases carry no id, so a repeated upload could not be told from a second "
            "release; send the files that devices wrote, or name them with --as NAME."
        )
    return [f"{release.id}-{row}" for row in range(len(release))]


def releases_of(*paths: str | os.PathLike[str], name: str | None = None) -> Iterator[Release]:
    """The releases of files, one by one; `name` identifies those of files without ids."""
    for number, (where, plain) in enumerate(read_parts(*paths)):
        release = release_from_plain(plain, where=where)
        if not release.id and name is not None:
            made = hashlib.sha256(f"{number}\0{name}".encode()).hexdigest()[:32]
            release = replace(release, id=made)
        yield release


def _check_url(url: str, scheme: str, host: str, *, insecure: bool) -> None:
    if scheme not in ("https", "http") or not host:
        raise TacitError(f"the collector's address must look like https://host:8765, got {url!r}.")
    if scheme == "http" and not (insecure and host in _LOOPBACK):
        raise TacitError(
            f"{url} is not encrypted; use https, or --insecure for a collector on this machine."
        )


def _tls(trust: str | os.PathLike[str] | None) -> ssl.SSLContext:
    if trust is not None:
        return trust_only(Path(trust))
    context = ssl.create_default_context()
    context.minimum_version = TLS_FLOOR
    return context
