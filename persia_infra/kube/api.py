"""A client for one Kubernetes API server: plain objects over REST.

The official client reads the kubeconfig (credential plugins included) and holds the connections. Objects stay
dictionaries, so that kinds without a model in the client are treated like all others.
"""

import hashlib
import json
import os
import ssl
import threading
import time
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3
import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import load_kube_config_from_dict

Object = dict[str, Any]

FIELD_MANAGER = "pulumi-kubernetes"
_APPLY = "application/apply-patch+yaml"
_CONNECTIONS = 64
_BUSY_RETRIES = 5
_REDISCOVER_AFTER = 0.3


class ApiError(Exception):
    """A request that failed, or a kubeconfig that cannot be used; the text is written for the user."""


class Unreachable(ApiError):
    """The API server does not answer, or there are no credentials for it."""


class NoSuchKind(ApiError):
    """The API server does not serve this kind (yet)."""


class Refused(ApiError):
    """An error that the API server returned, in its own words."""

    def __init__(self, status: int, answer: Object) -> None:
        self.status = status
        self.reason = str(answer.get("reason") or "")
        self.message = str(answer.get("message") or f"the API server answered {status}")
        details = answer.get("details") or {}
        self.kind = str(details.get("kind") or "")
        self.name = str(details.get("name") or "")
        self.causes: list[Object] = details.get("causes") or []
        super().__init__(self.message)

    @property
    def may_pass(self) -> bool:
        """Whether the request may succeed later, because it needs something that may be about to exist."""
        if self.status == 404:
            return self.kind == "namespaces" or "could not find the requested resource" in self.message
        if self.status == 403:
            missing_yet = ("being terminated", "error looking up service account", "no PriorityClass with name")
            return any(text in self.message for text in missing_yet)
        if self.status == 409:
            return self.reason == "AlreadyExists" or "the object has been modified" in self.message
        return self.status == 503 or (self.status == 500 and "webhook" in self.message)

    def about(self, what: str) -> ApiError:
        """Returns an error that names the object, and lists the causes if there are several."""
        lines = [f"{what}: {self.message}"]
        if len(self.causes) > 1:
            lines += [f"  - {cause.get('field') or '?'}: {cause.get('message')}" for cause in self.causes]
        if self.status == 409 and "conflict" in self.message.lower() and self.reason == "Conflict":
            lines.append(
                "  Another owner set these fields. To take them over, add the annotation "
                'pulumi.com/patchForce: "true"; to leave them, remove them from the program.'
            )
        return ApiError("\n".join(lines))


@dataclass(frozen=True)
class ApiResource:
    """The path and scope under which the API server serves one kind."""

    root: str
    plural: str
    kind: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        return "/".join(parts)


