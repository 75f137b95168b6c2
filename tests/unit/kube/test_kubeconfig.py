"""Reading a kubeconfig leaves no credentials behind and runs nothing that is not needed."""

import json
from pathlib import Path
from typing import Any

import pytest

from persia_infra.kube.api import ApiError, Unreachable, connect
from persia_infra.kube.kubeconfig import server_of
from tests.support.tls_server import client_kubeconfig, new_identity, tls_server


def files_with(content: bytes, *folders: Path) -> list[Path]:
    return [file for folder in folders for file in folder.rglob("*") if file.is_file() and content in file.read_bytes()]


def test_a_client_certificate_is_used_and_its_key_is_left_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, servers, users = (tmp_path / name for name in ("temporary", "server", "user"))
    for folder in (temporary, servers, users):
        folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    client = new_identity("client")
    kubeconfig = users / "config"
    with tls_server(servers, client, {"gitVersion": "v1"}) as (address, server):
        kubeconfig.write_text(client_kubeconfig(address, server, client))
        cluster = connect(str(kubeconfig), None)
        assert cluster is not None
        assert files_with(client.key, temporary, users) == []
        assert cluster.request("GET", "/version") == {"gitVersion": "v1"}
    assert list(users.iterdir()) == [kubeconfig]
    assert list(temporary.iterdir()) == []


def test_a_server_with_another_certificate_is_refused(tmp_path: Path) -> None:
    client = new_identity("client")
    with tls_server(tmp_path, client, {}) as (address, _):
        cluster = connect(client_kubeconfig(address, new_identity("other"), client), None)
        assert cluster is not None
        with pytest.raises(Unreachable, match="certificate verify failed"):
            cluster.request("GET", "/version")


def test_two_kubeconfigs_of_the_same_cluster_can_be_used(tmp_path: Path) -> None:
    client, other = new_identity("client"), new_identity("other")
    with tls_server(tmp_path, client, {"gitVersion": "v1"}) as (address, server):
        for identity in (other, client):
            cluster = connect(client_kubeconfig(address, server, identity), None)
        assert cluster is not None
        assert cluster.request("GET", "/version") == {"gitVersion": "v1"}


def document(**changes: Any) -> str:
    return json.dumps(
        {
            "clusters": [
                {"name": "near", "cluster": {"server": "https://127.0.0.1:1"}},
                {"name": "far", "cluster": {"server": "https://192.0.2.1"}},
            ],
            "contexts": [
                {"name": "near", "context": {"cluster": "near", "user": "me"}},
                {"name": "far", "context": {"cluster": "far", "user": "me"}},
                {"name": "nowhere", "context": {"cluster": "missing"}},
            ],
            "users": [{"name": "me", "user": {"exec": {"command": "/no/such/program"}}}],
            "current-context": "near",
            **changes,
        }
    )


def test_the_server_is_that_of_the_context() -> None:
    assert server_of(document(), None) == "https://127.0.0.1:1"
    assert server_of(document(), "far") == "https://192.0.2.1"


@pytest.mark.parametrize(
    ("text", "context"),
    [(document(), "nowhere"), (document(), "unknown"), (document(clusters="x"), None), ("- a\n", None)],
)
def test_a_kubeconfig_without_a_server_is_refused(text: str, context: str | None) -> None:
    with pytest.raises(ApiError, match="kubeconfig: "):
        server_of(text, context)
