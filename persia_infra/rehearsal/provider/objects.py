"""Kubernetes objects as plain dictionaries: names, scopes, differences, and inputs after a refresh."""

import base64
import binascii
import copy
import hashlib
import re
import secrets
from typing import Any

from persia_infra.rehearsal.provider.package import UNKNOWN, ChangeKind, Properties, PropertyValue, Seed, Urn

Path = tuple[str | int, ...]

AUTONAMED = "pulumi.com/autonamed"
_LONGEST_NAME = 253
_CLUSTER_SCOPED = {
    "APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding",
    "ClusterTrustBundle", "ComponentStatus", "CustomResourceDefinition", "DeviceClass", "FlowSchema",
    "IPAddress", "IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
    "PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "SelfSubjectAccessReview", "ServiceCIDR",
    "StorageClass", "StorageVersion", "SubjectAccessReview", "TokenReview", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment",
    "VolumeAttributesClass",
}  # fmt: skip
_SERVER_SET_METADATA = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "ownerReferences", "resourceVersion", "selfLink", "uid",
)  # fmt: skip
_SERVER_SET_ANNOTATIONS = (
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/last-applied-configuration",
)
_SERVER_SET_SPEC = {
    "Service": ("clusterIP", "clusterIPs"),
    "PersistentVolumeClaim": ("volumeName",),
    "Pod": ("nodeName",),
    "Namespace": ("finalizers",),
}
_LIST_KEYS = ("name", "containerPort", "mountPath", "devicePath", "topologyKey", "ip", "key", "uid")


def api_version_and_kind(token: str) -> tuple[str, str]:
    """Splits `kubernetes:apps/v1:Deployment` into `apps/v1` and `Deployment`; `core/v1` becomes `v1`."""
    _, version, kind = token.split(":", 2)
    return version.removeprefix("core/"), kind


def is_builtin(api_version: str) -> bool:
    group = api_version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def builtin_scope(api_version: str, kind: str) -> bool | None:
    """Returns whether a built-in kind is namespaced, and None for all other kinds."""
    return kind not in _CLUSTER_SCOPED if is_builtin(api_version) else None


