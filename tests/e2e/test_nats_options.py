"""A real NATS server with TLS, authentication and JetStream, from the rendered configuration."""

import datetime
import ipaddress
import json
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from persia_infra.kube.objects import documents
from persia_infra.nats.objects import nats_objects
from persia_infra.nats.spec import NatsSpec
from persia_infra.rehearsal.control_plane import free_ports
from persia_infra.rehearsal.operator_tools import ensure_persia
from tests.support.cluster_access import wait_for
from tests.support.nats_client import NatsClient, NatsError
from tests.support.rendered_pods import RenderedPods

SPEC = {
    "size": 1,
    "tls": {"serverSecret": "bus-tls"},
    "auth": {"clientsAuthSecret": "bus-users", "clientsAuthTimeout": 5},
    "jetstream": {"storage": "1Gi"},
    "natsConfig": {"write_deadline": "10s", "maxConnections": 100, "maxPending": 67108864, "disableLogtime": True},
}
USERS = {"users": [{"username": "persia", "password": "open sesame"}]}


def certificate(folder: Path) -> None:
    """The files that the Secret holds, under the names that the NATS operator's have."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    for file, content in (("server.pem", made), ("ca.pem", made), ("server-key.pem", secret)):
        (folder / file).write_bytes(content)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port, and the folder that the server takes for its root."""
    folder = tmp_path_factory.mktemp("bus")
    tools = ensure_persia(lambda line: print(line, file=sys.stderr, flush=True))
    servers = documents([("bus", nats_objects(NatsSpec.model_validate(SPEC), "bus", "default"))])
    pods = RenderedPods(servers, folder, {"nats-server": [str(tools["nats-server"])]})
    client, monitor = free_ports(2)
    home = folder / "bus-0"
    for secret in ("etc/nats-server-tls", "etc/nats-clients-auth"):
        (home / secret).mkdir(parents=True)
    certificate(home / "etc/nats-server-tls")
    (home / "etc/nats-clients-auth/clients-auth.json").write_text(json.dumps(USERS))
    addresses = {
        "port: 4222": f"host: 127.0.0.1\nport: {client}",
        "http_port: 8222": f"http_port: {monitor}",
    }
    try:
        running = pods.start("bus", 0, addresses=addresses)
        running.wait_until("Server is ready")
        probe = pods.container("bus")["startupProbe"]["httpGet"]["path"]
        wait_for("the startup probe", lambda: healthy(monitor, probe))
        yield client, home
    finally:
        pods.stop()


def healthy(port: int, path: str) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}").status == 200
    except urllib.error.HTTPError:
        return False


def trusting(home: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(home / "etc/nats-server-tls/ca.pem"))


def test_the_right_password_over_tls_is_let_in(server: tuple[int, Path]) -> None:
    port, home = server
    login = {"user": "persia", "password": "open sesame"}
    with (
        NatsClient(port, **login, tls=trusting(home)) as receiver,
        NatsClient(port, **login, tls=trusting(home)) as sender,
    ):
        receiver.subscribe("greeting")
        sender.publish("greeting", b"hello")
        assert receiver.receive() == b"hello"


def test_a_wrong_password_is_not(server: tuple[int, Path]) -> None:
    port, home = server
    with pytest.raises(NatsError, match="Authorization Violation"):
        NatsClient(port, user="persia", password="guess", tls=trusting(home))


def test_nor_is_anyone_without_tls(server: tuple[int, Path]) -> None:
    with pytest.raises((NatsError, OSError)):
        NatsClient(server[0], user="persia", password="open sesame")


def test_streams_have_their_disk(server: tuple[int, Path]) -> None:
    port, home = server
    with NatsClient(port, user="persia", password="open sesame", tls=trusting(home)) as client:
        assert client.info["jetstream"] is True
    assert (home / "var/lib/nats/jetstream").is_dir()
