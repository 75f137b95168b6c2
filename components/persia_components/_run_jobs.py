"""What jobs made of pod templates declare besides themselves: claims on shares, and the gang they are scheduled as."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_kubernetes import apiextensions, core, meta

from persia_components._children import child_options, metadata, object_labels

if TYPE_CHECKING:
    from persia_infra.jobs.settings.run_volumes import Share

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
_NOMINAL_SIZE = "1Ti"
"""A share has the size that its server gives it; Kubernetes wants a number nevertheless."""


def job_labels(app: str, job: str) -> dict[str, str]:
    """Labels of a job's own object."""
    return object_labels(app, job, "job")


def labelled(template: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """A pod template with these labels besides its own, which win."""
    described = dict(template.get("metadata", {}))
    described["labels"] = {**labels, **described.get("labels", {})}
    return {"metadata": described, **{key: value for key, value in template.items() if key != "metadata"}}


def share_claims(
    parent: pulumi.Resource, name: str, shares: "Sequence[Share]", namespace: pulumi.Input[str], labels: dict[str, str]
) -> "list[pulumi.Resource]":
    """A PersistentVolume and its claim for each share; what is on the share outlives both."""
    made: list[pulumi.Resource] = []
    for share in shares:
        mode = "ReadOnlyMany" if share.read_only else "ReadWriteMany"
        # Volumes have no namespace, so theirs is part of their name.
        volume_name = pulumi.Output.concat(namespace, "-", share.name)
        logical = f"{name}-{share.volume}"
        volume = core.v1.PersistentVolume(
            logical,
            metadata=meta.v1.ObjectMetaArgs(name=volume_name, labels=labels),
            spec=core.v1.PersistentVolumeSpecArgs(
                capacity={"storage": _NOMINAL_SIZE},
                access_modes=[mode],
                persistent_volume_reclaim_policy="Retain",
                storage_class_name="",
                mount_options=list(share.mount_options) or None,
                nfs=core.v1.NFSVolumeSourceArgs(
                    server=share.server, path=share.path, read_only=True if share.read_only else None
                ),
                claim_ref=core.v1.ObjectReferenceArgs(
                    api_version="v1", kind="PersistentVolumeClaim", name=share.name, namespace=namespace
                ),
            ),
            # The API server adds the claim's identity when it binds the two.
            opts=child_options(parent, ignore_changes=["spec.claimRef"]),
        )
        made.append(
            core.v1.PersistentVolumeClaim(
                logical,
                metadata=metadata(share.name, namespace, labels),
                spec=core.v1.PersistentVolumeClaimSpecArgs(
                    access_modes=[mode],
                    storage_class_name="",
                    volume_name=volume_name,
                    resources=core.v1.VolumeResourceRequirementsArgs(requests={"storage": _NOMINAL_SIZE}),
                ),
                opts=child_options(parent, depends_on=[volume]),
            )
        )
    return made


def pod_group(
    parent: pulumi.Resource,
    name: str,
    object_name: str,
    namespace: pulumi.Input[str],
    *,
    labels: dict[str, str],
    members: int,
    queue: str | None,
) -> "apiextensions.CustomResource":
    """Volcano starts that many pods of the group together, or none."""
    return apiextensions.CustomResource(
        f"{name}-gang",
        api_version="scheduling.volcano.sh/v1beta1",
        kind="PodGroup",
        metadata=metadata(object_name, namespace, labels),
        spec={"minMember": members, "queue": queue or "default"},
        opts=child_options(parent),
    )


def in_gang(template: Mapping[str, Any], group: str) -> dict[str, Any]:
    """A pod template whose pods Volcano schedules as members of a group."""
    described = dict(template.get("metadata", {}))
    described["annotations"] = {**described.get("annotations", {}), GROUP_ANNOTATION: group}
    return {**template, "metadata": described, "spec": {**template["spec"], "schedulerName": "volcano"}}
