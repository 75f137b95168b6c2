"""The objects of a PERSIA job: native workloads, or one object from which the PERSIA operator creates pods.

Natively, each role is a StatefulSet with its headless Service. The job has a NATS cluster and a metrics gateway of
its own. With `mode: operator` the roles are one PersiaJob object, and the operator creates the metrics gateway.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from persia_infra.jobs.job import Placements, Workload
from persia_infra.jobs.persia.launch import (
    GATEWAY_PORT,
    LAUNCHES,
    ConfigFiles,
    files_of,
    gateway_service,
    own_nats_name,
)
from persia_infra.jobs.persia.pods import GATEWAY, labels_of, shared_label
from persia_infra.jobs.shares import claims_of, pod_group, share_objects
from persia_infra.kube.objects import Body, KubeObject, ObjectGroup, metadata, selector_labels, without_empty
from persia_infra.kube.pod_templates import SHARED_MEMORY
from persia_infra.kube.workloads import (
    config_map,
    deployment,
    disruption_budget,
    from_everywhere,
    from_pods,
    network_policy,
    service,
    stateful_set,
)
from persia_infra.nats.objects import nats_objects, nats_url

if TYPE_CHECKING:
    from persia_infra.jobs.persia.spec import PersiaJobSpec

API_VERSION = "persia.com/v1"


def persia_objects(spec: "PersiaJobSpec", name: str, namespace: str, placements: Placements) -> ObjectGroup:
    """Returns the objects of a PERSIA job.

    Args:
        spec: The job.
        name: The job's name.
        namespace: The namespace of its objects.
        placements: The pool of each role.
    """
    members: list[KubeObject | ObjectGroup] = []
    needed: list[KubeObject | ObjectGroup] = []
    if nats := spec.own_nats:
        servers = nats_objects(
            nats,
            own_nats_name(name),
            namespace,
            placement=placements.get("nats"),
            client_labels=shared_label(name),
            suffix="-nats",
        )
        members.append(servers)
        needed.append(servers)
    files = _config_maps(spec, name, namespace)
    members += files.values()
    if spec.mode == "operator":
        body = {
            "apiVersion": API_VERSION,
            "kind": "PersiaJob",
            "metadata": metadata(name, namespace, labels_of(name, "job")),
            "spec": operator_object_spec(spec, name),
        }
        members.append(
            # The operator acts only on new objects, so a changed one has to be replaced.
            KubeObject("", body, (*needed, *files.values()), replace_on_changes=("spec",), delete_before_replace=True)
        )
    else:
        loads = {load.role: load for load in spec.workloads(name, placements)}
        if spec.enable_metrics:
            members += _gateway_objects(name, namespace, loads["metricsGateway"])
        if spec.needs_volcano:
            # The pods of the roles start together or not at all; NATS and the metrics gateway start before them.
            count = sum(role.replicas for role in spec.roles.values())
            gang = pod_group(name, namespace, labels_of(name, "gang"), members=count, queue=spec.queue)
            members.append(gang)
            needed.append(gang)
        shares = share_objects(spec.shares(name), namespace, labels_of(name, "share"))
        members += shares
        needed += claims_of(shares)
        for key in spec.roles:
            own = [files[each.base_name] for each in files_of(name, spec, key)]
            members += _role_objects(name, namespace, key, loads[key], [*needed, *own])
    members.append(_network_policy(spec, name, namespace))
    given = spec.given_nats_url
    url = nats_url(own_nats_name(name)) if spec.own_nats else (given and given.value) or ""
    return ObjectGroup(spec.COMPONENT, tuple(members), outputs={"natsUrl": url})


def _selector(name: str, component: str) -> dict[str, str]:
    return selector_labels("persia", name, component)


def _config_maps(spec: "PersiaJobSpec", name: str, namespace: str) -> dict[str, KubeObject]:
    """A ConfigMap for PERSIA's configuration and one per script, so that a change restarts only their readers."""
    described: Mapping[str, ConfigFiles] = {
        files.base_name: files for key in spec.roles for files in files_of(name, spec, key)
    }
    return {
        base: config_map(base.removeprefix(name), base, namespace, labels_of(name, "config"), files.files)
        for base, files in described.items()
    }


