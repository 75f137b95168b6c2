"""Keeps the engine and the program of a rehearsal away from everything that belongs to the user.

They get empty folders instead of the user's home, none of the variables that hold credentials, and settings that lead
clients of clouds and clusters nowhere. What this guarantees, and what it does not, is in docs/security.md.
"""

import re
import site
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from persia_infra.spec.errors import InputError, Problem

NOWHERE = "127.0.0.1:1"
"""An address on which nothing answers; only root could listen on this port."""

_CREDENTIALS = re.compile(
    r"(ALICLOUD|ARM|AWS|AZURE|BOTO|CLOUDFLARE|CLOUDSDK|DIGITALOCEAN|DOCKER|GCE|GCLOUD|GCP|GH|GITHUB|GITLAB|GOOGLE|GPG"
    r"|HEROKU|KUBE|KUBERNETES|LINODE|NPM|OCI|OS|PULUMI|SSH|TF|VAULT)_.*"
    r"|BOTO_?CONFIG|CI_JOB_TOKEN|DBUS_SESSION_BUS_ADDRESS|GNUPGHOME|HELM_.*|KUBECONFIG|NETRC|PIP_.*INDEX_URL"
    r"|.*(ACCESS_KEY|API_KEY|CREDENTIALS?|PASSPHRASE|PASSWORD|PRIVATE_KEY|SECRET|SECRET_KEY|TOKEN)"
)
_PROXIES = re.compile(r"(all|ftp|http|https|no)_proxy", re.IGNORECASE)
_HOME_FOLDERS = {
    "HOME": "",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_RUNTIME_DIR": ".runtime",
    "XDG_STATE_HOME": ".local/state",
    "CLOUDSDK_CONFIG": ".config/gcloud",
}
_CLUSTER_SETTINGS = ("kubeconfig", "context", "cluster")


def isolated(environment: Mapping[str, str], folder: Path, authority: Path) -> dict[str, str]:
    """Returns variables without anything that leads to the user's files, clouds and clusters.

    Args:
        environment: The user's variables.
        folder: Holds the empty folders, which are created.
        authority: The only certificate that clients shall trust.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if not _CREDENTIALS.fullmatch(name.upper()) and not _PROXIES.fullmatch(name)
    }
    folders = {name: folder / "home" / place for name, place in _HOME_FOLDERS.items()}
    folders |= {"TMPDIR": folder / "temporary", "SSL_CERT_DIR": folder / "no-certificates"}
    for path in folders.values():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    proxies = {f"{scheme}_proxy": f"http://{NOWHERE}" for scheme in ("http", "https", "all")}
    proxies["no_proxy"] = "127.0.0.1,localhost"
    return {
        **kept,
        **{name: str(path) for name, path in folders.items()},
        **proxies,
        **{name.upper(): value for name, value in proxies.items()},
        "AWS_EC2_METADATA_DISABLED": "true",
        "GCE_METADATA_HOST": NOWHERE,
        "GCE_METADATA_IP": NOWHERE,
        "GCE_METADATA_ROOT": NOWHERE,
        "NO_GCE_CHECK": "true",
        **dict.fromkeys(("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"), str(authority)),
        **python_packages(),
    }


def python_packages() -> dict[str, str]:
    """Returns the variable with which Python finds the packages in the user's home after HOME has changed."""
    base = site.getuserbase()
    return {"PYTHONUSERBASE": base} if base and site.ENABLE_USER_SITE else {}


def refuse_cluster_settings(project: Path, stack_file: Path) -> None:
    """Refuses configuration that chooses a cluster: a rehearsal deploys to its own one.

    Raises:
        InputError: The project's or the stack's file has such settings.
    """
    problems: list[Problem] = []
    for file in (project / "Pulumi.yaml", stack_file):
        content: Any = yaml.safe_load(file.read_text())
        settings = content.get("config") if isinstance(content, dict) else None
        for name in _CLUSTER_SETTINGS:
            if isinstance(settings, dict) and (key := f"kubernetes:{name}") in settings:
                shown = str(file.relative_to(project)) if file.is_relative_to(project) else str(file)
                problems.append(
                    Problem(
                        shown,
                        f"config.{key}",
                        "chooses another cluster than that of the rehearsal, so the stack cannot be rehearsed: remove "
                        "it, and build the provider's kubeconfig from the outputs of the cluster",
                    )
                )
    if problems:
        raise InputError(problems)
