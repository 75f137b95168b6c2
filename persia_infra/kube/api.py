"""A client for one Kubernetes API server: plain objects over REST.

The official client reads the kubeconfig (credential plugins included) and holds the connections. Objects stay
dictionaries, so that kinds without a model in the client are treated like all others.
"""

import hashlib
import json
import ssl
import threading
import time
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from kubernetes.client import ApiClient, Configuration
from urllib3.util.ssl_ import create_urllib3_context

from persia_infra.kube.api_errors import ApiError, NoSuchKind, Refused, Unreachable
from persia_infra.kube.kubeconfig import kubeconfig_text, loaded

__all__ = ["ApiError", "ApiResource", "Cluster", "CollectionView", "NoSuchKind", "Refused", "Unreachable", "connect"]

Object = dict[str, Any]

FIELD_MANAGER = "pulumi-kubernetes"
_APPLY = "application/apply-patch+yaml"
_CONNECTIONS = 64
_BUSY_RETRIES = 5
_REDISCOVER_AFTER = 0.3


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
    """Connections to one API server; safe to use from many threads.

    The certificates of the configuration are read when the object is created, and not again.
    """

    def __init__(self, configuration: Configuration) -> None:
        configuration.connection_pool_maxsize = _CONNECTIONS
        configuration.retries = urllib3.Retry(total=1, backoff_factor=0.2, respect_retry_after_header=False)
        if _is_loopback(configuration.host):
            configuration.proxy = None
        self._configuration = configuration
        self._client = ApiClient(configuration=configuration)
        self._pool: urllib3.PoolManager = self._client.rest_client.pool_manager
        self._pool.connection_pool_kw |= {"ssl_context": _tls_context(configuration)}
        for name in ("ca_certs", "cert_file", "key_file"):
            self._pool.connection_pool_kw.pop(name, None)
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
    text = kubeconfig_text(kubeconfig)
    if text is None:
        return None
    key = hashlib.sha256(f"{context or ''}\0{text}".encode()).hexdigest()
    with _connecting:
        if key not in _connected:
            with loaded(text, context) as configuration:
                _connected[key] = Cluster(configuration)
        return _connected[key]


def _tls_context(configuration: Configuration) -> ssl.SSLContext:
    """Reads the certificates now, since their files exist only while the kubeconfig is loaded."""
    context = create_urllib3_context()
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif configuration.ssl_ca_cert:
        context.load_verify_locations(configuration.ssl_ca_cert)
    else:
        context.load_default_certs()
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
