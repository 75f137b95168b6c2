"""The pods of a PERSIA job: a template for each role and one for the metrics gateway.

PERSIA's images run as root and write below their own folders, so the roles' pods are confined (no privilege
escalation, no capabilities, the default seccomp profile) but not forced to run as another user.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from persia_infra.jobs.persia.launch import GATEWAY_PORT, LAUNCHES, files_of, variables
from persia_infra.jobs.persia.roles import NnWorker, Role
from persia_infra.jobs.settings.pods import final_pod, placed
from persia_infra.jobs.settings.profiles import over
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.shares import GROUP_ANNOTATION, VOLCANO
from persia_infra.kube.objects import object_labels, without_empty
from persia_infra.kube.placement import Placement
from persia_infra.kube.pod_templates import (
    SHARED_MEMORY,
    Container,
    ContainerPort,
    ContainerSecurity,
    PodSecurity,
    PodSpec,
    PodTemplate,
    SeccompProfile,
    TemplateMetadata,
    main_container,
)
from persia_infra.kube.pods import Resources, Volume, VolumeMount, mount_folder, mounts_at
from persia_infra.kube.types.base import trusted
from persia_infra.kube.types.pods import Probe
from persia_infra.kube.workloads import confined_container, container_ports, non_root_pod
from persia_infra.spec.base import Place

if TYPE_CHECKING:
    from persia_infra.jobs.persia.spec import PersiaJobSpec

GATEWAY = "metrics-gateway"
_GATEWAY_RESOURCES = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
_GATEWAY_IMAGE = "prom/pushgateway:v1.11.0"
_NOBODY = 65534
_PROBE = {"tcpSocket": {"port": "persia"}, "periodSeconds": 10}
_PLACES = {
    ("spec", "containers", 0, "env"): "env",
    ("spec", "containers", 0, "resources"): "resources",
    ("spec", "containers", 0, "volumeMounts"): "volumeMounts",
}


def shared_label(job: str) -> dict[str, str]:
    """The label that all pods of a job have; it is the only one that the PERSIA operator sets."""
    return {"persia_job": job}


def labels_of(job: str, component: str) -> dict[str, str]:
    """The labels of an object of the job, and of its pods."""
    return {**object_labels("persia", job, component), **shared_label(job)}


def settings_of(role: Role, profiles: Mapping[str, RunSettings]) -> tuple[RunSettings, list[Place]]:
    """The settings of a role merged with its profile, and the places that the profile overrides."""
    return over(profiles.get(role.profile or "", RunSettings.defaults()), role.settings)


def role_template(
    spec: "PersiaJobSpec", name: str, key: str, profiles: Mapping[str, RunSettings], placement: Placement | None = None
) -> PodTemplate:
    """The final pod template of a role.

    Args:
        spec: The job.
        name: The job's name.
        key: The role.
        profiles: The environment's profiles.
        placement: The pool of the pods.
    """
    role, launch = spec.roles[key], LAUNCHES[key]
    settings, _ = settings_of(role, profiles)
    template, _ = final_pod(_described(spec, key), settings, job=name, placement=placement)
    pod, main = template.spec, main_container(template.spec)
    volumes, mounts = list(pod.volumes), list(main.volume_mounts)
    for files in files_of(name, spec, key):
        volumes.append(trusted(Volume, {"name": files.volume, "configMap": {"name": files.object_name}}))
        mounts.append(VolumeMount(name=files.volume, mount_path=files.folder, read_only=True))
    if isinstance(role, NnWorker) and not mounts_at(main, SHARED_MEMORY):
        volumes.append(_shared_memory(spec.SHARED_MEMORY_VOLUME, role))
        mounts.append(VolumeMount(name=spec.SHARED_MEMORY_VOLUME, mount_path=SHARED_MEMORY))
    container: dict[str, Any] = {
        "image": role.image or launch.image,
        "image_pull_policy": spec.image_pull_policy,
        "command": ["persia-launcher"],
        "args": list(launch.args),
        "env": variables(spec, name, key, main.env),
        "volume_mounts": mounts,
    }
    changes: dict[str, Any] = {
        "containers": [main.model_copy(update=without_empty(container))],
        "volumes": volumes,
        "automount_service_account_token": role.service_account_name is not None,
        "service_account_name": role.service_account_name,
        "priority_class_name": role.priority_class_name,
        "scheduler_name": VOLCANO if spec.needs_volcano else None,
    }
    annotations = {**template.metadata.annotations, **({GROUP_ANNOTATION: name} if spec.needs_volcano else {})}
    described = {"labels": labels_of(name, launch.suffix), "annotations": annotations}
    return template.model_copy(
        update={
            "metadata": TemplateMetadata.model_construct(**without_empty(described)),
            "spec": pod.model_copy(update=without_empty(changes)),
        }
    )


def overridden_places(spec: "PersiaJobSpec", key: str, profiles: Mapping[str, RunSettings]) -> list[Place]:
    """The places in a role that its settings or profile override; `volumes` stands for the job's volumes."""
    role = spec.roles[key]
    settings, by_profile = settings_of(role, profiles)
    _, in_template = final_pod(_described(spec, key), settings, job="job")
    overridden: list[Place] = [*(("settings", *place) for place in by_profile), *map(_role_place, in_template)]
    mounted = any(mount_folder(mount) == SHARED_MEMORY for mount in settings.mounts)
    if isinstance(role, NnWorker) and role.shared_memory and mounted:
        overridden.append(("sharedMemory",))
    return overridden


