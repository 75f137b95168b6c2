"""An API server whose answers a test defines."""

import threading
from collections.abc import Callable
from typing import Any

from persia_infra.kube.api import Cluster, CollectionView, Object

Answer = Callable[[str, str, dict[str, str], Any], Object]


class FakeApi(Cluster):
    """Answers each request as the test defines."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._discovered = {}
        self._discovery_lock = threading.Lock()
        self._views: dict[str, CollectionView] = {}
        self._views_lock = threading.Lock()
        self.requests: list[str] = []

    def request(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "",  # noqa: ARG002
    ) -> Object:
        self.requests.append(f"{method} {path}")
        if path == "/api/v1":
            kinds = {
                "ConfigMap": "configmaps",
                "Pod": "pods",
                "Event": "events",
                "Service": "services",
                "Secret": "secrets",
            }
            return {"resources": [{"kind": k, "name": name, "namespaced": True} for k, name in kinds.items()]}
        return self._answer(method, path, query or {}, body)
