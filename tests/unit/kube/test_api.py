"""Kubeconfigs as texts and files, credential plugins, and the messages when they do not work."""

import json
from pathlib import Path
from typing import Any

import pytest

from persia_infra.kube.api import ApiError, Unreachable, connect

PLUGIN = "gke-gcloud-auth-plugin"
VERSION = "client.authentication.k8s.io/v1beta1"


def kubeconfig(user: dict[str, Any], port: int = 1) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": f"https://127.0.0.1:{port}"}}],
        "users": [{"name": "a", "user": user}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    return json.dumps(document)


def with_plugin(port: int) -> str:
    return kubeconfig({"exec": {"apiVersion": VERSION, "command": PLUGIN, "interactiveMode": "Never"}}, port)


def put_plugin(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = folder / PLUGIN
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(0o700)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_a_credential_plugin_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": {"token": "from the plugin"}}
    put_plugin(tmp_path, f"echo '{json.dumps(answer)}'", monkeypatch)
    cluster = connect(with_plugin(2), None)
    assert cluster is not None
    assert cluster.credentials == {"authorization": "Bearer from the plugin"}


@pytest.mark.parametrize(("port", "script"), [(3, "exit 1"), (4, "echo nonsense")])
def test_a_credential_plugin_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int, script: str
) -> None:
    put_plugin(tmp_path, script, monkeypatch)
    with pytest.raises(Unreachable, match=f"the credential plugin {PLUGIN} returned no credentials"):
        connect(with_plugin(port), None)


def test_a_text_and_a_file_with_the_same_text_are_one_cluster(tmp_path: Path) -> None:
    text = kubeconfig({"token": "t"}, 5)
    (tmp_path / "config").write_text(text)
    assert connect(text, None) is connect(str(tmp_path / "config"), None)
    assert connect(text, None) is not connect(kubeconfig({"token": "other"}, 5), None)


def test_no_proxy_is_used_for_a_control_plane_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    cluster = connect(kubeconfig({"token": "t"}, 6), None)
    assert cluster is not None
    with pytest.raises(Unreachable, match=r"https://127\.0\.0\.1:6 cannot be reached") as error:
        cluster.request("GET", "/version")
    assert "proxy" not in str(error.value).lower()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{not: [yaml", "not valid YAML"),
        ("- a\n- b\n", "not a kubeconfig"),
        ("{}\n", "kubeconfig: "),
        ("/no/such/file", "does not exist"),
    ],
)
def test_an_invalid_kubeconfig_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ApiError, match=message):
        connect(text, None)