class Cluster:
    """Connections to one API server; safe to use from many threads."""

    def __init__(self, configuration: Configuration) -> None:
        configuration.connection_pool_maxsize = _CONNECTIONS
        configuration.retries = urllib3.Retry(total=1, backoff_factor=0.2, respect_retry_after_header=False)
        if _is_loopback(configuration.host):
            configuration.proxy = None
        self._configuration = configuration
        self._client = ApiClient(configuration=configuration)
        self._pool: urllib3.PoolManager = self._client.rest_client.pool_manager
        self._discovered: dict[str, tuple[float, dict[str, ApiResource]]] = {}
        self._discovery_lock = threading.Lock()
        self._views: dict[str, CollectionView] = {}
        self._views_lock = threading.Lock()

    @property
    def host(self) -> str:
        return self._configuration.host

    @property
    def credentials(self) -> dict[str, str]:
        """The authentication headers; an expired answer of a credential plugin is renewed."""
        settings: dict[str, Any] = dict(self._configuration.auth_settings())
        return {setting["key"]: setting["value"] for setting in settings.values()}

    def request(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        url = self._configuration.host + path + (f"?{urlencode(query)}" if query else "")
        encoded = json.dumps(body).encode() if body is not None else None
        response = self._send(method, url, encoded, content_type)
        for _ in range(_BUSY_RETRIES):
            if response.status != 429:
                break
            time.sleep(min(float(response.headers.get("Retry-After") or 1), 10))
            response = self._send(method, url, encoded, content_type)
        try:
            answer = json.loads(response.data or b"{}")
        except ValueError:
            answer = {"message": response.data.decode(errors="replace").strip()}
        if response.status >= 400:
            raise Refused(response.status, answer if isinstance(answer, dict) else {})
        return answer

    def _send(self, method: str, url: str, body: bytes | None, content_type: str) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": FIELD_MANAGER} | self.credentials
        if body is not None:
            headers["Content-Type"] = content_type
        timeout = urllib3.Timeout(connect=10, read=70)
        try:
            return self._pool.request(method, url, headers=headers, body=body, timeout=timeout)
        except (urllib3.exceptions.HTTPError, ssl.SSLError) as error:
            raise Unreachable(f"the Kubernetes API server {self.host} cannot be reached: {error}") from None

    def resource(self, api_version: str, kind: str) -> ApiResource:
        """Returns where a kind is served; discovery runs again if the kind was unknown, since it may be new."""
        with self._discovery_lock:
            asked, kinds = self._discovered.get(api_version, (0.0, {}))
            if kind not in kinds and time.monotonic() - asked > _REDISCOVER_AFTER:
                kinds = self._discover(api_version)
                self._discovered[api_version] = (time.monotonic(), kinds)
        if kind not in kinds:
            raise NoSuchKind(
                f"the API server does not serve the kind {kind} of {api_version}: "
                "install its CustomResourceDefinition, and make this object depend on it"
            )
        return kinds[kind]

    def forget(self, api_version: str) -> None:
        """Drops the cached kinds of a version, because one of them was defined or removed."""
        with self._discovery_lock:
            self._discovered.pop(api_version, None)

    def _discover(self, api_version: str) -> dict[str, ApiResource]:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            listed = self.request("GET", root).get("resources", [])
        except Refused as refusal:
            if refusal.status in (404, 503):
                return {}
            raise
        return {
            entry["kind"]: ApiResource(root, entry["name"], entry["kind"], entry["namespaced"])
            for entry in listed
            if "/" not in entry["name"]
        }

    def get(self, resource: ApiResource, namespace: str, name: str) -> Object | None:
        try:
            return self.request("GET", resource.path(namespace, name))
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    def apply(
        self,
        resource: ApiResource,
        manifest: Object,
        *,
        dry_run: bool = False,
        force: bool = False,
    ) -> Object:
        """Applies an object on the server, or creates it if the server has to generate its name."""
        metadata = manifest["metadata"]
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        namespace = metadata.get("namespace") or ""
        if not metadata.get("name"):
            return self.request("POST", resource.path(namespace), query, manifest)
        if force:
            query["force"] = "true"
        return self.request("PATCH", resource.path(namespace, metadata["name"]), query, manifest, _APPLY)

    def delete(self, resource: ApiResource, namespace: str, name: str, uid: str, propagation: str) -> None:
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {"uid": uid},
        }
        self.request("DELETE", resource.path(namespace, name), body=options)

    def list(self, resource: ApiResource, namespace: str, **query: str) -> list[Object]:
        return self.request("GET", resource.path(namespace), query).get("items", [])

    def view(self, resource: ApiResource, namespace: str) -> "CollectionView":
        path = resource.path(namespace)
        with self._views_lock:
            return self._views.setdefault(path, CollectionView(self, path))


