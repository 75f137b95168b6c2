"""Reads kubeconfigs: the address of the API server, and the credentials for it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import kube_config
from kubernetes.config.config_exception import ConfigException

from persia_infra.kube.api_errors import ApiError, Unreachable


def kubeconfig_text(kubeconfig: str | None) -> str | None:
    """Returns the text of a kubeconfig, given as text or as a path, or of the default one.

    Returns:
        None if no kubeconfig is given and there is no default one.

    Raises:
        ApiError: The file does not exist.
    """
    if kubeconfig and not _is_path(kubeconfig):
        return kubeconfig
    if kubeconfig:
        path = Path(kubeconfig).expanduser()
        if not path.is_file():
            raise ApiError(f"kubeconfig: the file {path} does not exist; give an existing file or its contents")
        return path.read_text()
    first = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    path = Path(first) if first else Path.home() / ".kube" / "config"
    return path.read_text() if path.is_file() else None


def server_of(text: str, context: str | None) -> str:
    """Returns the address of a context's API server, without reading or running anything that the text names.

    Raises:
        ApiError: The text is not a kubeconfig, or does not have the context.
    """
    parsed = _parsed(text)
    name = context or parsed.get("current-context")
    cluster = _entry(parsed, "clusters", _entry(parsed, "contexts", name).get("cluster"))
    if not isinstance(server := cluster.get("server"), str):
        raise ApiError(f"kubeconfig: the context {name!r} has no server; name a context that has one")
    return server


@contextmanager
def loaded(text: str, context: str | None) -> Iterator[Configuration]:
    """Loads a kubeconfig for the official client.

    The client needs certificates and keys as files. They are in a private folder, and are removed at the end.

    Raises:
        ApiError: The kubeconfig cannot be used.
        Unreachable: Its credential plugin returned no credentials.
    """
    parsed = _parsed(text)
    configuration = Configuration()
    with tempfile.TemporaryDirectory(prefix="persia-infra-certificates-") as folder:
        try:
            kube_config.load_kube_config_from_dict(
                parsed,
                context=context,
                client_configuration=configuration,
                persist_config=False,
                temp_file_path=folder,
            )
        except (ConfigException, ApiException, KeyError, TypeError, ValueError, OSError) as error:
            raise ApiError(f"kubeconfig: {error}") from None
        plugin = _credential_plugin(parsed, context)
        if plugin and not configuration.api_key and not configuration.cert_file:
            raise Unreachable(
                f"kubeconfig: the credential plugin {plugin} returned no credentials: "
                "install it on PATH, or run it by hand to see why it fails"
            )
        yield configuration


def _is_path(kubeconfig: str) -> bool:
    return "\n" not in kubeconfig and not kubeconfig.lstrip().startswith("{")


def _parsed(text: str) -> dict[str, Any]:
    try:
        parsed = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ApiError("kubeconfig: not valid YAML; give the text of a kubeconfig or the path of a file") from None
    if not isinstance(parsed, dict):
        raise ApiError("kubeconfig: not a kubeconfig; give the text of a kubeconfig or the path of a file")
    return parsed


def _entry(parsed: dict[str, Any], section: str, name: Any) -> dict[str, Any]:  # noqa: ANN401
    """Returns the entry with a name in one of the lists `clusters`, `contexts` and `users`, empty if it is absent."""
    entries = parsed.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            content = entry.get(section.removesuffix("s"))
            return content if isinstance(content, dict) else {}
    return {}


def _credential_plugin(parsed: dict[str, Any], context: str | None) -> str:
    user = _entry(parsed, "contexts", context or parsed.get("current-context")).get("user")
    return str((_entry(parsed, "users", user).get("exec") or {}).get("command") or "")
