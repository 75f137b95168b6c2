"""The objects of a NATS cluster: a StatefulSet, or the NatsCluster object that the NATS operator acts on."""

from collections.abc import Mapping

from persia_infra.kube.objects import (
    Body,
    KubeObject,
    ObjectGroup,
    hashed_name,
    metadata,
    object_labels,
    selector_labels,
    without_empty,
)
from persia_infra.kube.placement import Placement
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.kube.types.base import trusted
from persia_infra.kube.workloads import (
    config_map,
    confined_container,
    container_ports,
    disruption_budget,
    field_variable,
    from_everywhere,
    from_pods,
    network_policy,
    non_root_pod,
    service,
    spread_over_nodes,
    stateful_set,
)
from persia_infra.nats.config import (
    AUTH_FOLDER,
    CLIENT,
    CLUSTER,
    MONITOR,
    PID_FILE,
    STORE_FOLDER,
    TLS_FOLDERS,
    nats_conf,
)
from persia_infra.nats.spec import NatsSpec

API_VERSION = "nats.io/v1alpha2"
_USER = 1000
_STORE_VOLUME = "store"
_PORTS = {"client": CLIENT, "cluster": CLUSTER, "monitor": MONITOR}


def nats_url(name: str) -> str:
    """The address that clients in the same namespace connect to."""
    return f"nats://{name}:{CLIENT}"


def nats_objects(
    spec: NatsSpec,
    name: str,
    namespace: str,
    *,
    placement: Placement | None = None,
    client_labels: Mapping[str, str] | None = None,
    suffix: str = "",
) -> ObjectGroup:
    """Returns the objects of a NATS cluster.

    Args:
        spec: The cluster.
        name: The name of the client Service, and the prefix of the other objects' names.
        namespace: The namespace of all objects.
        placement: The pool of the servers; any node when absent.
        client_labels: Labels of the pods that may connect; all pods of the namespace when absent.
        suffix: The suffix to the parent's logical name, for the cluster of a job.
    """
    labels = object_labels("nats", name, "nats")
    if spec.mode == "operator":
        selector = {"app": "nats", "nats_cluster": name}
        members = [_operator_object(spec, name, namespace, labels, selector, placement)]
    else:
        selector = selector_labels("nats", name, "nats")
        members = _native_objects(spec, name, namespace, labels, selector, placement)
    ingress = [from_pods(client_labels, [CLIENT]), from_pods(selector, [CLIENT, CLUSTER]), from_everywhere([MONITOR])]
    members.append(network_policy("-network", name, namespace, labels, selector=selector, ingress=ingress))
    return ObjectGroup("NatsCluster", tuple(members), suffix, {"url": nats_url(name)})


def server_template(spec: NatsSpec, name: str, placement: Placement | None = None) -> PodTemplate:
    """The pod template of the servers: that of the StatefulSet, or what the NATS operator creates."""
    if spec.mode == "operator":
        described = _operator_object_spec(spec, {"app": "nats", "nats_cluster": name}, placement)
        pod, policy = described["template"]["spec"], described["pod"]
        container = {"image": f"{spec.server_image}:{spec.server_version}", "resources": policy["resources"]}
        nodes = without_empty({key: policy.get(key) for key in ("nodeSelector", "tolerations")})
        return trusted(PodTemplate, {"spec": {**pod, **nodes, "containers": [pod["containers"][0] | container]}})
    labels, selector = object_labels("nats", name, "nats"), selector_labels("nats", name, "nats")
    described = {"labels": {**spec.pod.labels, **labels}, "annotations": dict(spec.pod.annotations)}
    config = hashed_name(f"{name}-config", _files(spec, name))
    body = {"metadata": without_empty(described), "spec": _pod(spec, config, selector, placement)}
    return trusted(PodTemplate, body)


def _files(spec: NatsSpec, name: str) -> dict[str, str]:
    return {"nats.conf": nats_conf(spec, name, _headless(name))}


def _headless(name: str) -> str:
    return f"{name}-headless"


def _native_objects(
    spec: NatsSpec,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    placement: Placement | None,
) -> "list[KubeObject | ObjectGroup]":
    config = config_map("-config", f"{name}-config", namespace, labels, _files(spec, name))
    peers = service("-headless", _headless(name), namespace, labels, selector=selector, ports=_PORTS, headless=True)
    servers = stateful_set(
        "-servers",
        name,
        namespace,
        {**spec.pod.labels, **labels},
        service_name=_headless(name),
        replicas=spec.size,
        selector=selector,
        template=server_template(spec, name, placement).as_kubernetes(),
        claims=_claims(spec),
        needs=[config, peers],
    )
    # Pulumi waits until a Service has ready pods, so the StatefulSet comes first.
    clients = service("", name, namespace, labels, selector=selector, ports={"client": CLIENT}, needs=[servers])
    budget = disruption_budget("-budget", name, namespace, labels, selector=selector)
    return [config, peers, servers, clients, budget]


def _operator_object(
    spec: NatsSpec,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    placement: Placement | None,
) -> KubeObject:
    body = {
        "apiVersion": API_VERSION,
        "kind": "NatsCluster",
        "metadata": metadata(name, namespace, labels),
        "spec": _operator_object_spec(spec, selector, placement),
    }
    return KubeObject("", body)


