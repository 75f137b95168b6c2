"""Builds the objects around pods: StatefulSets, Deployments, Services, NetworkPolicies and what they read."""

from collections.abc import Mapping, Sequence

from persia_infra.kube.objects import Body, KubeObject, ObjectGroup, hashed_name, metadata, without_empty

POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
"""The label that holds a pod's number within its StatefulSet."""
_START_TIMEOUT = "30m"
"""How long pods of a StatefulSet may take to start: machines may have to be rented, and images are large."""


def config_map(suffix: str, base_name: str, namespace: str, labels: Mapping[str, str], files: Body) -> KubeObject:
    """Files for pods, under a name that changes with them."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(hashed_name(base_name, files), namespace, labels),
        "data": dict(files),
        "immutable": True,
    }
    return KubeObject(suffix, body)


def service(
    suffix: str,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    *,
    selector: Mapping[str, str],
    ports: Mapping[str, int],
    headless: bool = False,
    needs: Sequence[KubeObject] = (),
) -> KubeObject:
    """A Service that leads to container ports of the same names.

    A headless one gives each pod a name of its own, also before it is ready: peers look for it while it starts.
    """
    spec: Body = {"selector": dict(selector)}
    if ports:
        spec["ports"] = [{"name": port, "port": number, "targetPort": port} for port, number in ports.items()]
    if headless:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, namespace, labels), "spec": spec}
    return KubeObject(suffix, body, tuple(needs))


def stateful_set(
    suffix: str,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    *,
    service_name: str,
    replicas: int,
    selector: Mapping[str, str],
    template: Body,
    claims: Sequence[Body] = (),
    needs: "Sequence[KubeObject | ObjectGroup]" = (),
) -> KubeObject:
    """Numbered pods that start all at once; each has disks of its own from `claims`."""
    spec: Body = {
        "replicas": replicas,
        "serviceName": service_name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": dict(selector)},
        "template": template,
    }
    if claims:
        spec["volumeClaimTemplates"] = list(claims)
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(name, namespace, labels), "spec": spec}
    return KubeObject(suffix, body, tuple(needs), timeout=_START_TIMEOUT)


def deployment(
    suffix: str,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    *,
    replicas: int,
    selector: Mapping[str, str],
    template: Body,
    recreate: bool = False,
    needs: Sequence[KubeObject] = (),
) -> KubeObject:
    """Pods that are interchangeable; with `recreate` the old ones end before new ones start."""
    spec: Body = {
        "replicas": replicas,
        "selector": {"matchLabels": dict(selector)},
        "template": template,
    }
    if recreate:
        spec["strategy"] = {"type": "Recreate"}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name, namespace, labels), "spec": spec}
    return KubeObject(suffix, body, tuple(needs))


def disruption_budget(
    suffix: str, name: str, namespace: str, labels: Mapping[str, str], *, selector: Mapping[str, str]
) -> KubeObject:
    """Lets node drains evict one pod at a time."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, namespace, labels),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(selector)}},
    }
    return KubeObject(suffix, body)


def network_policy(
    suffix: str,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    *,
    selector: Mapping[str, str],
    ingress: Sequence[Body],
) -> KubeObject:
    """Limits who may connect to pods; the pods' own connections stay unrestricted."""
    body = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(name, namespace, labels),
        "spec": {
            "podSelector": {"matchLabels": dict(selector)},
            "policyTypes": ["Ingress"],
            "ingress": list(ingress),
        },
    }
    return KubeObject(suffix, body)


def from_pods(labels: Mapping[str, str] | None, ports: Sequence[int] = ()) -> Body:
    """Admits pods of the same namespace with these labels, or all of its pods; to some ports, or to all."""
    peer = {"podSelector": {"matchLabels": dict(labels)} if labels else {}}
    return without_empty({"from": [peer], "ports": _policy_ports(ports)})


def from_everywhere(ports: Sequence[int]) -> Body:
    """Admits connections to these ports from anywhere."""
    return {"ports": _policy_ports(ports)}


def _policy_ports(ports: Sequence[int]) -> list[Body]:
    return [{"port": port, "protocol": "TCP"} for port in ports]


def container_ports(ports: Mapping[str, int]) -> list[Body]:
    """Named ports of a container."""
    return [{"name": name, "containerPort": port} for name, port in ports.items()]


def field_variable(name: str, field_path: str) -> Body:
    """A variable that holds a field of the pod itself."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field_path}}}


def confined_container(*, read_only_root: bool = False) -> Body:
    """The security context of a container that can neither gain privileges nor use capabilities."""
    context: Body = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {**context, "readOnlyRootFilesystem": True} if read_only_root else context


def non_root_pod(user: int) -> Body:
    """The security context of a pod that runs as this user and group, with the default system call filter."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def spread_over_nodes(selector: Mapping[str, str]) -> list[Body]:
    """Spreads pods over as many nodes as there are, without insisting on it."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(selector)},
        }
    ]
