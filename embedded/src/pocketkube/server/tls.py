"""A certificate authority of the cluster's own, and a certificate for loopback.

kubectl and client-go send tokens over TLS only, so an API server on plain HTTP could have no users.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pocketkube.private_files import tighten, write_private

_LASTS = datetime.timedelta(days=3650)
_DNS_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


def prepare(folder: Path, now: datetime.datetime) -> Path:
    """Write ``ca.crt`` and ``server.pem`` into the folder unless they are there; return the CA."""
    ca_file, server_file = folder / "ca.crt", folder / "server.pem"
    tighten(server_file)
    if not (ca_file.exists() and server_file.exists()):
        ca_key = ec.generate_private_key(ec.SECP256R1())
        ca = _certificate("pocketkube-ca", ca_key, None, None, now)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate("kube-apiserver", key, ca, ca_key, now)
        key_pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        public_pem = certificate.public_bytes(serialization.Encoding.PEM)
        write_private(server_file, key_pem + public_pem)
        ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    return ca_file


def context(folder: Path) -> ssl.SSLContext:
    """Return the server's TLS settings. ``prepare`` comes first."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / "server.pem")
    return made


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey | None,
    now: datetime.datetime,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    is_ca = issuer is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LASTS)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if is_ca:
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(usage, critical=True)
    else:
        assert issuer_key is not None, "a certificate that is no CA has an issuer"
        alternatives: list[x509.GeneralName] = [x509.DNSName(one) for one in _DNS_NAMES]
        alternatives += [x509.IPAddress(ipaddress.ip_address(a)) for a in ("127.0.0.1", "::1")]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
        builder = builder.add_extension(authority, critical=False)
    return builder.sign(issuer_key or key, hashes.SHA256())
