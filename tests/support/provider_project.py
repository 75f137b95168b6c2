"""A project of the simulated kubernetes package's tests, and programs for it."""

import json
import os
from pathlib import Path
from typing import Any

import pulumi_kubernetes

from persia_infra.rehearsal.control_plane import ControlPlane
from tests.support.inline_stack import InlineStack, Program

# The arguments below are plain dictionaries: these tests are about the provider, not about the SDK's types.
k8s: Any = pulumi_kubernetes
NODE_LABELS = {"probe": "provider"}


class Project(InlineStack):
    """In a namespace of its own."""

    def __init__(self, folder: Path, control_plane: ControlPlane, port: int) -> None:
        super().__init__(folder, control_plane, port)
        self.namespace = f"probe-{os.urandom(3).hex()}"
        self.kubectl("create", "namespace", self.namespace)

    def resource(self, kind: str) -> dict[str, Any]:
        resources = json.loads(self.state_on_disk())["checkpoint"]["latest"]["resources"]
        found = [item for item in resources if item["type"].endswith(f":{kind}")]
        assert len(found) == 1, f"{len(found)} resources of kind {kind}"
        return found[0]

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return super().kubectl("--namespace", self.namespace, *arguments, stdin=stdin)

    def live(self, kind: str, name: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def metadata(self, name: str, **more: Any) -> dict[str, Any]:
        return {"namespace": self.namespace, "name": name, **more}


def pod_template(label: str = "probe", image: str = "registry.example/web:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}}
    return {
        "metadata": {"labels": {"app": label}},
        "spec": {
            "containers": [container],
            "nodeSelector": NODE_LABELS,
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def deployment(project: Project, replicas: int = 1, label: str = "probe", **spec: Any) -> Program:
    def program() -> None:
        selector = {"matchLabels": {"app": label}}
        k8s.apps.v1.Deployment(
            "web",
            metadata=project.metadata("web"),
            spec={"replicas": replicas, "selector": selector, "template": pod_template(label), **spec},
        )

    return program


def config_map(project: Project, metadata: dict[str, Any] | None = None, **content: Any) -> Program:
    def program() -> None:
        k8s.core.v1.ConfigMap("settings", metadata={"namespace": project.namespace, **(metadata or {})}, **content)

    return program


def nothing() -> None:
    """A program that declares nothing."""
