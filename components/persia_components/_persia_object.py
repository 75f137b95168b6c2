"""A PERSIA job as the one object that the PERSIA operator expands into pods."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_kubernetes import apiextensions

from persia_components._children import metadata
from persia_components._persia_launch import files_of

if TYPE_CHECKING:
    from persia_infra.jobs.persia.spec import PersiaJobSpec

API_VERSION, KIND = "persia.com/v1", "PersiaJob"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108


def persia_job_object(
    parent: pulumi.Resource,
    name: str,
    spec: "PersiaJobSpec",
    *,
    job: str,
    namespace: pulumi.Input[str],
    labels: dict[str, str],
    nats_url: pulumi.Input[str] | None,
    depends_on: list[pulumi.Resource],
) -> "apiextensions.CustomResource":
    """Declares the object; a changed one is made anew, because the operator acts on new objects only."""
    return apiextensions.CustomResource(
        name,
        api_version=API_VERSION,
        kind=KIND,
        metadata=metadata(job, namespace, labels),
        spec=object_spec(job, spec, nats_url),
        opts=pulumi.ResourceOptions(
            parent=parent, depends_on=depends_on, replace_on_changes=["spec"], delete_before_replace=True
        ),
    )


def object_spec(job: str, spec: "PersiaJobSpec", nats_url: pulumi.Input[str] | None) -> dict[str, Any]:
    """The object's `spec`: what was described in PERSIA's own words, and the library's additions in them."""
    found = spec.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    found["persiaEnv"] = {
        "PERSIA_GLOBAL_CONFIG": spec.global_config_path,
        "PERSIA_EMBEDDING_CONFIG": spec.embedding_config_path,
    }
    for key, variable in (("nnWorker", "PERSIA_NN_WORKER_ENTRY"), ("dataloader", "PERSIA_DATALOADER_ENTRY")):
        if path := spec.entry_path(key):
            found["persiaEnv"][variable] = path
    if nats_url is not None:
        found["env"] = [{"name": "PERSIA_NATS_URL", "value": nats_url}, *found.get("env", [])]
    volumes: dict[str, Mapping[str, Any]] = {}
    for key, role in spec.roles.items():
        mounts = list(found[key].get("volumeMounts", []))
        for files in files_of(job, spec, key):
            volumes[files.volume] = {"configMap": {"name": files.object_name}}
            mounts.append({"name": files.volume, "mountPath": files.folder, "readOnly": True})
        if key == "nnWorker" and not role.mounts_shared_memory:
            limit = (
                {"sizeLimit": spec.nn_worker.shared_memory} if spec.nn_worker and spec.nn_worker.shared_memory else {}
            )
            volumes[spec.SHARED_MEMORY_VOLUME] = {"emptyDir": {"medium": "Memory", **limit}}
            mounts.append({"name": spec.SHARED_MEMORY_VOLUME, "mountPath": _SHARED_MEMORY})
        found[key] = {**found[key], "replicas": role.replicas} | ({"volumeMounts": mounts} if mounts else {})
    if volumes:
        found["volumes"] = [*found.get("volumes", []), *({"name": name, **source} for name, source in volumes.items())]
    return found
