"""PERSIA's own servers and real NATS servers, run from what the rendered pods say."""

import json
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from persia_infra.jobs import PersiaJobSpec
from persia_infra.kube import objects
from persia_infra.rehearsal.control_plane import free_ports
from persia_infra.rehearsal.operator_tools import ensure_persia
from persia_infra.rehearsal.toolchain import Toolchain
from tests.support.nats_client import NatsClient, NatsError
from tests.support.operator_stack import wait_for
from tests.support.rendered_pods import RenderedPods, RunningPod

SERVERS = 3
LARGE = 40 * 1024 * 1024
JOB: dict[str, Any] = {
    "persiaEnv": {"PERSIA_NN_WORKER_ENTRY": "/code/train.py"},
    "globalConfig": {
        "common_config": {"metrics_config": {"enable_metrics": False, "job_name": "ads"}},
        "embedding_parameter_server_config": {"capacity": 4321, "num_hashmap_internal_shards": 2},
    },
    "embeddingConfig": "feature_index_prefix_bit: 4\nslots_config:\n  zip: {dim: 8}\n  age: {dim: 4}\n",
    "embeddingParameterServer": {"replicas": 2},
    "embeddingWorker": {"replicas": 2},
    "nats": {"size": SERVERS},
}


@pytest.fixture(scope="module")
def persia_tools() -> Toolchain:
    return ensure_persia(lambda line: print(line, file=sys.stderr, flush=True))


