"""Which changes an existing object can't take, so that it has to be replaced.

Two sources: the fields that the official provider always replaces for, and what the API server says when it is
asked to apply the change without doing it.
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
    """The changed paths that the official provider replaces an object for, whatever the server would say."""
    group = api_version.rpartition("/")[0]
    fields = _ALWAYS.get((group, kind), ())
    if not group and kind in _CONTENT and not content_may_change:
        fields = _CONTENT[kind]
    return [path for path in paths if any(related(path, field) for field in fields)]


def is_immutable(refusal: Refused) -> bool:
    """Whether every cause of a refusal is that a field can't be changed any more."""
    if refusal.status not in (403, 422):
        return False
    texts = [str(cause.get("message") or "") for cause in refusal.causes] or [refusal.message]
    return all(_UNCHANGEABLE.search(text) for text in texts)


def refused_paths(kind: str, refusal: Refused, paths: list[Path]) -> list[Path]:
    """The changed paths a refusal is about; all below its field where it names no closer one."""
    fields = [_field_path(cause) for cause in refusal.causes]
    found = [path for path in paths if any(_touches(path, field) for field in fields)]
    if kind == "StatefulSet":
        found = [path for path in found if len(path) < 2 or path[1] not in _STATEFULSET_MAY_CHANGE] or found
    return found or paths


def _touches(path: Path, field: Path) -> bool:
    return bool(field) and related(path, field)


def _field_path(cause: Object) -> Path:
    parts: list[str | int] = []
    for name, index in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", str(cause.get("field") or "")):
        parts.append(name if name else int(index) if index.isdigit() else index)
    return tuple(parts)
