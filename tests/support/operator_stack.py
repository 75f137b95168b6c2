"""An operator's component under the real engine, and its own program with the rights that the component gave it."""

import json
from pathlib import Path
from typing import Any

from persia_infra.operators.rights import Rights
from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.rehearsal.operator_processes import OperatorProcesses
from tests.support.cluster_access import wait_for
from tests.support.exercised_rights import Account
from tests.support.inline_stack import InlineStack, Program, changes, discard

__all__ = ["OperatorStack", "Program", "changes", "discard", "wait_for"]


class OperatorStack(InlineStack):
    """With the operators that it deploys, as processes."""

    def __init__(self, folder: Path, control_plane: ControlPlane, port: int, processes: OperatorProcesses) -> None:
        super().__init__(folder, control_plane, port)
        self.processes = processes

    def apply(self, *manifests: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", kind, "--namespace", namespace, name, "-o", "json"))

    def names(self, kind: str, namespace: str, selector: str = "") -> set[str]:
        return set(self.uids(kind, namespace, selector))

    def uids(self, kind: str, namespace: str, selector: str = "") -> dict[str, str]:
        items = self._items(kind, namespace, selector)
        return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}

    def running(self, namespace: str, selector: str = "") -> set[str]:
        items = self._items("pods", namespace, selector)
        return {item["metadata"]["name"] for item in items if item["status"].get("phase") == "Running"}

    def _items(self, kind: str, namespace: str, selector: str) -> list[dict[str, Any]]:
        asked = ("get", kind, "--namespace", namespace, "--selector", selector, "-o", "json")
        return json.loads(self.kubectl(*asked))["items"]

    def check_rights(self, namespace: str, account: str, rights: Rights, **seen: Any) -> None:
        """Every declared right was used or says when it is, nothing was refused, and no right less would do."""
        requests = self.processes.requests(namespace, account)
        found = Account(namespace, rights, requests, **seen)
        assert not found.wrong(), f"{account}: {found.wrong()}"
        assert not found.unnoticed(), f"{account} would not miss {found.unnoticed()}"