def _network_policy(spec: "PersiaJobSpec", name: str, namespace: str) -> KubeObject:
    """Allows connections between the job's own pods, and from anywhere to the port of the metrics gateway."""
    ingress = [from_pods(shared_label(name))]
    if spec.enable_metrics:
        ingress.append(from_everywhere([GATEWAY_PORT]))
    labels = labels_of(name, "network")
    return network_policy("-network", name, namespace, labels, selector=shared_label(name), ingress=ingress)


def _role_objects(
    name: str, namespace: str, key: str, load: Workload, needed: "list[KubeObject | ObjectGroup]"
) -> list[KubeObject]:
    launch = LAUNCHES[key]
    suffix, object_name = f"-{launch.suffix}", f"{name}-{launch.suffix}"
    labels, selector = labels_of(name, launch.suffix), _selector(name, launch.suffix)
    peers = service(suffix, object_name, namespace, labels, selector=selector, ports=launch.ports, headless=True)
    pods = stateful_set(
        suffix,
        object_name,
        namespace,
        labels,
        service_name=object_name,
        replicas=load.replicas,
        selector=selector,
        template=load.template.as_kubernetes(),
        needs=[*needed, peers],
    )
    return [peers, pods, disruption_budget(suffix, object_name, namespace, labels, selector=selector)]


def _gateway_objects(name: str, namespace: str, load: Workload) -> list[KubeObject]:
    suffix, labels, selector = f"-{GATEWAY}", labels_of(name, GATEWAY), _selector(name, GATEWAY)
    gateway = deployment(
        suffix,
        f"{name}-{GATEWAY}",
        namespace,
        labels,
        replicas=load.replicas,
        selector=selector,
        template=load.template.as_kubernetes(),
    )
    ports = {"http": GATEWAY_PORT}
    address = service(suffix, gateway_service(name), namespace, labels, selector=selector, ports=ports, needs=[gateway])
    return [gateway, address]


def operator_object_spec(spec: "PersiaJobSpec", name: str) -> Body:
    """The `spec` of the PersiaJob object: what was described, and the library's additions, in PERSIA's own fields."""
    body = spec.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    body["persiaEnv"] = {
        "PERSIA_GLOBAL_CONFIG": spec.global_config_path,
        "PERSIA_EMBEDDING_CONFIG": spec.embedding_config_path,
    }
    for key, variable in (("nnWorker", "PERSIA_NN_WORKER_ENTRY"), ("dataloader", "PERSIA_DATALOADER_ENTRY")):
        if path := spec.entry_path(key):
            body["persiaEnv"][variable] = path
    if spec.own_nats:
        variable = {"name": "PERSIA_NATS_URL", "value": nats_url(own_nats_name(name))}
        body["env"] = [variable, *body.get("env", [])]
    volumes: dict[str, Body] = {}
    for key, role in spec.roles.items():
        mounts = list(body[key].get("volumeMounts", []))
        for files in files_of(name, spec, key):
            volumes[files.volume] = {"configMap": {"name": files.object_name}}
            mounts.append({"name": files.volume, "mountPath": files.folder, "readOnly": True})
        if key == "nnWorker" and spec.nn_worker and not role.mounts_shared_memory:
            room = {"medium": "Memory", "sizeLimit": spec.nn_worker.shared_memory}
            volumes[spec.SHARED_MEMORY_VOLUME] = {"emptyDir": without_empty(room)}
            mounts.append({"name": spec.SHARED_MEMORY_VOLUME, "mountPath": SHARED_MEMORY})
        body[key] = {**body[key], "replicas": role.replicas} | ({"volumeMounts": mounts} if mounts else {})
    if volumes:
        body["volumes"] = [*body.get("volumes", []), *({"name": name, **source} for name, source in volumes.items())]
    return body
