"""Checks across the fields of a PERSIA job, and notes on fields with no effect or an unexpected one."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from persia_infra.jobs.persia.dialects import NATS_URL
from persia_infra.kube.pod_templates import keys_given
from persia_infra.kube.pods import EnvVar, duplicate_names, mount_findings, mount_folder
from persia_infra.kube.requests import container_requests, gpus
from persia_infra.kube.types.base import KubeType
from persia_infra.spec.base import Finding, Place

if TYPE_CHECKING:
    from persia_infra.jobs.persia.spec import PersiaJobSpec

_SET_FOR_EACH_POD = frozenset(("REPLICA_INDEX", "REPLICA_SIZE", "NPROC_PER_NODE", "RANK", "LOCAL_RANK", "WORLD_SIZE"))
_LOG_LEVELS = frozenset(("trace", "debug", "info", "warn", "error", "off"))
_CONFIG_MAP_BYTES = 1024 * 1024
_NEWER_THAN_OPERATOR = {
    "EnvVarSource": ("file_key_ref",),
    "ResourceRequirements": ("claims",),
    "Volume": ("ephemeral", "image"),
    "VolumeMount": ("recursive_read_only",),
    "VolumeProjection": ("cluster_trust_bundle", "pod_certificate"),
}
"""Keys of each Kubernetes type that the PersiaJob resource definition, which dates from Kubernetes 1.17, lacks."""


def findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    """Yields everything in the job that would not work."""
    yield from _config_findings(job)
    yield from _entry_findings(job)
    yield from _size_findings(job)
    yield from _env_findings(job)
    yield from _nats_findings(job)
    yield from _log_findings(job)
    yield from _volume_findings(job)
    yield from _role_findings(job)
    if job.mode == "operator":
        yield from _operator_findings(job)
        if job.needs_volcano:
            yield (
                ("queue" if job.queue else "gang",),
                "cannot be combined with mode: operator, whose pods use the default scheduler, which does not support "
                "gangs; remove one",
            )


def notes(job: "PersiaJobSpec") -> Iterator[Finding]:
    """Yields notes on fields that have no effect, or an effect that a reader may not expect."""
    if job.mode == "native" and job.restart_policy != "Always":
        yield (
            ("restartPolicy",),
            "has no effect in native mode, where it is always Always: a finished training starts again and keeps its "
            "machines, which cost money; remove the job when it is done, or write Always",
        )
    if job.mode == "operator":
        yield (
            ("mode",),
            "the PERSIA operator ignores changes and never recreates a lost pod, so a change replaces the whole job; "
            "its pods run on any node with room",
        )
    if job.nats and job.nats.tls and job.nats.tls.server_secret:
        yield (
            ("nats", "tls"),
            "PERSIA accepts only a certificate for the name of the NATS Service from a CA that the image trusts; for "
            "another CA mount its certificate and set SSL_CERT_FILE to the path",
        )
    if (section := job.global_config) and "embedding_parameter_server_config" in section.model_fields_set:
        server = section.embedding_parameter_server_config
        if "num_hashmap_internal_shards" not in server.model_fields_set:
            yield (
                ("globalConfig", "embedding_parameter_server_config"),
                "has no num_hashmap_internal_shards: PERSIA defaults to 100 here, but to 1000 without this section; "
                "set it to be sure",
            )


def _log_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    levels = {part.rpartition("=")[2].strip().lower() for part in job.log_level.split(",")}
    if not levels & _LOG_LEVELS:
        yield (
            ("logLevel",),
            "contains no level, so PERSIA would log only errors; write trace, debug, info, warn or error, or a list "
            "such as info,persia=debug",
        )


def _config_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    for inline, variable, path, content in (
        ("globalConfig", "PERSIA_GLOBAL_CONFIG", job.persia_env.global_config, job.global_config),
        ("embeddingConfig", "PERSIA_EMBEDDING_CONFIG", job.persia_env.embedding_config, job.embedding_config),
    ):
        if path is None and content is None:
            yield (
                ("persiaEnv", variable),
                f"is missing, and PERSIA does not start without it; add the path, or the file itself as {inline}",
            )
        if path is not None and content is not None:
            yield (inline,), f"cannot be combined with persiaEnv.{variable}, because PERSIA reads only one; remove one"


def _size_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    too_large = "is larger than the 1 MiB that fits into a ConfigMap; put it on a volume and its path into persiaEnv"
    if sum(len(text.encode()) for text in job.config_files.values()) > _CONFIG_MAP_BYTES:
        yield ("embeddingConfig",), f"together with globalConfig {too_large}"
    for key in job.SCRIPT_NAMES:
        if len((job.script(key) or "").encode()) > _CONFIG_MAP_BYTES:
            yield (key, "script"), too_large


def _entry_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    for key, plural, variable, path in (
        ("nnWorker", "nn-workers", "PERSIA_NN_WORKER_ENTRY", job.persia_env.nn_worker_entry),
        ("dataloader", "dataloaders", "PERSIA_DATALOADER_ENTRY", job.persia_env.dataloader_entry),
    ):
        if key in job.roles and not path and not job.script(key):
            yield (
                ("persiaEnv", variable),
                f"is missing, so the {plural} would have no script to run; add its path in the image or on a volume, "
                f"or the script itself as {key}.script",
            )
        if path and job.script(key):
            yield (
                (key, "script"),
                f"cannot be combined with persiaEnv.{variable}, because only one would run; remove one",
            )


def _env_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    lists: list[tuple[Place, list[EnvVar]]] = [(("env",), job.env)]
    lists += [((key, "env"), role.env) for key, role in job.roles.items()]
    for place, variables in lists:
        yield from (((*place, *at), message) for at, message in duplicate_names(variables, "variable"))
        for index, variable in enumerate(variables):
            if variable.name in _SET_FOR_EACH_POD:
                yield (
                    (*place, index, "name"),
                    f"{variable.name} differs from pod to pod and is set automatically; remove it",
                )
            if variable.name == NATS_URL and place != ("env",):
                yield (
                    (*place, index, "name"),
                    f"{NATS_URL} for a single role would separate it from the others; move it to the job's env",
                )
            if variable.name == "PERSIA_SOCKET_NAME":
                yield (*place, index, "name"), "PERSIA does not read this variable; write PERSIA_SOCKET_IFNAME"


def _nats_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    url = job.given_nats_url
    if job.nats and job.own_nats is None:
        yield ("nats",), f"cannot be combined with {NATS_URL} in env, because the job would not use it; remove one"
    if job.nats and job.nats.auth:
        yield (
            ("nats", "auth"),
            "PERSIA's client cannot log in, so no role could connect; remove it: the job's NetworkPolicy already "
            "admits only its own pods to its NATS",
        )
    if url and url.value and "@" in url.value:
        yield ("env",), f"{NATS_URL} contains a user, which PERSIA reads as part of the host name; remove the user"
    if url and url.value is not None and not url.value.strip():
        yield (
            ("env",),
            f"{NATS_URL} is empty, so the roles would not find each other; remove it or write a server's address",
        )
    elif url and url.value and "://" in url.value and not url.value.startswith(("nats://", "tls://")):
        yield ("env",), f"{NATS_URL} is not a valid NATS address; write one such as nats://nats.example:4222"


def shared_nats_findings(jobs: "Mapping[str, tuple[str, PersiaJobSpec]]") -> Iterator[Finding]:
    """Jobs that would receive each other's messages; `jobs` has the namespace and spec of each by name."""
    users: dict[str, str] = {}
    for name, (namespace, job) in jobs.items():
        url = job.given_nats_url
        if url is not None and not url.value:
            continue
        address = _full_address(url.value, namespace) if url and url.value else f"{name}-nats.{namespace}:4222"
        other = users.setdefault(address, name)
        if other != name:
            place, owner = (name, other) if url else (other, name)
            yield (
                (place, "env"),
                f"{NATS_URL} is also the NATS of the job {owner}, and PERSIA's subjects contain no job name, so "
                "each would get the other's batches; remove it to give this job a NATS of its own",
            )


