"""What a program finds when it is rehearsed: nothing of the user, and no way out."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from persia_infra.rehearsal import enclosure
from persia_infra.rehearsal.rehearse import Rehearsal
from tests.support.cluster_access import kubectl

PROGRAM = """
import os, socket
from pathlib import Path
import pulumi

def reached(host, port):
    try:
        socket.create_connection((host, port), timeout=5).close()
        return "reached"
    except OSError as error:
        return type(error).__name__

pulumi.export("home", [str(file) for file in Path.home().rglob("*") if file.is_file()])
pulumi.export("variables", [name for name, value in os.environ.items() if value == "of the user"])
pulumi.export("temporary", os.environ["TMPDIR"])
pulumi.export("other cluster", reached("127.0.0.1", OTHER))
pulumi.export("api server", reached("127.0.0.1", API))
"""
OTHER_CLUSTER = """
import json, pulumi
import pulumi_kubernetes as k8s

cluster = {"server": "https://127.0.0.1:OTHER", "insecure-skip-tls-verify": True}
kubeconfig = {
    "apiVersion": "v1", "kind": "Config", "current-context": "a",
    "clusters": [{"name": "a", "cluster": cluster}],
    "users": [{"name": "a", "user": {"token": "of the user"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
}
other = k8s.Provider("other", kubeconfig=json.dumps(kubeconfig))
k8s.core.v1.ConfigMap("leak", metadata={"name": "leak"}, opts=pulumi.ResourceOptions(provider=other))
"""


class OtherCluster:
    """A server on loopback that counts who connects to it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.2)
        self.port: int = self._listener.getsockname()[1]

    def was_reached(self) -> bool:
        try:
            self._listener.accept()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def other_cluster() -> Iterator[OtherCluster]:
    cluster = OtherCluster()
    yield cluster
    cluster.close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project of a user with credentials."""
    home = tmp_path / "home" / ".config" / "gcloud"
    home.mkdir(parents=True)
    (home / "application_default_credentials.json").write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("AWS_SECRET_ACCESS_KEY", "ARM_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "PULUMI_ACCESS_TOKEN"):
        monkeypatch.setenv(name, "of the user")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: isolation\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text("config: {}\n")
    return folder


def write(project: Path, program: str, rehearsal: Rehearsal, other: OtherCluster) -> None:
    server = json.loads(rehearsal.control_plane.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    text = program.replace("OTHER", str(other.port)).replace("API", server.rpartition(":")[2])
    (project / "__main__.py").write_text(text)


def outputs(rehearsal: Rehearsal, project: Path) -> dict[str, Any]:
    engine = rehearsal.engine(project, "dev")
    up = engine.up()
    assert up.ok, up.errors
    return json.loads(engine.start("stack", "output", "--json", "--stack", "dev").communicate()[0])


def test_a_program_finds_nothing_of_the_user(rehearsal: Rehearsal, project: Path, other_cluster: OtherCluster) -> None:
    write(project, PROGRAM, rehearsal, other_cluster)
    found = outputs(rehearsal, project)
    of_the_user = [file for file in found["home"] if "/.kube/cache/" not in file]  # kubectl's, of earlier tests
    assert of_the_user == found["variables"] == []
    assert Path(found["temporary"]).is_relative_to(rehearsal.control_plane.folder)
    assert found["api server"] == "reached"


@pytest.mark.skipif(not enclosure.is_available(), reason="this machine does not let users create networks")
def test_a_program_cannot_reach_another_cluster_on_this_machine(
    rehearsal: Rehearsal, project: Path, other_cluster: OtherCluster
) -> None:
    write(project, PROGRAM, rehearsal, other_cluster)
    assert outputs(rehearsal, project)["other cluster"] == "ConnectionRefusedError"
    assert not other_cluster.was_reached()


def test_a_provider_that_the_program_builds_for_another_cluster_deploys_nothing(
    rehearsal: Rehearsal, project: Path, other_cluster: OtherCluster
) -> None:
    write(project, OTHER_CLUSTER, rehearsal, other_cluster)
    up = rehearsal.engine(project, "dev").up()
    assert not up.ok
    assert not other_cluster.was_reached()


def test_a_client_with_an_address_of_its_own_ends_at_the_proxy(rehearsal: Rehearsal) -> None:
    address = ("--server", "https://192.0.2.1", "--token", "x", "--request-timeout", "20s")
    with pytest.raises(AssertionError, match="proxyconnect"):
        kubectl(rehearsal.control_plane, *address, "get", "namespaces")