def _operator_object_spec(spec: NatsSpec, selector: Mapping[str, str], placement: Placement | None) -> Body:
    """The `spec` of the NatsCluster that the NATS operator reads, with every value where it takes effect."""
    body = spec.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    body |= {"size": spec.size, "version": spec.server_version}
    body["natsConfig"] = {**body.get("natsConfig", {}), "maxPayload": spec.nats_config.max_payload}
    pod = {
        **body.get("pod", {}),
        "resources": spec.server_resources.as_kubernetes(),
        "antiAffinity": spec.pod.anti_affinity,
    }
    if nodes := _node_selector(spec, placement):
        pod["nodeSelector"] = nodes
    if placement and placement.taints:
        pod["tolerations"] = [*placement.tolerations, *pod.get("tolerations", [])]
    return {**body, "pod": pod, "template": {"spec": _operator_pod(selector)}}


def _operator_pod(selector: Mapping[str, str]) -> Body:
    """The part of the pod template that the operator has no fields for: security and spreading, as in native mode."""
    return {
        "automountServiceAccountToken": False,
        "securityContext": non_root_pod(_USER),
        "topologySpreadConstraints": spread_over_nodes(selector),
        "containers": [{"name": "nats", "securityContext": confined_container(read_only_root=True)}],
    }


def _node_selector(spec: NatsSpec, placement: Placement | None) -> dict[str, str]:
    return {**spec.pod.node_selector, **(placement.node_selector if placement else {})}


def _claims(spec: NatsSpec) -> list[Body]:
    if spec.jetstream is None:
        return []
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": spec.jetstream.storage_class_name,
        "resources": {"requests": {"storage": spec.jetstream.storage}},
    }
    return [{"metadata": {"name": _STORE_VOLUME}, "spec": without_empty(claim)}]


def _pod(spec: NatsSpec, config_name: str, selector: Mapping[str, str], placement: Placement | None) -> Body:
    secrets = _secrets(spec)
    mounts: list[Body] = [
        {"name": "config", "mountPath": "/etc/nats", "readOnly": True},
        {"name": "pid", "mountPath": "/var/run/nats"},
        *({"name": name, "mountPath": path, "readOnly": True} for name, (path, _) in secrets.items()),
    ]
    if spec.jetstream:
        # The StatefulSet adds the volume from its claim, so the template does not declare it.
        mounts.append({"name": _STORE_VOLUME, "mountPath": STORE_FOLDER})
    # Images that are not based on Alpine contain only the server, in the root folder.
    program = "nats-server" if "alpine" in spec.server_version else "/nats-server"
    container = {
        "name": "nats",
        "image": f"{spec.server_image}:{spec.server_version}",
        "command": [program],
        "args": ["--config", "/etc/nats/nats.conf", "--name", "$(POD_NAME)"],
        "env": [field_variable("POD_NAME", "metadata.name")],
        "ports": container_ports(_PORTS),
        "resources": spec.server_resources.as_kubernetes(),
        "securityContext": confined_container(read_only_root=True),
        "startupProbe": _health("/healthz", period=2, failures=150),
        "readinessProbe": _health("/healthz?js-server-only=true", period=10, failures=3),
        "livenessProbe": _health("/healthz?js-enabled-only=true", period=30, failures=3),
        "lifecycle": {"preStop": {"exec": {"command": [program, f"-sl=ldm={PID_FILE}"]}}},
        "volumeMounts": mounts,
    }
    tolerations = [
        *(placement.tolerations if placement else []),
        *(toleration.as_kubernetes() for toleration in spec.pod.tolerations),
    ]
    return without_empty(
        {
            "automountServiceAccountToken": False,
            "securityContext": non_root_pod(_USER),
            "nodeSelector": _node_selector(spec, placement),
            "tolerations": tolerations,
            "affinity": _apart(selector) if spec.pod.anti_affinity else None,
            "topologySpreadConstraints": spread_over_nodes(selector),
            # Longer than the lame duck periods of 10 and 30 seconds, so that clients reconnect before the server exits.
            "terminationGracePeriodSeconds": 60,
            "containers": [container],
            "volumes": [
                {"name": "config", "configMap": {"name": config_name}},
                {"name": "pid", "emptyDir": {}},
                *({"name": name, "secret": {"secretName": secret}} for name, (_, secret) in secrets.items()),
            ],
        }
    )


def _secrets(spec: NatsSpec) -> dict[str, tuple[str, str]]:
    """The volumes from Secrets, by name: the path at which each is mounted, and the Secret's name."""
    secrets = {}
    if spec.tls and spec.tls.server_secret:
        secrets["server-tls"] = (TLS_FOLDERS["server"], spec.tls.server_secret)
    if spec.tls and spec.tls.routes_secret:
        secrets["routes-tls"] = (TLS_FOLDERS["routes"], spec.tls.routes_secret)
    if spec.auth:
        secrets["clients-auth"] = (AUTH_FOLDER, spec.auth.clients_auth_secret)
    return secrets


def _apart(selector: Mapping[str, str]) -> Body:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": dict(selector)}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _health(path: str, *, period: int, failures: int) -> Body:
    return {
        "httpGet": {"path": path, "port": "monitor"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