def _full_address(url: str, namespace: str) -> str:
    """Host with namespace, and port: `nats://bus` and `nats://bus.training.svc:4222` are the same address."""
    host, _, port = url.strip().split("://")[-1].rstrip("/").partition(":")
    if "." not in host:
        host = f"{host}.{namespace}"
    return f"{host.removesuffix('.cluster.local').removesuffix('.svc')}:{port or 4222}"


def _volume_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    for at, message in duplicate_names(job.volumes, "volume"):
        yield ("volumes", *at), message
    declared = {volume.name for volume in job.volumes}
    for reserved in (job.CONFIG_VOLUME, *job.SCRIPT_VOLUMES.values(), job.SHARED_MEMORY_VOLUME):
        if reserved in declared:
            yield ("volumes",), f"{reserved!r} is reserved for a volume that this library may add; choose another name"
    for key, role in job.roles.items():
        for at, message in mount_findings(role.volume_mounts, declared):
            yield (key, "volumeMounts", *at), message
        taken = {job.CONFIG_FOLDER: "inline configuration"} if job.config_files else {}
        taken |= {job.SCRIPT_FOLDER: "inline script"} if job.script(key) else {}
        for index, mount in enumerate(role.volume_mounts):
            folder = mount_folder(mount)
            if folder in taken:
                yield (
                    (key, "volumeMounts", index, "mountPath"),
                    f"{folder} is the folder of the {taken[folder]}, so one would hide the other; mount it elsewhere",
                )


def _role_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    if not job.roles:
        known = "embeddingParameterServer, embeddingWorker, nnWorker, dataloader"
        yield (), f"has no role, so nothing would run; describe at least one of {known}"
    worker = job.nn_worker
    devices = gpus(container_requests(worker.resources)) if worker else 0
    if worker and devices and worker.nproc_per_node > devices:
        yield (
            ("nnWorker", "nprocPerNode"),
            f"is {worker.nproc_per_node}, but each pod has {devices} GPU: a process without "
            "a GPU of its own fails at start; lower it or raise the nvidia.com/gpu limit",
        )


def _operator_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    for key, role in job.roles.items():
        for field in role.beyond_the_operator:
            yield (
                (key, field),
                "the PERSIA operator has no field for it, so its pods would run without it; remove it or "
                "mode: operator",
            )
    parts: list[tuple[Place, KubeType]] = [(("volumes", index), volume) for index, volume in enumerate(job.volumes)]
    parts += [(("env", index), variable) for index, variable in enumerate(job.env)]
    for key, role in job.roles.items():
        parts.append(((key, "resources"), role.resources))
        parts += [((key, "volumeMounts", index), mount) for index, mount in enumerate(role.volume_mounts)]
        parts += [((key, "env", index), variable) for index, variable in enumerate(role.env)]
    for place, part in parts:
        for newer in keys_given(part, _NEWER_THAN_OPERATOR, place):
            yield (
                newer,
                "is newer than the PersiaJob resource definition, which drops it; remove it (a volume can come from a "
                "PersistentVolumeClaim), or remove mode: operator",
            )
