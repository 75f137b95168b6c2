"""A rehearsed program finds nothing of the user: no credentials, no home, no way to a cloud."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from persia_infra.rehearsal.isolation import NOWHERE, isolated

HOME_FILES = {
    ".config/gcloud/application_default_credentials.json": json.dumps(
        {
            "type": "authorized_user",
            "client_id": "mine",
            "client_secret": "mine",
            "refresh_token": "mine",
            "quota_project_id": "mine",
        }
    ),
    ".kube/config": "{}",
    ".aws/credentials": "[default]\naws_access_key_id = mine\naws_secret_access_key = mine\n",
    ".azure/accessTokens.json": "[]",
}
CREDENTIALS = (
    "ARM_CLIENT_SECRET",
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "CLOUDSDK_AUTH_ACCESS_TOKEN",
    "DIGITALOCEAN_TOKEN",
    "GITHUB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CREDENTIALS",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBE_CONFIG_PATH",
    "MY_API_KEY",
    "PULUMI_ACCESS_TOKEN",
    "SSH_AUTH_SOCK",
    "VAULT_TOKEN",
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home folder of a user with credentials for several clouds."""
    for name, content in HOME_FILES.items():
        file = tmp_path / "home" / name
        file.parent.mkdir(parents=True)
        file.write_text(content)
    return tmp_path / "home"


@pytest.fixture
def variables(home: Path, tmp_path: Path) -> dict[str, str]:
    mine = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), **dict.fromkeys(CREDENTIALS, "mine")}
    authority = tmp_path / "authority.crt"
    authority.touch()
    return isolated({"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **mine}, tmp_path / "isolated", authority)


def run(program: str, variables: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_variable_with_credentials_is_left(variables: dict[str, str]) -> None:
    assert "mine" not in variables.values()
    assert not variables.keys() & set(CREDENTIALS)


@pytest.mark.parametrize("name", ["GCE_METADATA_HOST", "GCE_METADATA_IP", "GCE_METADATA_ROOT"])
def test_the_metadata_servers_of_virtual_machines_are_not_asked(variables: dict[str, str], name: str) -> None:
    assert variables[name] == NOWHERE
    assert variables["AWS_EC2_METADATA_DISABLED"] == "true"


def test_other_variables_are_kept(variables: dict[str, str]) -> None:
    assert variables["LANG"] == "C.UTF-8"
    assert variables["PATH"] == os.environ["PATH"]


def test_the_home_folders_are_empty_and_private(variables: dict[str, str], home: Path) -> None:
    for name, value in variables.items():
        assert str(home) not in value, name
    folders = [Path(value) for name, value in variables.items() if name == "HOME" or name.startswith("XDG_")]
    assert len(folders) == 6
    for folder in folders:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not [file for file in folder.rglob("*") if file.is_file()]


def test_the_default_credentials_of_google_are_not_found(variables: dict[str, str]) -> None:
    program = """
import google.auth, google.auth.exceptions
try:
    print(google.auth.default())
except google.auth.exceptions.DefaultCredentialsError:
    print("none")
"""
    assert run(program, variables) == "none"


def test_the_kubeconfig_in_the_home_folder_is_not_found(variables: dict[str, str]) -> None:
    program = "from kubernetes import config\ntry:\n    config.load_config()\nexcept Exception:\n    print('none')"
    assert run(program, variables).splitlines()[-1] == "none"


def test_http_clients_lead_nowhere_except_on_this_machine(variables: dict[str, str]) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.sendall(b"HTTP/1.0 204 No Content\r\n\r\n")
        connection.close()

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    program = f"""
import urllib.request, urllib.error
print(urllib.request.urlopen("http://127.0.0.1:{listener.getsockname()[1]}", timeout=10).status)
for address in ("http://192.0.2.1", "https://192.0.2.1", "http://metadata.google.internal"):
    try:
        urllib.request.urlopen(address, timeout=10)
    except urllib.error.URLError as error:
        print(error.reason.__class__.__name__)
"""
    assert run(program, variables).split() == ["204", *["ConnectionRefusedError"] * 3]
    server.join()
    listener.close()


def test_packages_in_the_users_own_site_folder_are_still_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("site.ENABLE_USER_SITE", True)
    monkeypatch.setattr("site.getuserbase", lambda: "/home/me/.local")
    authority = tmp_path / "authority.crt"
    assert isolated({}, tmp_path / "isolated", authority)["PYTHONUSERBASE"] == "/home/me/.local"
