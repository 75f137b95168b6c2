"""What a change of a Kubernetes object's inputs means: nothing, an update in place, or a replacement."""

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
    """The changes by property path; asks the cluster what they would do where there is one to ask.

    A ConfigMap or Secret is replaced when its content changes, as the official provider does, so that pods see
    the one content or the other; with `content_may_change` it is updated in place.
    """
    found = objects.changes(old_inputs, news)
    replaced = _identity_changes(found, object_id, old_inputs, news)
    if found and not replaced:
        refusal, found = _tried(cluster, object_id, news, found)
        paths, kind = list(found), str(news.get("kind"))
        replaced = immutability.always_replaced(str(news.get("apiVersion")), kind, paths, content_may_change)
        if refusal is not None and immutability.is_immutable(refusal):
            replaced += immutability.refused_paths(kind, refusal, paths)
        elif refusal is not None and not replaced:
            raise refusal.about(objects.described(objects.manifest_of(news, object_id)))
    detailed: dict[str, ChangeKind] = {
        objects.path_text(path): _REPLACEMENT[change] if path in replaced else change for path, change in found.items()
    }
    same_name = objects.metadata_of(news).get("name") == objects.namespace_and_name(object_id)[1]
    return Difference(detailed, delete_before_replace=bool(replaced) and same_name)


def _identity_changes(found: Changes, object_id: str, old_inputs: Properties, news: Properties) -> list[objects.Path]:
    identity: list[objects.Path] = [("kind",), ("metadata", "namespace")]
    if objects.metadata_of(news).get("name") != objects.namespace_and_name(object_id)[1]:
        identity += [("metadata", "name"), ("metadata", "generateName")]
    old_group, new_group = (str(inputs.get("apiVersion")).rpartition("/")[0] for inputs in (old_inputs, news))
    if old_group != new_group:
        identity.append(("apiVersion",))
    return [path for path in identity if path in found]


def _tried(cluster: Cluster | None, object_id: str, news: Properties, found: Changes) -> tuple[Refused | None, Changes]:
    """Asks the server what the changes would do.

    Returns:
        The refusal when they can't be made to the object as it is, and else those of the changes with an effect.
    """
    if cluster is None or objects.holds_unknown(news):
        return None, found
    manifest = objects.manifest_of(news, object_id)
    try:
        resource = cluster.resource(manifest["apiVersion"], manifest["kind"])
        live = cluster.get(resource, *objects.namespace_and_name(object_id))
        if live is None:
            return None, found
        result = cluster.apply(resource, manifest, dry_run=True, force=True)
    except Refused as refusal:
        return None if refusal.may_pass else refusal, found
    except (Unreachable, NoSuchKind):
        return None, found
    effects = objects.changes(objects.essence(live), objects.essence(result))
    effective: Changes = {
        path: change
        for path, change in found.items()
        if any(objects.related(_applied_path(path), effect) for effect in effects)
    }
    return None, (effective or found) if effects else {}


def _applied_path(path: objects.Path) -> objects.Path:
    """Where an input is in the object: a Secret's `stringData` becomes `data`."""
    return ("data", *path[1:]) if path[0] == "stringData" else path
