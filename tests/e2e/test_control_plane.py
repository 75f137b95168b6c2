"""The control plane: rights, private credentials, and a clean end."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from persia_infra.rehearsal.control_plane import ControlPlane, PartFailed
from persia_infra.rehearsal.toolchain import Toolchain
from tests.support.cluster_access import kubectl


def test_only_the_user_can_read_the_credentials(control_plane: ControlPlane) -> None:
    assert stat.S_IMODE(control_plane.folder.stat().st_mode) == 0o700
    token = json.loads(control_plane.kubeconfig.read_text())["users"][0]["user"]["token"]
    holding = [
        file for file in control_plane.folder.rglob("*") if file.is_file() and token.encode() in file.read_bytes()
    ]
    assert control_plane.kubeconfig in holding
    assert {stat.S_IMODE(file.stat().st_mode) for file in holding} == {0o600}


def test_no_token_on_a_command_line(control_plane: ControlPlane) -> None:
    token = json.loads(control_plane.kubeconfig.read_text())["users"][0]["user"]["token"]
    assert any("kube-apiserver" in line for line in command_lines())
    assert not any(token in line for line in command_lines())


def test_rights_are_checked(control_plane: ControlPlane) -> None:
    kubectl(control_plane, "create", "serviceaccount", "nobody")
    asked = ("auth", "can-i", "list", "secrets")
    assert kubectl(control_plane, *asked).strip() == "yes"
    nobody = "--as=system:serviceaccount:default:nobody"
    assert kubectl(control_plane, *asked, nobody, refused=True).strip() == "no"
    kubectl(control_plane, "delete", "serviceaccount", "nobody")


def test_kubeconfig_of_a_real_gke_cluster_works(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The kubeconfig that a program writes for GKE names gke-gcloud-auth-plugin and holds no credentials."""
    document = json.loads(control_plane.kubeconfig.read_text())
    document["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "gke-gcloud-auth-plugin",
            "provideClusterInfo": True,
        }
    }
    file = tmp_path / "gke.kubeconfig"
    file.write_text(json.dumps(document))
    assert "namespace/default" in kubectl(control_plane, "--kubeconfig", str(file), "get", "namespaces", "-o", "name")


def test_two_control_planes_do_not_disturb_each_other(control_plane: ControlPlane, tools: Toolchain) -> None:
    with ControlPlane.start(tools) as other:
        kubectl(other, "create", "namespace", "only-here")
        kubectl(control_plane, "get", "namespace", "only-here", refused=True)
    assert not other.folder.exists()
    kubectl(control_plane, "get", "namespace", "default")


def test_a_part_that_does_not_start_is_reported_with_its_log(tools: Toolchain, tmp_path: Path) -> None:
    broken = tmp_path / "kube-scheduler"
    broken.write_text("#!/bin/sh\necho this scheduler is broken\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(PartFailed) as failure:
        ControlPlane.start(Toolchain(tools.programs | {"kube-scheduler": broken}))
    assert "kube-scheduler ended with code 3" in str(failure.value)
    assert "this scheduler is broken" in str(failure.value)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_parent_dies(tools: Toolchain, how: signal.Signals) -> None:
    program = """
import json, sys, time
from pathlib import Path
from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.rehearsal.toolchain import Toolchain
tools = Toolchain({name: Path(path) for name, path in json.loads(sys.argv[1]).items()})
with ControlPlane.start(tools) as running:
    print(running.folder, flush=True)
    time.sleep(600)
"""
    programs = json.dumps({name: str(path) for name, path in tools.programs.items()})
    with subprocess.Popen(
        [sys.executable, "-c", program, programs], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout
        folder = Path(parent.stdout.readline().strip())
        assert processes_of(folder)
        os.kill(parent.pid, how)
    deadline = time.monotonic() + 60
    while (processes_of(folder) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of(folder)
    assert not folder.exists()


def processes_of(folder: Path) -> list[str]:
    return [line for line in command_lines() if str(folder) in line]


def command_lines() -> list[str]:
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return lines
