"""Self-signed certificates and TLS 1.3 contexts: one builder, one floor, no authority.

Nobody can issue a certificate for somebody else: whoever talks to a peer holds a copy of that
peer's certificate and trusts nothing else. Keys are P-256, written with mode 0600.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import TacitError, reason_of
from tacit.system.files import write_atomic, write_secret

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

VALID_DAYS = 825
TLS_FLOOR = ssl.TLSVersion.TLSv1_3
_CLOCK_SLACK = dt.timedelta(minutes=10)  # clocks of devices are seldom exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    private_key: bytes

    def write(self, *, certificate: Path, key: Path) -> None:
        """Write both; the key so that only its owner can read it."""
        write_secret(key, self.private_key)
        write_atomic(certificate, self.certificate)


def self_signed(name: str, *, hosts: tuple[str, ...] = (), both_sides: bool = False) -> Pair:
    """A certificate that is its own anchor: a service's under `hosts`, or without any a client's.

    `both_sides` allows it at either end of a connection, for peers that know each other by
    fingerprint. It is no authority, so its key cannot sign a certificate for somebody else.
    """
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, key.public_key(), hosts=hosts, both_sides=both_sides)
    pem = serialization.Encoding.PEM
    return Pair(
        certificate=builder.sign(key, hashes.SHA256()).public_bytes(pem),
        private_key=key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def fingerprint(certificate: Path) -> str:
    """SHA-256 of a certificate's DER encoding, in hexadecimal."""
    from cryptography.hazmat.primitives import hashes

    return _first(certificate).fingerprint(hashes.SHA256()).hex()


def host_names(certificate: Path) -> tuple[str, ...]:
    """The hosts for which a service's certificate is valid, in the order in which it names them."""
    from cryptography import x509

    try:
        found = _first(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in found.value)


def common_name(certificate: Path) -> str:
    """The name that was given to `self_signed`."""
    from cryptography.x509.oid import NameOID

    return str(_first(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def days_left(certificate: Path) -> float:
    """How long the first certificate of a file is still valid; below 0 if it has expired."""
    left = _first(certificate).not_valid_after_utc - dt.datetime.now(dt.UTC)
    return left.total_seconds() / 86400.0


def also_trust(trusted: Path, certificate: bytes) -> bool:
    """Add a PEM certificate to a file of trusted ones, without those that have expired.

    Returns whether it was new. The file is replaced whole.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    try:
        new = x509.load_pem_x509_certificate(certificate)
        old = x509.load_pem_x509_certificates(trusted.read_bytes()) if trusted.exists() else []
    except (OSError, ValueError) as error:
        raise TacitError(
            f"cannot add a certificate to {trusted}: {reason_of(error)}; check the file."
        ) from error
    if new in old:
        return False
    now = dt.datetime.now(dt.UTC)
    kept = [one for one in old if one.not_valid_after_utc > now]
    pem = serialization.Encoding.PEM
    write_atomic(trusted, b"".join(one.public_bytes(pem) for one in (*kept, new)))
    return True


def _first(certificate: Path) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        raise TacitError(
            f"cannot read the certificate {certificate}: {reason_of(error)}."
        ) from error


def check_private(key: Path) -> None:
    """Refuse a key that other accounts of the machine can read."""
    try:
        mode = key.stat().st_mode & 0o777
    except OSError as error:
        raise TacitError(f"cannot read the key {key}: {error.strerror}.") from error
    if mode & 0o077:
        raise TacitError(f"the key {key} has mode {mode:04o}; run 'chmod 600 {key}'.")


def trust_only(certificate: Path) -> ssl.SSLContext:
    """TLS towards the one service that holds this certificate's key, and towards nobody else."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT)  # checks the host's name too
    _trust(context, certificate)
    return context


def mutual_tls(*, server: bool, key: Path, certificate: Path, trusted: Path) -> ssl.SSLContext:
    """TLS with certificates on both sides, trusting those in the file `trusted` and nothing else.

    Which of the trusted peers is at the other end is decided by the caller, who compares
    fingerprints; host names are not used.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    _trust(context, trusted)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError too
        raise TacitError(
            f"the key {key} and the certificate {certificate} cannot be used: {reason_of(error)}."
        ) from error
    return context


def _context(side: ssl._SSLMethod) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.minimum_version = TLS_FLOOR
    # Self-signed leaves are the anchors themselves; no chain is built.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _trust(context: ssl.SSLContext, certificates: Path) -> None:
    try:
        context.load_verify_locations(certificates)
    except OSError as error:  # ssl.SSLError too
        raise TacitError(
            f"cannot use the certificate {certificates} ({error.strerror or error}); copy it from "
            "the folder that the 'init' command wrote."
        ) from error


def _builder(
    name: str, public_key: ec.EllipticCurvePublicKey, *, hosts: tuple[str, ...], both_sides: bool
) -> x509.CertificateBuilder:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    uses = [ExtendedKeyUsageOID.SERVER_AUTH] if hosts or both_sides else []
    uses += [ExtendedKeyUsageOID.CLIENT_AUTH] if both_sides or not hosts else []
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + dt.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_signs_handshakes(), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    )
    if not hosts:
        return builder
    names = x509.SubjectAlternativeName([_host_name(host) for host in hosts])
    return builder.add_extension(names, critical=False)


def _signs_handshakes() -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
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


def _host_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
