"""Storage classes of a simulated GKE cluster, and volumes for its claims.

A volume is only an object: nothing is mounted on a simulated node. Zones and snapshots are out of scope.
"""

from typing import Any

from persia_infra.kube.api import Cluster, Refused

_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_WANTED_FROM = "volume.kubernetes.io/storage-provisioner"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_DISK, _SHARE = "pd.csi.storage.gke.io", "filestore.csi.storage.gke.io"
_FIRST_CONSUMER, _AT_ONCE = "WaitForFirstConsumer", "Immediate"

# The classes of a new GKE cluster; those for sharing are part of the Filestore add-on.
CLASSES = (
    ("standard-rwo", _DISK, _FIRST_CONSUMER, {"type": "pd-balanced"}),
    ("premium-rwo", _DISK, _FIRST_CONSUMER, {"type": "pd-ssd"}),
    ("standard", _DISK, _AT_ONCE, {"type": "pd-standard"}),
    ("standard-rwx", _SHARE, _FIRST_CONSUMER, {"tier": "standard"}),
    ("premium-rwx", _SHARE, _FIRST_CONSUMER, {"tier": "premium"}),
    ("zonal-rwx", _SHARE, _FIRST_CONSUMER, {"tier": "zonal"}),
)
DEFAULT_CLASS = "standard-rwo"
_CLASSES_PATH, _VOLUMES_PATH = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"


def add_storage_classes(cluster: Cluster) -> None:
    for name, provisioner, binding, parameters in CLASSES:
        annotations = {_DEFAULT: "true"} if name == DEFAULT_CLASS else {}
        document = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": annotations},
            "provisioner": provisioner,
            "parameters": parameters,
            "volumeBindingMode": binding,
            "reclaimPolicy": "Delete",
            "allowVolumeExpansion": True,
        }
        _request_unless(409, cluster, "POST", _CLASSES_PATH, document)


def remove_storage_classes(cluster: Cluster) -> None:
    for name, *_ in CLASSES:
        _request_unless(404, cluster, "DELETE", f"{_CLASSES_PATH}/{name}")


def serve_claims(cluster: Cluster) -> None:
    """Creates a volume for each waiting claim, and deletes the volumes of claims that are gone."""
    claims = cluster.request("GET", "/api/v1/persistentvolumeclaims").get("items") or []
    for claim in claims:
        if claim["status"].get("phase") == "Pending" and _provisioner(claim) in (_DISK, _SHARE):
            _request_unless(409, cluster, "POST", _VOLUMES_PATH, _volume_for(claim))
    for volume in cluster.request("GET", _VOLUMES_PATH).get("items") or []:
        own = (volume["metadata"].get("annotations") or {}).get(_PROVISIONED_BY) in (_DISK, _SHARE)
        if own and volume["status"].get("phase") == "Released":
            _request_unless(404, cluster, "DELETE", f"{_VOLUMES_PATH}/{volume['metadata']['name']}")


def _provisioner(claim: dict[str, Any]) -> str:
    """Returns the provisioner, which the control plane sets at once, or when the first pod has a node."""
    return (claim["metadata"].get("annotations") or {}).get(_WANTED_FROM, "")


def _volume_for(claim: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_PROVISIONED_BY: _provisioner(claim)}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "storageClassName": spec.get("storageClassName", ""),
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": {"path": f"/simulated/{name}"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: metadata[key] for key in ("namespace", "name", "uid")},
            },
        },
    }


def _request_unless(status: int, cluster: Cluster, method: str, path: str, body: dict[str, Any] | None = None) -> None:
    """Sends a request, and ignores a refusal with the given status."""
    try:
        cluster.request(method, path, body=body)
    except Refused as refusal:
        if refusal.status != status:
            raise
