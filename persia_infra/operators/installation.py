"""The objects of which every operator consists: namespace, kinds, rights and Deployment, in this order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from persia_infra.kube.crd import Definition
from persia_infra.kube.objects import Body, KubeObject, metadata, object_labels, selector_labels, without_empty
from persia_infra.kube.placement import Placement
from persia_infra.kube.workloads import (
    confined_container,
    container_ports,
    deployment,
    non_root_pod,
    spread_over_nodes,
)
from persia_infra.operators.operator import OperatorSpec
from persia_infra.operators.rights import Right, Rights, policy_rules

NON_ROOT = 65532
_RBAC = "rbac.authorization.k8s.io"
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


@dataclass(frozen=True)
class Program:
    """The container of an operator."""

    image: str
    args: list[str]
    command: list[str] | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    variables: Sequence[Body] = ()
    readiness: Body | None = None
    liveness: Body | None = None
    user: int = NON_ROOT
    pull_always: bool = False
    recreate: bool = False
    """Whether the old pod must end before the new one starts, because the operator has no leader election."""
    critical: bool = False
    """Whether the pod has the priority class system-cluster-critical."""
    files: Mapping[str, Body] = field(default_factory=dict)
    """The sources of volumes, by the path at which they are mounted."""


class Installation:
    """Collects the objects of one operator, each after those that it depends on."""

    def __init__(self, name: str, namespace: str, *, makes_namespace: bool = True) -> None:
        """Starts with the operator's namespace.

        Args:
            name: The name of the operator's objects.
            namespace: The namespace that the operator runs in.
            makes_namespace: Whether the namespace is declared here.
        """
        self.name = name
        self.namespace = namespace
        self.labels = object_labels(name, name, "operator")
        self.objects: list[KubeObject] = []
        self._before_deployments: list[KubeObject] = []
        self._in_namespace: list[KubeObject] = []
        if makes_namespace:
            labels = {**self.labels, **_RESTRICTED}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(namespace, None, labels)}
            self._in_namespace.append(self._add(KubeObject("-namespace", body)))

    def define(self, kinds: Sequence[Definition]) -> list[KubeObject]:
        """Adds the kinds that the operator acts on."""
        return [self.define_body(kind.name, kind.body()) for kind in kinds]

    def define_body(self, definition_name: str, spec: Body) -> KubeObject:
        """Adds a kind whose CustomResourceDefinition is given as a complete `spec`."""
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata(definition_name, None, self.labels),
            "spec": spec,
        }
        return self._before(KubeObject(f"-{definition_name}", body))

    def allow(self, rights: Rights, *, watched: str | None = None, account: str | None = None) -> None:
        """Adds a ServiceAccount with exactly these rights."""
        account = account or self.name
        body = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(account, self.namespace, self.labels),
            "automountServiceAccountToken": False,
        }
        self._before(KubeObject(f"-{account}", body, tuple(self._in_namespace)))
        if everywhere := rights.in_all_namespaces(watched):
            self._grant(account, account, None, everywhere)
        if watched:
            name = f"{account}-watched" if watched == self.namespace else account
            self._grant(account, name, watched, rights.in_watched())
        if own := rights.in_own(self.namespace, watched):
            self._grant(account, f"{account}-own", self.namespace, own)

    def add_in_namespace(self, suffix: str, body: Body, *, ignore_changes: tuple[str, ...] = ()) -> KubeObject:
        """Adds another object in the operator's namespace that must exist before the operator starts."""
        return self._before(KubeObject(suffix, body, tuple(self._in_namespace), ignore_changes=ignore_changes))

    def add(self, suffix: str, body: Body, *, needs: Sequence[KubeObject] = ()) -> KubeObject:
        """Adds an object that the operator does not wait for."""
        return self._add(KubeObject(suffix, body, tuple(needs)))

    def deploy(
        self,
        spec: OperatorSpec,
        program: Program,
        *,
        placement: Placement | None,
        account: str | None = None,
        part: str | None = None,
    ) -> KubeObject:
        """Adds a Deployment of the operator, after all objects that have to exist before it."""
        name = part or self.name
        selector, labels = selector_labels(self.name, name, "operator"), object_labels(self.name, name, "operator")
        volumes = {f"files-{index}": item for index, item in enumerate(program.files.items())}
        container = {
            "name": name,
            "image": program.image,
            "imagePullPolicy": "Always" if program.pull_always else "IfNotPresent",
            "command": program.command,
            "args": program.args,
            "env": list(program.variables),
            "ports": container_ports(program.ports),
            "resources": spec.resources.as_kubernetes(),
            "securityContext": confined_container(read_only_root=True),
            "readinessProbe": program.readiness,
            "livenessProbe": program.liveness,
            "volumeMounts": [
                {"name": volume, "mountPath": path, **({} if "emptyDir" in source else {"readOnly": True})}
                for volume, (path, source) in volumes.items()
            ],
        }
        pod = {
            "serviceAccountName": account or self.name,
            "automountServiceAccountToken": True,
            "securityContext": non_root_pod(program.user),
            "nodeSelector": placement.node_selector if placement else None,
            "tolerations": placement.tolerations if placement else None,
            "topologySpreadConstraints": spread_over_nodes(selector) if spec.replicas > 1 else None,
            "priorityClassName": "system-cluster-critical" if program.critical else None,
            "containers": [without_empty(container)],
            "volumes": [{"name": volume, **source} for volume, (_, source) in volumes.items()],
        }
        return self._add(
            deployment(
                f"-{name}",
                name,
                self.namespace,
                labels,
                replicas=spec.replicas,
                selector=selector,
                template={"metadata": {"labels": labels}, "spec": without_empty(pod)},
                recreate=program.recreate,
                needs=[*self._in_namespace, *self._before_deployments],
            )
        )

    def _add(self, added: KubeObject) -> KubeObject:
        self.objects.append(added)
        return added

    def _before(self, added: KubeObject) -> KubeObject:
        self._before_deployments.append(added)
        return self._add(added)

    def _grant(self, account: str, name: str, namespace: str | None, rights: Sequence[Right]) -> None:
        """Adds a role and its binding, either in one namespace or in the whole cluster."""
        kind = "Role" if namespace else "ClusterRole"
        needs = tuple(self._in_namespace) if namespace else ()
        described = {"apiVersion": f"{_RBAC}/v1", "metadata": metadata(name, namespace, self.labels)}
        role = KubeObject(f"-{name}", {**described, "kind": kind, "rules": policy_rules(rights)}, needs)
        binding = {
            **described,
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}],
        }
        self._before(role)
        self._before(KubeObject(f"-{name}", binding, (*needs, role)))


def http_probe(path: str, port: str, *, delay: int = 5, https: bool = False) -> Body:
    """An HTTP health check."""
    get = {"path": path, "port": port, **({"scheme": "HTTPS"} if https else {})}
    return {"httpGet": get, "initialDelaySeconds": delay, "periodSeconds": 10, "timeoutSeconds": 3}
