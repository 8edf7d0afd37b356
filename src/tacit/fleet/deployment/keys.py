"""Keys and certificates of one fleet: TLS for the services, and the nodes' identities.

There is no authority. Every service has a certificate of its own making, and whoever talks to it
holds a copy and trusts nothing else: what one organisation runs cannot pose as what another runs.

`tacit fleet init` calls this once. Private keys are written with mode 0600, and every file is
written whole or not at all.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import secrets
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit.errors import TacitError

_VALID = dt.timedelta(days=825)
_CLOCK_SLACK = dt.timedelta(minutes=10)  # clocks of devices are seldom exact
_NO_PASSWORD = serialization.NoEncryption()
_SIGNS_HANDSHAKES = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all, and have it on disk before returning."""
    _publish(path, content, mode=mode, publish=lambda temporary: temporary.replace(path))


def write_secret(path: Path, content: bytes) -> None:
    """Write a private file that only its owner can read."""
    write_atomic(path, content, mode=0o600)


def write_secret_once(path: Path, content: bytes) -> None:
    """Write a private file that must not exist yet; `FileExistsError` if it does.

    On a drive without hard links the caller must hold a lock against others who write it.
    """

    def publish(temporary: Path) -> None:
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:
            if path.exists():
                raise FileExistsError(path) from None
            temporary.replace(path)

    _publish(path, content, mode=0o600, publish=publish)


def _publish(path: Path, content: bytes, *, mode: int, publish: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        publish(temporary)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # A rename survives a power cut only once its folder is on disk too.
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    private_key: bytes

    def write(self, folder: Path, name: str) -> None:
        """Write `name.crt` and, readable by the owner alone, `name.key`."""
        write_atomic(folder / f"{name}.crt", self.certificate)
        write_secret(folder / f"{name}.key", self.private_key)


def self_signed(name: str, *, hosts: tuple[str, ...] = ()) -> Pair:
    """A certificate that is its own anchor: a service's under `hosts`, or without any a client's.

    It is no authority, so its key cannot sign a certificate for somebody else.
    """
    key, subject = ec.generate_private_key(ec.SECP256R1()), _common_name(name)
    builder = _builder(subject, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_SIGNS_HANDSHAKES, True)
    if hosts:
        names = x509.SubjectAlternativeName([_host_name(host) for host in hosts])
        builder = builder.add_extension(names, False)
    use = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    certificate = builder.add_extension(x509.ExtendedKeyUsage([use]), False).sign(
        key, hashes.SHA256()
    )
    return Pair(certificate=_pem(certificate), private_key=_key_pem(key))


def trust_only(certificate: Path) -> ssl.SSLContext:
    """TLS towards the one service that holds this certificate's key, and towards nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks the host's name too
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The certificate is the anchor itself; no chain is built.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(certificate)
    except OSError as error:  # ssl.SSLError too
        raise TacitError(
            f"cannot use the certificate {certificate} ({error.strerror or error}); copy it from "
            "the folder that 'tacit fleet init' wrote."
        ) from error
    return context


def node_identity() -> tuple[bytes, bytes]:
    """A node's (private, public) key in OpenSSH form: how Flower's SuperLink knows its nodes."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, _NO_PASSWORD
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private, public


def _builder(subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), False)
    )


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, _NO_PASSWORD
    )
