"""The provider process serves its packages until it is stopped."""

import json
import subprocess
import sys
import time
from pathlib import Path

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import provider_pb2_grpc

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {"token": "t"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "current-context": "a",
}


def test_serves_every_package_until_it_is_stopped(tmp_path: Path) -> None:
    kubeconfig, ports_file = tmp_path / "kubeconfig", tmp_path / "ports.json"
    kubeconfig.write_text(json.dumps(KUBECONFIG))
    command = [sys.executable, "-m", "persia_infra.rehearsal.provider"]
    command += ["--kubeconfig", str(kubeconfig), "--ports-file", str(ports_file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            while not ports_file.exists():
                assert process.poll() is None, process.stderr and process.stderr.read().decode()
                time.sleep(0.1)
            ports = json.loads(ports_file.read_text())
            assert set(ports) == {"gcp", "kubernetes"}
            for port in ports.values():
                with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                    assert provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(Empty()).version
        finally:
            process.terminate()
    assert process.returncode == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kubeconfig", "ports.json"]


def test_a_missing_kubeconfig_is_bad_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "persia_infra.rehearsal.provider"]
    command += ["--kubeconfig", str(tmp_path / "none"), "--ports-file", str(tmp_path / "ports.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--kubeconfig: the file" in done.stderr