@pytest.fixture(scope="module")
def launcher(persia_tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The real persia-launcher beside the real servers; only the package's start, which loads torch, is left out."""
    package = tmp_path_factory.mktemp("launcher") / "persia"
    shutil.copytree(persia_tools["persia-launcher"].parent, package)
    for server in ("persia-embedding-parameter-server", "persia-embedding-worker"):
        (package / server).symlink_to(persia_tools[server])
    start = f"import sys; sys.path.insert(0, {str(package.parent)!r}); from persia.launcher import cli; cli()"
    return [sys.executable, "-c", start]


class Job:
    """The whole job, as far as it runs without torch."""

    def __init__(self, documents: list[dict[str, Any]], folder: Path, programs: dict[str, list[str]]) -> None:
        self.pods = RenderedPods(documents, folder, programs)
        self.client_ports = free_ports(SERVERS)
        self.monitor_ports = free_ports(SERVERS)
        self.cluster_ports = free_ports(SERVERS)
        self.servers: list[RunningPod] = []

    def start_nats(self) -> None:
        for index in range(SERVERS):
            routes = {
                f"ads-nats-{peer}.ads-nats-headless:6222": f"127.0.0.1:{self.cluster_ports[peer]}"
                for peer in range(SERVERS)
            }
            own = {
                "port: 4222": f"host: 127.0.0.1\nport: {self.client_ports[index]}",
                "http_port: 8222": f"http_port: {self.monitor_ports[index]}",
                "port: 6222": f"host: 127.0.0.1\n  port: {self.cluster_ports[index]}",
            }
            self.servers.append(self.pods.start("ads-nats", index, addresses={**routes, **own}))
        for server in self.servers:
            server.wait_until("Server is ready")

    def start_role(self, name: str, ordinal: int, port: int, server: int) -> RunningPod:
        return self.pods.start(
            name,
            ordinal,
            addresses={"ads-nats:4222": f"127.0.0.1:{self.client_ports[server]}"},
            added=["--port", str(port)],
            variables={"PERSIA_SOCKET_IFNAME": "lo"},
        )

    def monitor(self, server: int, page: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor_ports[server]}/{page}", timeout=10) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return objects.documents([("ads", PersiaJobSpec.model_validate(JOB).objects("ads", "default", {}))])


@pytest.fixture(scope="module")
def job(
    documents: list[dict[str, Any]],
    persia_tools: Toolchain,
    launcher: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Job]:
    programs = {"nats-server": [str(persia_tools["nats-server"])], "persia-launcher": launcher}
    made = Job(documents, tmp_path_factory.mktemp("job"), programs)
    try:
        made.start_nats()
        yield made
    finally:
        made.pods.stop()


def test_three_servers_form_one_cluster(job: Job) -> None:
    names = {server.name for server in job.servers}
    for index, server in enumerate(job.servers):
        others = names - {server.name}
        wait_for("it knows the others", lambda index=index: _peers(job, index), until=lambda seen, o=others: seen == o)
        general = job.monitor(index, "varz")
        assert general["cluster"]["name"] == "ads-nats"
        assert general["server_name"] == f"ads-nats-{index}"
        assert general["max_payload"] == 52428800


def _peers(job: Job, server: int) -> set[str]:
    return {route["remote_name"] for route in job.monitor(server, "routez")["routes"]}


def test_a_batch_of_40_mib_goes_from_one_server_to_another(job: Job) -> None:
    payload = bytes(range(256)) * (LARGE // 256)
    with NatsClient(job.client_ports[0]) as receiver, NatsClient(job.client_ports[2]) as sender:
        receiver.subscribe("batch")
        wait_for("the sender's server hears of the subscription", lambda: _knows(job, 2, "batch"))
        sender.publish("batch", payload)
        assert receiver.receive() == payload


def _knows(job: Job, server: int, subject: str) -> bool:
    routes = job.monitor(server, "routez?subs=1")["routes"]
    return any(subject in json.dumps(route.get("subscriptions_list", [])) for route in routes)


def test_a_server_with_the_default_limit_refuses_that_batch(
    persia_tools: Toolchain, job: Job, documents: list[dict[str, Any]], tmp_path: Path
) -> None:
    port, cluster = free_ports(2)
    programs = {"nats-server": [str(persia_tools["nats-server"])]}
    pods = RenderedPods(documents, tmp_path, programs)
    assert job.servers
    try:
        alone = {
            **{f"ads-nats-{peer}.ads-nats-headless:6222": f"127.0.0.1:{cluster}" for peer in range(SERVERS)},
            "port: 4222": f"host: 127.0.0.1\nport: {port}",
            "port: 6222": f"host: 127.0.0.1\n  port: {cluster}",
            "http_port: 8222": "",
            "max_payload: 52428800": "",
        }
        server = pods.start("ads-nats", 0, addresses=alone)
        server.wait_until("Server is ready")
        with NatsClient(port) as client, pytest.raises(NatsError, match=r"Maximum Payload|closed"):
            client.publish("batch", b"x" * LARGE)
    finally:
        pods.stop()


@pytest.fixture(scope="module")
def roles(job: Job) -> dict[str, tuple[RunningPod, int]]:
    """Each on another server, as the Service would spread them."""
    ports = free_ports(4)
    names = ["ads-embedding-ps", "ads-embedding-ps", "ads-embedding-worker", "ads-embedding-worker"]
    started = {}
    for index, (name, port) in enumerate(zip(names, ports, strict=True)):
        pod = job.start_role(name, index % 2, port, server=index % SERVERS)
        started[pod.name] = (pod, port)
    return started


def test_parameter_servers_read_the_rendered_files(roles: dict[str, tuple[RunningPod, int]]) -> None:
    for ordinal in range(2):
        pod, _ = roles[f"ads-embedding-ps-{ordinal}"]
        said = pod.wait_until("setting embedding_config")
        assert "capacity: 4321, num_hashmap_internal_shards: 2" in said
        assert f"replica_size: 2, replica_index: {ordinal}" in said
        assert said.index('"zip": SlotConfig') < said.index('"age": SlotConfig'), "the order decides the prefixes"
        assert f"index_prefix: {1 << 60}" in said


def test_embedding_workers_find_every_parameter_server(roles: dict[str, tuple[RunningPod, int]]) -> None:
    addresses = [roles[f"ads-embedding-ps-{ordinal}"][1] for ordinal in range(2)]
    for ordinal in range(2):
        pod, port = roles[f"ads-embedding-worker-{ordinal}"]
        said = pod.wait_until("embedding worker rpc server started")
        for server, address in enumerate(addresses):
            assert f'succeed to get address of embedding servers {server}, Ok("127.0.0.1:{address}")' in said
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            pass


def test_probes_and_services_name_the_ports_that_the_programs_take_by_themselves(launcher: list[str], job: Job) -> None:
    for role, program in (
        ("ads-embedding-ps", "embedding-parameter-server"),
        ("ads-embedding-worker", "embedding-worker"),
    ):
        source = Path(launcher[-1].split("'")[1]) / "persia/launcher.py"
        function = source.read_text().partition(f"def {program.replace('-', '_')}(")[0]
        default = function.rpartition('"--port", type=int, default=')[2].partition(",")[0]
        assert job.pods.container(role)["ports"] == [{"containerPort": int(default), "name": "persia"}]
        assert job.pods.container(role)["readinessProbe"]["tcpSocket"]["port"] == "persia"


def test_a_server_that_is_told_to_stop_lets_its_clients_move_first(job: Job, persia_tools: Toolchain) -> None:
    last = job.servers[-1]
    stop = job.pods.container("ads-nats")["lifecycle"]["preStop"]["exec"]["command"]
    home = last.log.parent
    command = [str(persia_tools["nats-server"]), *(word.replace("=/var", f"={home}/var") for word in stop[1:])]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    last.wait_until("(?i)lame duck mode")
