"""Builds the pod template that is deployed from the described template, its settings and its pool.

Every kind of job builds the pods of its roles here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from persia_infra.jobs.settings.profiles import affinity_over, last, mapping_over, resources_over, union
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.settings.run_volumes import GCS_FUSE_DRIVER
from persia_infra.kube.placement import Placement
from persia_infra.kube.pod_security import confined
from persia_infra.kube.pod_templates import (
    Container,
    ContainerSecurity,
    PodSecurity,
    PodSpec,
    PodTemplate,
    Toleration,
    all_containers,
    main_container,
)
from persia_infra.kube.pods import mount_folder
from persia_infra.kube.types.base import trusted
from persia_infra.spec.base import Place

GCS_FUSE_ANNOTATION = {"gke-gcsfuse/volumes": "true"}
"""The annotation that makes GKE add the sidecar that mounts buckets."""


def final_pod(
    template: PodTemplate, settings: RunSettings, *, job: str, placement: Placement | None = None
) -> tuple[PodTemplate, list[Place]]:
    """Returns the pod template that is deployed, and the places of the given one that the settings override.

    Args:
        template: The template as it was described.
        settings: All settings that apply, profiles included; they win over the template.
        job: The job's name, which the names of its claims start with.
        placement: The pool of its pods.
    """
    overridden: list[Place] = []
    pod = template.spec
    containers = [_final_main(main_container(pod), settings, overridden), *pod.containers[1:]]
    own = {volume.name: volume for volume in settings.pod_volumes(job)}
    for index, volume in enumerate(pod.volumes):
        if own.get(volume.name, volume) != volume:
            overridden.append(("spec", "volumes", index))
    wanted = {key: getattr(settings, key) for key in ("fs_group", "run_as_user", "run_as_group")}
    users = {key: number for key, number in wanted.items() if number is not None}
    overridden += _other_users(pod.security_context, users, ("spec", "securityContext"))
    for place, container in all_containers(pod):
        overridden += _other_users(container.security_context, users, ("spec", *place, "securityContext"))
    changes: dict[str, Any] = {
        "containers": [_without_users(container, users) for container in containers],
        "init_containers": [_without_users(container, users) for container in pod.init_containers],
        "volumes": [*(volume for volume in pod.volumes if volume.name not in own), *own.values()],
        "node_selector": mapping_over(settings.node_selector, pod.node_selector, ("spec", "nodeSelector"), overridden),
        "tolerations": union(pod.tolerations, settings.tolerations),
        "affinity": affinity_over(settings.affinity, pod.affinity, overridden, ("spec", "affinity")),
        "security_context": pod.security_context.model_copy(update=users) if users else pod.security_context,
    }
    settled = template.model_copy(update={"spec": pod.model_copy(update=_changed(pod, changes))})
    return with_bucket_sidecar(confined(placed(settled, placement))), overridden


def placed(template: PodTemplate, placement: Placement | None) -> PodTemplate:
    """The template with the node selector and tolerations of its pool."""
    if placement is None:
        return template
    pod = template.spec
    tolerations = [trusted(Toleration, toleration) for toleration in placement.tolerations]
    changes = {
        "node_selector": {**pod.node_selector, **placement.node_selector},
        "tolerations": union(pod.tolerations, tolerations),
    }
    return template.model_copy(update={"spec": pod.model_copy(update=_changed(pod, changes))})


def with_bucket_sidecar(template: PodTemplate) -> PodTemplate:
    """The template with the sidecar's annotation, if its pod mounts a bucket."""
    if not _mounts_bucket(template.spec):
        return template
    annotations = {**template.metadata.annotations, **GCS_FUSE_ANNOTATION}
    return template.model_copy(update={"metadata": template.metadata.model_copy(update={"annotations": annotations})})


def _mounts_bucket(pod: PodSpec) -> bool:
    buckets = {volume.name for volume in pod.volumes if volume.csi and volume.csi.driver == GCS_FUSE_DRIVER}
    return any(mount.name in buckets for _, container in all_containers(pod) for mount in container.volume_mounts)


def _final_main(main: Container, settings: RunSettings, overridden: list[Place]) -> Container:
    place: Place = ("spec", "containers", 0)
    taken = {mount_folder(mount): mount for mount in settings.mounts}
    for index, mount in enumerate(main.volume_mounts):
        if taken.get(mount_folder(mount), mount) != mount:
            overridden.append((*place, "volumeMounts", index))
    given = {variable.name: variable for variable in settings.variables}
    for index, variable in enumerate(main.env):
        if given.get(variable.name, variable) != variable:
            overridden.append((*place, "env", index))
    changes: dict[str, Any] = {
        "env": [*(variable for variable in main.env if variable.name not in given), *given.values()],
        "env_from": last(settings.variable_sources, main.env_from),
        "resources": resources_over(settings.resources.kubernetes, main.resources, (*place, "resources"), overridden),
        "volume_mounts": [
            *(mount for mount in main.volume_mounts if mount_folder(mount) not in taken),
            *settings.mounts,
        ],
    }
    return main.model_copy(update=_changed(main, changes))


def _changed(model: Any, changes: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """The changes that have an effect; dropping the others keeps keys absent that were not given."""
    return {key: value for key, value in changes.items() if getattr(model, key) != value}


def _other_users(security: PodSecurity | ContainerSecurity, wanted: Mapping[str, int], place: Place) -> Iterator[Place]:
    for key, number in wanted.items():
        if getattr(security, key, None) not in (None, number):
            yield *place, to_camel(key)


def _without_users(container: Container, wanted: Mapping[str, int]) -> Container:
    """The container without users and groups of its own, which would take precedence over the pod's."""
    security = container.security_context
    cleared = {key: None for key in wanted if getattr(security, key, None) is not None}
    if not cleared:
        return container
    return container.model_copy(update={"security_context": security.model_copy(update=cleared)})
