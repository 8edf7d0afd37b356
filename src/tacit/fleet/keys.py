"""Keys and certificates of one fleet: a small authority, TLS for the services, node identities.

`tacit fleet init` calls this once. Private keys are written with mode 0600, and every file is
written whole or not at all.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = dt.timedelta(days=825)
_CLOCK_SLACK = dt.timedelta(minutes=10)  # clocks of devices are seldom exact
_NO_PASSWORD = serialization.NoEncryption()


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all, and have it on disk before returning."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_secret(path: Path, content: bytes) -> None:
    """Write a private file that only its owner can read."""
    write_atomic(path, content, mode=0o600)


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


class Authority:
    """Signs the TLS certificates of one fleet's services; nobody else trusts it."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _common_name(f"{name} authority")
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        builder = builder.add_extension(_usage(signs_certificates=True), True)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def pair(self) -> Pair:
        """The authority's own certificate and key; keep the key away from the services."""
        return Pair(certificate=_pem(self._certificate), private_key=_key_pem(self._key))

    def issue(self, name: str, hosts: tuple[str, ...]) -> Pair:
        """A server certificate for the given host names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_common_name(name), self._name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(_usage(signs_certificates=False), True)
        builder = builder.add_extension(x509.SubjectAlternativeName(_alternatives(hosts)), False)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False
        )
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(certificate=_pem(certificate), private_key=_key_pem(key))


def self_signed(name: str) -> Pair:
    """A client certificate that its peer trusts by itself: pinning, not a chain."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _common_name(name)
    builder = _builder(subject, subject, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
    builder = builder.add_extension(_usage(signs_certificates=True), True)
    client = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = builder.add_extension(client, False).sign(key, hashes.SHA256())
    return Pair(certificate=_pem(certificate), private_key=_key_pem(key))


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


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(hosts: tuple[str, ...]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys((*hosts, "localhost", "127.0.0.1")):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, _NO_PASSWORD
    )