def holds_unknown(value: PropertyValue) -> bool:
    if isinstance(value, dict):
        return any(holds_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(holds_unknown(item) for item in value)
    return value is UNKNOWN


def without_nulls(value: PropertyValue) -> PropertyValue:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def metadata_of(properties: Properties) -> dict[str, Any]:
    metadata = properties.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def annotation(properties: Properties, name: str) -> str:
    annotations = metadata_of(properties).get("annotations")
    value = annotations.get(name) if isinstance(annotations, dict) else None
    return str(value).strip() if value is not None and value is not UNKNOWN else ""


def is_autonamed(properties: Properties) -> bool:
    return annotation(properties, AUTONAMED).lower() == "true"


def name_object(urn: Urn, olds: Properties, news: Properties, seed: bytes) -> str:
    """Names an object that has no name: its previous name, the one the project proposes, or a new one.

    Returns:
        The reason why the object cannot be named, or an empty string.
    """
    metadata = metadata_of(news)
    if metadata.get("name") or metadata.get("generateName") or news.get("metadata") is UNKNOWN:
        return ""
    rules = seed if isinstance(seed, Seed) else Seed(seed)
    if is_autonamed(olds) and metadata_of(olds).get("name"):
        name = metadata_of(olds)["name"]
    elif rules.naming == "disable":
        return "no name is set, and the project's configuration disables automatic names: set metadata.name"
    elif rules.proposed_name:
        name = rules.proposed_name
    else:
        suffix = hashlib.sha256(rules).hexdigest()[:8] if rules else secrets.token_hex(4)
        name = f"{urn.name[: _LONGEST_NAME - 9]}-{suffix}"
    metadata = news.setdefault("metadata", {})
    metadata["name"] = name
    annotations = metadata.setdefault("annotations", {})
    if isinstance(annotations, dict):
        annotations[AUTONAMED] = "true"
    return ""


def described(properties: Properties) -> str:
    """Returns how messages refer to an object: `Deployment train/worker`."""
    metadata = metadata_of(properties)
    name = metadata.get("name") or f"{metadata.get('generateName') or '?'}*"
    namespace = metadata.get("namespace")
    place = f"{namespace}/{name}" if namespace else str(name)
    return f"{properties.get('kind') or 'object'} {place}"


def plain(properties: Properties) -> Properties:
    """Returns the properties without the provider's private ones."""
    return {name: value for name, value in properties.items() if not name.startswith("__")}


def id_of(live: Properties) -> str:
    metadata = live["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]


def namespace_and_name(object_id: str) -> tuple[str, str]:
    namespace, _, name = object_id.rpartition("/")
    return namespace, name


def namespace_of(object_id: str, outputs: Properties) -> str:
    return metadata_of(outputs).get("namespace") or namespace_and_name(object_id)[0]


def without_namespace(properties: Properties) -> Properties:
    if not isinstance(properties.get("metadata"), dict):
        return properties
    metadata = {name: value for name, value in properties["metadata"].items() if name != "namespace"}
    return properties | {"metadata": metadata}


def manifest_of(inputs: Properties, object_id: str = "") -> Properties:
    """Returns what is applied: the inputs, under the object's name, with a Secret's `stringData` merged into `data`.

    The API server merges it too, but loses the ownership of the keys, so that a key removed from `stringData`
    would stay in the Secret forever.
    """
    manifest = copy.deepcopy(plain(inputs))
    metadata = manifest.setdefault("metadata", {})
    if object_id:
        namespace, metadata["name"] = namespace_and_name(object_id)
        metadata.pop("generateName", None)
        if namespace:
            metadata["namespace"] = namespace
    if manifest.get("kind") == "Secret" and isinstance(manifest.get("stringData"), dict):
        texts = manifest.pop("stringData")
        encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
        manifest["data"] = {**(manifest.get("data") or {}), **encoded}
    return manifest


def path_text(path: Path) -> str:
    """Returns a path in Pulumi's notation: `spec.ports[0].name`, `metadata.annotations["a.b/c"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_$][\w$-]*", part):
            text += f".{part}" if text else part
        else:
            escaped = part.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
    return text


def changes(old: PropertyValue, new: PropertyValue, path: Path = ()) -> dict[Path, ChangeKind]:
    """Returns every path at which two values differ; an unknown value differs from any other."""
    if isinstance(old, dict) and isinstance(new, dict):
        changed: dict[Path, ChangeKind] = {}
        for name in [*old, *(name for name in new if name not in old)]:
            if name not in new:
                changed[(*path, name)] = "delete"
            elif name not in old:
                changed[(*path, name)] = "add"
            else:
                changed |= changes(old[name], new[name], (*path, name))
        return changed
    if isinstance(old, list) and isinstance(new, list):
        changed = {}
        for index in range(max(len(old), len(new))):
            if index >= len(new):
                changed[(*path, index)] = "delete"
            elif index >= len(old):
                changed[(*path, index)] = "add"
            else:
                changed |= changes(old[index], new[index], (*path, index))
        return changed
    if new is UNKNOWN or old is UNKNOWN:
        return {path: "update"}
    return {} if old == new and isinstance(old, bool) == isinstance(new, bool) else {path: "update"}


def related(first: Path, second: Path) -> bool:
    """Whether two paths are equal, or one is inside the other."""
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter]


def essence(live: Properties) -> Properties:
    """Returns the parts of an object that matter to the user, to compare it before and after an apply."""
    rest = {name: value for name, value in live.items() if name != "status"}
    rest["metadata"] = {
        name: value
        for name, value in metadata_of(live).items()
        if name not in ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid")
    }
    return rest


def imported_inputs(live: Properties) -> Properties:
    """Returns the inputs that would create this object: everything except what the server sets itself."""
    inputs = copy.deepcopy({name: value for name, value in live.items() if name != "status"})
    metadata = {name: value for name, value in metadata_of(inputs).items() if name not in _SERVER_SET_METADATA}
    annotations = {
        name: value
        for name, value in (metadata.pop("annotations", None) or {}).items()
        if name not in _SERVER_SET_ANNOTATIONS
    }
    if annotations:
        metadata["annotations"] = annotations
    inputs["metadata"] = metadata
    if isinstance(inputs.get("spec"), dict):
        for name in _SERVER_SET_SPEC.get(str(inputs.get("kind")), ()):
            inputs["spec"].pop(name, None)
    return inputs


def refreshed_inputs(inputs: Properties, last_seen: Properties, live: Properties) -> Properties:
    """Returns the inputs, with new values where the object was changed outside of Pulumi.

    A value counts as changed if the live object differs from the last known outputs, so that a value which the
    server normalizes ("1000m" to "1") is not mistaken for a change.
    """
    refreshed = _refreshed(
        {name: value for name, value in inputs.items() if name not in ("apiVersion", "kind", "stringData")},
        last_seen,
        live,
    )
    for name in ("apiVersion", "kind"):
        if name in inputs:
            refreshed[name] = inputs[name]
    if isinstance(inputs.get("stringData"), dict):
        seen, now = last_seen.get("data") or {}, live.get("data") or {}
        refreshed["stringData"] = {
            name: text if now[name] == seen.get(name) else _decoded(now[name], text)
            for name, text in inputs["stringData"].items()
            if name in now
        }
    return refreshed


def _decoded(encoded: str, otherwise: str) -> str:
    try:
        return base64.b64decode(encoded).decode()
    except (binascii.Error, UnicodeDecodeError):
        return otherwise


_ABSENT = object()


def _refreshed(wanted: PropertyValue, seen: PropertyValue, live: PropertyValue) -> PropertyValue:
    if isinstance(wanted, dict) and isinstance(live, dict):
        seen = seen if isinstance(seen, dict) else {}
        result = {}
        for name, value in wanted.items():
            if name in live:
                result[name] = _refreshed(value, seen.get(name, _ABSENT), live[name])
            elif name not in seen:
                result[name] = value
        return result
    if isinstance(wanted, list) and isinstance(live, list):
        return _refreshed_list(wanted, seen if isinstance(seen, list) else [], live)
    if seen is _ABSENT:
        return wanted if wanted == live else live
    return wanted if seen == live else live


def _refreshed_list(wanted: list[Any], seen: list[Any], live: list[Any]) -> list[Any]:
    if seen == live:
        return wanted
    for key in _LIST_KEYS:
        by_key = [
            {item[key]: item for item in items if isinstance(item, dict) and isinstance(item.get(key), str | int)}
            for items in (wanted, seen, live)
        ]
        if wanted and all(len(keyed) == len(items) for keyed, items in zip(by_key, (wanted, seen, live), strict=True)):
            _, seen_items, live_items = by_key
            kept = [
                _refreshed(item, seen_items.get(item[key], _ABSENT), live_items[item[key]])
                for item in wanted
                if item[key] in live_items
            ]
            added = [item for name, item in live_items.items() if name not in by_key[0] and name not in seen_items]
            return kept + added
    if len(wanted) == len(live):
        pairs = zip(wanted, seen + [_ABSENT] * (len(wanted) - len(seen)), live, strict=False)
        return [_refreshed(item, before, now) for item, before, now in pairs]
    return live
