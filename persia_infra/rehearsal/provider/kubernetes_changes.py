"""Decides whether changed inputs of a Kubernetes object mean nothing, an update in place, or a replacement."""

from persia_infra.kube.api import Cluster, NoSuchKind, Refused, Unreachable
from persia_infra.rehearsal.provider import immutability, objects
from persia_infra.rehearsal.provider.package import ChangeKind, Difference, Properties

Changes = dict[objects.Path, ChangeKind]

_REPLACEMENT: dict[ChangeKind, ChangeKind] = {
    "add": "add-replace",
    "delete": "delete-replace",
    "update": "update-replace",
}


def difference(
    cluster: Cluster | None,
    object_id: str,
    old_inputs: Properties,
    news: Properties,
    *,
    content_may_change: bool,
) -> Difference:
    """Returns the changes by property path; with a cluster, a dry run shows which ones have an effect.

    A ConfigMap or Secret is replaced if its content changes, as the official provider does, so that no pod sees a
    mixture of old and new content; with `content_may_change` it is updated in place.
    """
    changed = objects.changes(old_inputs, news)
    replaced = _identity_changes(changed, object_id, old_inputs, news)
    if changed and not replaced:
        refusal, changed = _tried(cluster, object_id, news, changed)
        paths, kind = list(changed), str(news.get("kind"))
        replaced = immutability.always_replaced(str(news.get("apiVersion")), kind, paths, content_may_change)
        if refusal is not None and immutability.is_immutable(refusal):
            replaced += immutability.refused_paths(kind, refusal, paths)
        elif refusal is not None and not replaced:
            raise refusal.about(objects.described(objects.manifest_of(news, object_id)))
    detailed: dict[str, ChangeKind] = {
        objects.path_text(path): _REPLACEMENT[change] if path in replaced else change
        for path, change in changed.items()
    }
    same_name = objects.metadata_of(news).get("name") == objects.namespace_and_name(object_id)[1]
    return Difference(detailed, delete_before_replace=bool(replaced) and same_name)


def _identity_changes(changed: Changes, object_id: str, old_inputs: Properties, news: Properties) -> list[objects.Path]:
    identity: list[objects.Path] = [("kind",), ("metadata", "namespace")]
    if objects.metadata_of(news).get("name") != objects.namespace_and_name(object_id)[1]:
        identity += [("metadata", "name"), ("metadata", "generateName")]
    old_group, new_group = (str(inputs.get("apiVersion")).rpartition("/")[0] for inputs in (old_inputs, news))
    if old_group != new_group:
        identity.append(("apiVersion",))
    return [path for path in identity if path in changed]


def _tried(
    cluster: Cluster | None, object_id: str, news: Properties, changed: Changes
) -> tuple[Refused | None, Changes]:
    """Tries the changes with a dry run.

    Returns:
        The server's refusal if the existing object cannot be changed so, and the changes that have an effect.
    """
    if cluster is None or objects.holds_unknown(news):
        return None, changed
    manifest = objects.manifest_of(news, object_id)
    try:
        resource = cluster.resource(manifest["apiVersion"], manifest["kind"])
        live = cluster.get(resource, *objects.namespace_and_name(object_id))
        if live is None:
            return None, changed
        result = cluster.apply(resource, manifest, dry_run=True, force=True)
    except Refused as refusal:
        return None if refusal.may_pass else refusal, changed
    except (Unreachable, NoSuchKind):
        return None, changed
    effects = objects.changes(objects.essence(live), objects.essence(result))
    effective: Changes = {
        path: change
        for path, change in changed.items()
        if any(objects.related(_applied_path(path), effect) for effect in effects)
    }
    return None, (effective or changed) if effects else {}


def _applied_path(path: objects.Path) -> objects.Path:
    """Returns the path of an input in the object: a Secret's `stringData` becomes `data`."""
    return ("data", *path[1:]) if path[0] == "stringData" else path