class CollectionView:
    """The objects of a collection by name, listed at most twice a second however many callers wait."""

    _INTERVAL = 0.5

    def __init__(self, cluster: Cluster, path: str) -> None:
        self._cluster, self._path = cluster, path
        self._lock = threading.Lock()
        self._listed_at = 0.0
        self._objects: dict[str, Object] = {}

    def objects(self, newer_than: float) -> dict[str, Object]:
        """Returns the objects from a recent list that began after `newer_than` (monotonic seconds)."""
        with self._lock:
            if self._listed_at <= newer_than or time.monotonic() - self._listed_at > self._INTERVAL:
                began = time.monotonic()
                self._objects = {item["metadata"]["name"]: item for item in self._listed()}
                self._listed_at = began
            return self._objects

    def _listed(self) -> list[Object]:
        """Lists the items and adds their version and kind, which the server leaves out of lists."""
        try:
            answer = self._cluster.request("GET", self._path)
        except Refused as refusal:
            if refusal.status == 404:
                return []
            raise
        own = {"apiVersion": answer.get("apiVersion"), "kind": str(answer.get("kind")).removesuffix("List")}
        return [own | item for item in answer.get("items", [])]


_connected: dict[str, Cluster] = {}
_connecting = threading.Lock()


def connect(kubeconfig: str | None, context: str | None) -> Cluster | None:
    """Connects to the cluster of a kubeconfig, given as text or as a path.

    Returns:
        None if no kubeconfig is given and there is no default one.

    Raises:
        ApiError: The kubeconfig cannot be used.
    """
    text = _kubeconfig_text(kubeconfig)
    if text is None:
        return None
    key = hashlib.sha256(f"{context or ''}\0{text}".encode()).hexdigest()
    with _connecting:
        if key not in _connected:
            _connected[key] = Cluster(_configuration(text, context, beside=_file(kubeconfig)))
        return _connected[key]


def _file(kubeconfig: str | None) -> Path | None:
    """Returns the path if the kubeconfig is given as one, None if it is the text itself."""
    if not kubeconfig or "\n" in kubeconfig or kubeconfig.lstrip().startswith("{"):
        return None
    return Path(kubeconfig).expanduser()


def _kubeconfig_text(kubeconfig: str | None) -> str | None:
    if path := _file(kubeconfig):
        if not path.is_file():
            raise ApiError(f"kubeconfig: the file {path} does not exist; give an existing file or its contents")
        return path.read_text()
    if kubeconfig:
        return kubeconfig
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    path = Path(named) if named else Path.home() / ".kube" / "config"
    return path.read_text() if path.is_file() else None


def _configuration(text: str, context: str | None, *, beside: Path | None) -> Configuration:
    """Reads a kubeconfig; the client keeps its certificates in files, next to the kubeconfig."""
    try:
        parsed = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ApiError("kubeconfig: not valid YAML; give the text of a kubeconfig or the path of a file") from None
    if not isinstance(parsed, dict):
        raise ApiError("kubeconfig: not a kubeconfig; give the text of a kubeconfig or the path of a file")
    configuration = Configuration()
    try:
        load_kube_config_from_dict(
            parsed,
            context=context,
            client_configuration=configuration,
            persist_config=False,
            temp_file_path=str(beside.parent) if beside else None,
        )
    except (ConfigException, ApiException, KeyError, TypeError, ValueError, OSError) as error:
        raise ApiError(f"kubeconfig: {error}") from None
    plugin = _credential_plugin(parsed, context)
    if plugin and not configuration.api_key and not configuration.cert_file:
        raise Unreachable(
            f"kubeconfig: the credential plugin {plugin} returned no credentials: "
            "install it on PATH, or run it by hand to see why it fails"
        )
    return configuration


def _credential_plugin(parsed: Object, context: str | None) -> str:
    wanted = context or parsed.get("current-context")
    users = {item.get("name"): item.get("user") or {} for item in parsed.get("users") or []}
    for item in parsed.get("contexts") or []:
        if item.get("name") == wanted:
            user = users.get((item.get("context") or {}).get("user"), {})
            return str((user.get("exec") or {}).get("command") or "")
    return ""


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