def gateway_template(name: str, placement: Placement | None = None) -> PodTemplate:
    """The pod template of the metrics gateway."""
    container = {
        "name": "pushgateway",
        "image": _GATEWAY_IMAGE,
        "ports": container_ports({"http": GATEWAY_PORT}),
        "resources": _GATEWAY_RESOURCES,
        "securityContext": confined_container(read_only_root=True),
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": "http"}},
    }
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": non_root_pod(_NOBODY),
        "containers": [container],
    }
    template = trusted(PodTemplate, {"metadata": {"labels": labels_of(name, GATEWAY)}, "spec": pod})
    return placed(template, placement)


def _described(spec: "PersiaJobSpec", key: str) -> PodTemplate:
    """A role's own fields as a pod template.

    It is not validated again, because errors are already reported at the role's own fields.
    """
    role, launch = spec.roles[key], LAUNCHES[key]
    container: dict[str, Any] = {
        "name": launch.container,
        "env": role.env,
        "volume_mounts": role.volume_mounts,
        "security_context": trusted(ContainerSecurity, confined_container()),
        "resources": role.resources if role.resources != Resources() else None,
        "ports": [trusted(ContainerPort, port) for port in container_ports(launch.ports)],
        "readiness_probe": trusted(Probe, _PROBE) if launch.probed else None,
    }
    security = role.security_context or PodSecurity()
    if security.seccomp_profile is None:
        security = security.model_copy(update={"seccomp_profile": SeccompProfile(type="RuntimeDefault")})
    pod: dict[str, Any] = {
        "containers": [Container.model_construct(**without_empty(container))],
        "volumes": list(spec.volumes),
        "node_selector": role.node_selector,
        "tolerations": role.tolerations,
        "affinity": role.affinity,
        "security_context": security,
    }
    return PodTemplate.model_construct(spec=PodSpec.model_construct(**without_empty(pod)))


def _shared_memory(volume: str, worker: NnWorker) -> Volume:
    """Shared memory for PyTorch's worker processes; the container runtime's default is only 64 MiB."""
    room = {"medium": "Memory", "sizeLimit": worker.shared_memory}
    return trusted(Volume, {"name": volume, "emptyDir": without_empty(room)})


def _role_place(in_template: Place) -> Place:
    for prefix, key in _PLACES.items():
        if in_template[: len(prefix)] == prefix:
            return (key, *in_template[len(prefix) :])
    return in_template[1:]
