"""Decides which changes are impossible for an existing object, so that it has to be replaced.

There are two sources: the fields for which the official provider always replaces an object, and the API server's
answer to a dry run of the change.
"""

import re

from persia_infra.kube.api import Object, Refused
from persia_infra.rehearsal.provider.objects import Path, related

_ALWAYS: dict[tuple[str, str], tuple[Path, ...]] = {
    ("apps", "Deployment"): (("spec", "selector"),),
    ("apps", "DaemonSet"): (("spec", "selector"),),
    ("apps", "ReplicaSet"): (("spec", "selector"),),
    ("apps", "StatefulSet"): (
        ("spec", "podManagementPolicy"),
        ("spec", "selector"),
        ("spec", "serviceName"),
        ("spec", "volumeClaimTemplates"),
    ),
    ("batch", "Job"): (
        ("spec", "completions"),
        ("spec", "parallelism"),
        ("spec", "selector"),
        ("spec", "template"),
    ),
    ("", "Service"): (("spec", "clusterIP"),),
    ("", "ResourceQuota"): (("spec", "scopes"),),
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("storage.k8s.io", "StorageClass"): (("parameters",), ("provisioner",)),
    ("", "PersistentVolumeClaim"): (
        ("spec", "accessModes"),
        ("spec", "selector"),
        ("spec", "storageClassName"),
        ("spec", "volumeName"),
    ),
}
_CONTENT: dict[str, tuple[Path, ...]] = {
    "ConfigMap": (("data",), ("binaryData",)),
    "Secret": (("data",), ("stringData",), ("type",)),
}
_UNCHANGEABLE = re.compile(
    r"immutable|may not (?:be )?(?:change|update|add|remove)|can ?not (?:be )?(?:change|update)"
    r"|updates to .* (?:are|is) forbidden|forbidden after creation|can only be modified",
    re.IGNORECASE,
)
_STATEFULSET_MAY_CHANGE = {
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
}


def always_replaced(api_version: str, kind: str, paths: list[Path], content_may_change: bool) -> list[Path]:
    """Returns the changed paths for which the official provider always replaces an object."""
    group = api_version.rpartition("/")[0]
    fields = _ALWAYS.get((group, kind), ())
    if not group and kind in _CONTENT and not content_may_change:
        fields = _CONTENT[kind]
    return [path for path in paths if any(related(path, field) for field in fields)]


def is_immutable(refusal: Refused) -> bool:
    """Whether every cause of a refusal is a field that cannot be changed."""
    if refusal.status not in (403, 422):
        return False
    texts = [str(cause.get("message") or "") for cause in refusal.causes] or [refusal.message]
    return all(_UNCHANGEABLE.search(text) for text in texts)


def refused_paths(kind: str, refusal: Refused, paths: list[Path]) -> list[Path]:
    """Returns the changed paths that a refusal is about, or all of them if it does not name any."""
    fields = [_field_path(cause) for cause in refusal.causes]
    refused = [path for path in paths if any(_touches(path, field) for field in fields)]
    if kind == "StatefulSet":
        # The API server names `spec` as a whole, and lists the fields that may change in the message.
        refused = [path for path in refused if len(path) < 2 or path[1] not in _STATEFULSET_MAY_CHANGE] or refused
    return refused or paths


def _touches(path: Path, field: Path) -> bool:
    return bool(field) and related(path, field)


def _field_path(cause: Object) -> Path:
    parts: list[str | int] = []
    for name, index in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", str(cause.get("field") or "")):
        parts.append(name if name else int(index) if index.isdigit() else index)
    return tuple(parts)
