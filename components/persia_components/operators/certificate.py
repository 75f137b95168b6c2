"""Generates a certificate for a webhook's Service."""

import base64
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_VALID_FOR = timedelta(days=3650)


def webhook_certificate(service: str, namespace: str) -> dict[str, str]:
    """Returns key, certificate and CA certificate as the data of a Secret; the certificate is self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    host = f"{service}.{namespace}.svc"
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    names = [x509.DNSName(name) for name in (host, f"{service}.{namespace}", service)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files = {"tls.key": private, "tls.crt": certificate, "ca.crt": certificate}
    return {name: base64.b64encode(content).decode() for name, content in files.items()}
