"""Shares outside the cluster that the pods of a job mount through claims, and the gang of its pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.settings.run_volumes import Share
from persia_infra.kube.objects import Body, KubeObject, metadata, without_empty
from persia_infra.spec.base import Finding, Place

VOLCANO = "volcano"
"""The name of Volcano's scheduler."""
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
"""The annotation that names the PodGroup of a pod."""
DEFAULT_QUEUE = "default"
_NOMINAL_SIZE = "1Ti"
"""A placeholder: the server decides the size of a share, but Kubernetes requires a number."""


def all_shares(job: str, settings: Iterable[RunSettings]) -> list[Share]:
    """The shares that these settings mount, each once."""
    shares = (volume.share(job) for each in settings for volume in each.volumes)
    return list({share.name: share for share in shares if share is not None}.values())


def share_findings(settings: Mapping[Place, RunSettings]) -> Iterator[Finding]:
    """Different shares with the same name, which would use the same claim."""
    seen: dict[str, Share] = {}
    for place, each in settings.items():
        for volume in each.volumes:
            share = volume.share("job")
            if share and seen.setdefault(share.name, share) != share:
                yield (
                    (*place, "settings"),
                    f"its volume {volume.name!r} is a different share than the volume of that name in another role, "
                    "and both would use the same claim; rename one",
                )


def share_objects(shares: Sequence[Share], namespace: str, labels: Mapping[str, str]) -> list[KubeObject]:
    """A PersistentVolume and its claim for each share; the data on the share outlives both."""
    objects: list[KubeObject] = []
    for share in shares:
        mode = "ReadOnlyMany" if share.read_only else "ReadWriteMany"
        # PersistentVolumes have no namespace, so the name contains it to be unique.
        volume_name = f"{namespace}-{share.name}"
        volume_spec: Body = {
            "capacity": {"storage": _NOMINAL_SIZE},
            "accessModes": [mode],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "mountOptions": list(share.mount_options),
            "nfs": without_empty({"server": share.server, "path": share.path, "readOnly": share.read_only or None}),
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": share.name,
                "namespace": namespace,
            },
        }
        volume = KubeObject(
            f"-{share.volume}",
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": metadata(volume_name, None, labels),
                "spec": without_empty(volume_spec),
            },
            # The API server adds the claim's identity when it binds the two.
            ignore_changes=("spec.claimRef",),
        )
        claim_spec = {
            "accessModes": [mode],
            "storageClassName": "",
            "volumeName": volume_name,
            "resources": {"requests": {"storage": _NOMINAL_SIZE}},
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata(share.name, namespace, labels),
            "spec": claim_spec,
        }
        objects += [volume, KubeObject(f"-{share.volume}", claim, (volume,))]
    return objects


def claims_of(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """The PersistentVolumeClaims among the objects; pods have to wait for them."""
    return [declared for declared in objects if declared.body["kind"] == "PersistentVolumeClaim"]


def pod_group(name: str, namespace: str, labels: Mapping[str, str], *, members: int, queue: str | None) -> KubeObject:
    """The PodGroup that makes Volcano start this number of pods together, or none."""
    body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata(name, namespace, labels),
        "spec": {"minMember": members, "queue": queue or DEFAULT_QUEUE},
    }
    return KubeObject("-gang", body)
