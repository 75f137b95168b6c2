"""Other users cannot reach the simulated provider, and it reaches no cluster but the rehearsal's."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from persia_infra.kube.api import ApiError
from persia_infra.rehearsal.provider.kubernetes import Kubernetes
from persia_infra.rehearsal.provider.package import ProviderError
from persia_infra.rehearsal.provider.server import ProviderServer

OWN_SERVER = "https://127.0.0.1:6443"
NOBODY = 65534


def kubeconfig(server: str, **user: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "a", "cluster": {"server": server}}],
            "users": [{"name": "a", "user": user}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        }
    )


def plugin(command: str) -> dict[str, Any]:
    return {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": command, "interactiveMode": "Never"}


@pytest.fixture
def rehearsal(tmp_path: Path) -> Path:
    file = tmp_path / "rehearsal.kubeconfig"
    file.write_text(kubeconfig(OWN_SERVER, token="of the rehearsal"))
    return file


@pytest.fixture
def provider(rehearsal: Path) -> Kubernetes:
    return Kubernetes(rehearsal)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A credential plugin that leaves a trace if it runs."""
    program = tmp_path / "plugin"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o700)
    return program


class TestClusters:
    def test_the_own_cluster_is_used_with_the_credentials_of_the_rehearsal(
        self, provider: Kubernetes, trap: Path
    ) -> None:
        provider.configure({"kubeconfig": kubeconfig(OWN_SERVER, exec=plugin(str(trap)))})
        cluster = provider._cluster
        assert cluster is not None
        assert cluster.host == OWN_SERVER
        assert cluster.credentials == {"authorization": "Bearer of the rehearsal"}
        assert not trap.with_name("ran").exists()

    @pytest.mark.parametrize(
        "server", ["https://192.0.2.1", "https://127.0.0.1:6444", "http://127.0.0.1:6443", "https://localhost:6443"]
    )
    def test_another_cluster_is_refused_and_its_plugin_does_not_run(
        self, provider: Kubernetes, trap: Path, server: str
    ) -> None:
        with pytest.raises(ProviderError, match=rf"the server {server} is not the cluster of this rehearsal"):
            provider.configure({"kubeconfig": kubeconfig(server, exec=plugin(str(trap)))})
        assert provider._cluster is None
        assert not trap.with_name("ran").exists()

    def test_a_kubeconfig_in_a_file_is_refused_too(self, provider: Kubernetes, tmp_path: Path) -> None:
        (tmp_path / "other").write_text(kubeconfig("https://192.0.2.1", token="mine"))
        with pytest.raises(ProviderError, match=r"192\.0\.2\.1 is not the cluster of this rehearsal"):
            provider.configure({"kubeconfig": str(tmp_path / "other")})

    @pytest.mark.usefixtures("provider")
    def test_the_users_own_kubeconfig_is_not_used(
        self, provider: Kubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "users").write_text(kubeconfig("https://192.0.2.1", token="mine"))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "users"))
        provider.configure({})
        assert provider._cluster is not None
        assert provider._cluster.host == OWN_SERVER

    def test_a_context_that_the_rehearsal_does_not_have_is_refused(self, provider: Kubernetes) -> None:
        with pytest.raises(ApiError, match="the context 'production' has no server"):
            provider.configure({"context": "production"})


class TestUsers:
    @pytest.fixture
    def server(self, rehearsal: Path) -> Iterator[ProviderServer]:
        server = ProviderServer(lambda: Kubernetes(rehearsal))
        yield server
        server.stop()

    @staticmethod
    def configure(port: int) -> None:
        request = pb.ConfigureRequest(args=Struct())
        with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
            provider_pb2_grpc.ResourceProviderStub(channel).Configure(request)

    def test_the_same_user_is_served(self, server: ProviderServer) -> None:
        self.configure(server.port)

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the owners of connections")
    def test_a_process_of_another_user_is_refused(self, rehearsal: Path) -> None:
        server = ProviderServer(lambda: Kubernetes(rehearsal), uid=os.getuid() + 1)
        try:
            with pytest.raises(grpc.RpcError) as error:
                self.configure(server.port)
        finally:
            server.stop()
        assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
    def test_the_attack_of_another_user_fails(self, server: ProviderServer) -> None:
        attack = f"""
import os, grpc
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import provider_pb2 as pb, provider_pb2_grpc
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
try:
    with grpc.insecure_channel("127.0.0.1:{server.port}") as channel:
        provider_pb2_grpc.ResourceProviderStub(channel).Configure(pb.ConfigureRequest(args=Struct()))
except grpc.RpcError as error:
    print(error.code().name)
"""
        done = subprocess.run([sys.executable, "-c", attack], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "PERMISSION_DENIED", done.stderr
