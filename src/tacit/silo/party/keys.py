"""Keys and certificates of the parties: each one self-signed and pinned by all the others.

There is no authority that could issue a certificate for somebody else: a party trusts exactly the
certificates in its own folder. A party's key is written with mode 0600 and never leaves it.
"""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tacit.errors import TacitError

VALID_DAYS = 825


def make_key_pair(name: str, *, key: Path, certificate: Path) -> str:
    """Write a new P-256 key and a certificate that it signs itself; return the fingerprint."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    usages = x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    )
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        # Not an authority: with this key nobody can sign a certificate for another party.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usages, critical=False)
        .sign(private, hashes.SHA256())
    )
    text = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    write_private(key, text)
    write_public(certificate, signed.public_bytes(serialization.Encoding.PEM))
    return certificate_fingerprint(certificate)


def write_private(path: Path, content: bytes) -> None:
    """Write a secret so that only its owner can ever read it, whole or not at all."""
    _write(path, content, mode=0o600)


def write_public(path: Path, content: bytes) -> None:
    """Write a file that others may read, whole or not at all."""
    _write(path, content, mode=0o644)


def _write(path: Path, content: bytes, *, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def certificate_fingerprint(path: Path) -> str:
    """SHA-256 of a certificate's DER encoding, in hexadecimal."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise TacitError(f"cannot read the certificate {path}: {error}.") from error
    return certificate.fingerprint(hashes.SHA256()).hex()


def check_private(path: Path) -> None:
    """Refuse a key that other accounts of the machine can read."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError as error:
        raise TacitError(f"cannot read the key {path}: {error.strerror}.") from error
    if mode & 0o077:
        raise TacitError(f"the key {path} has mode {mode:04o}; run 'chmod 600 {path}'.")


def tls_context(*, server: bool, key: Path, certificate: Path, trusted: Path) -> ssl.SSLContext:
    """TLS 1.3 with certificates on both sides, trusting the file `trusted` and nothing else.

    Which of the trusted parties is at the other end is decided by the caller, who compares
    fingerprints; host names are not used.
    """
    side = ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    # Self-signed leaves are the anchors themselves; no chain is built.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(trusted)
    except (OSError, ssl.SSLError) as error:
        raise TacitError(
            f"the key {key} and the certificate {certificate} cannot be used: {error}."
        ) from error
    return context
