"""What makes a PERSIA job wrong although each part of its description is right, and what is worth saying of it."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from persia_infra.jobs.persia.dialects import NATS_URL
from persia_infra.kube.pods import EnvVar, duplicate_names, mount_findings
from persia_infra.spec.base import Finding, Place

if TYPE_CHECKING:
    from persia_infra.jobs.persia.spec import PersiaJobSpec

_SET_FOR_EACH_POD = frozenset(("REPLICA_INDEX", "REPLICA_SIZE", "NPROC_PER_NODE", "RANK", "LOCAL_RANK", "WORLD_SIZE"))
_LOG_LEVELS = frozenset(("trace", "debug", "info", "warn", "error", "off"))
_CONFIG_MAP_BYTES = 1024 * 1024
_NEWER_VOLUME_SOURCES = frozenset(("ephemeral",))
"""Of the sources known here, those that the PersiaJob resource definition, of Kubernetes 1.17, lacks."""


def findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    """Everything that would not work."""
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
                "the PERSIA operator leaves its pods to the default scheduler, which knows no gangs; remove one",
            )


def notes(job: "PersiaJobSpec") -> Iterator[Finding]:
    """What has no effect, or another one than a reader would think."""
    if job.mode == "native" and job.restart_policy != "Always":
        yield (
            ("restartPolicy",),
            "is Always for native workloads, whatever it says: a training that has ended begins anew, and its machines "
            "stay rented; write Always if that is meant, or remove the job when it is done",
        )
    if job.mode == "operator":
        yield (
            ("mode",),
            "the PERSIA operator ignores changes and never makes a lost pod again; a change here replaces the whole "
            "job, and its pods run on any node with room",
        )
    if job.nats and job.nats.tls and job.nats.tls.server_secret:
        yield (
            ("nats", "tls"),
            "PERSIA takes a certificate for the name of the NATS Service from an authority that the image trusts; name "
            "another one's file, on a volume, in the variable SSL_CERT_FILE",
        )
    if (section := job.global_config) and "embedding_parameter_server_config" in section.model_fields_set:
        server = section.embedding_parameter_server_config
        if "num_hashmap_internal_shards" not in server.model_fields_set:
            yield (
                ("globalConfig", "embedding_parameter_server_config"),
                "leaves num_hashmap_internal_shards to PERSIA, which takes 100 here but 1000 when the section is left "
                "out",
            )


def _log_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    levels = {part.rpartition("=")[2].strip().lower() for part in job.log_level.split(",")}
    if not levels & _LOG_LEVELS:
        yield (
            ("logLevel",),
            "names no level, so PERSIA would log errors alone; write trace, debug, info, warn or error, or a list "
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
                f"is missing, and PERSIA stops without it; give its path, or the file itself as {inline}",
            )
        if path is not None and content is not None:
            yield (inline,), f"is given besides persiaEnv.{variable}, so one of them would not be read; remove one"


def _size_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    said = "is larger than the 1 MiB that a ConfigMap holds; put it on a volume, and its path into persiaEnv"
    if sum(len(text.encode()) for text in job.config_files.values()) > _CONFIG_MAP_BYTES:
        yield ("embeddingConfig",), f"together with globalConfig {said}"
    for key in job.SCRIPT_NAMES:
        if len((job.script(key) or "").encode()) > _CONFIG_MAP_BYTES:
            yield (key, "script"), said


def _entry_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    for key, plural, variable, path in (
        ("nnWorker", "nn-workers", "PERSIA_NN_WORKER_ENTRY", job.persia_env.nn_worker_entry),
        ("dataloader", "dataloaders", "PERSIA_DATALOADER_ENTRY", job.persia_env.dataloader_entry),
    ):
        if key in job.roles and not path and not job.script(key):
            yield (
                ("persiaEnv", variable),
                f"is missing, so the {plural} would have no script to run; give its path in the image or on a volume, "
                f"or the text itself as {key}.script",
            )
        if path and job.script(key):
            yield (key, "script"), f"is given besides persiaEnv.{variable}, so one of them would not run; remove one"


def _env_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    lists: list[tuple[Place, list[EnvVar]]] = [(("env",), job.env)]
    lists += [((key, "env"), role.env) for key, role in job.roles.items()]
    for place, variables in lists:
        yield from (((*place, *at), said) for at, said in duplicate_names(variables, "variable"))
        for index, variable in enumerate(variables):
            if variable.name in _SET_FOR_EACH_POD:
                yield (
                    (*place, index, "name"),
                    f"{variable.name} is different in every pod and set for each; remove it",
                )
            if variable.name == NATS_URL and place != ("env",):
                yield (
                    (*place, index, "name"),
                    f"{NATS_URL} of one role alone would part it from the others; move it to the job's env",
                )
            if variable.name == "PERSIA_SOCKET_NAME":
                yield (*place, index, "name"), "PERSIA does not read it; write PERSIA_SOCKET_IFNAME"


def _nats_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    url = job.given_nats_url
    if job.nats and job.own_nats is None:
        yield ("nats",), f"is described, but env sets {NATS_URL}, so the job would not use it; remove one of them"
    if job.nats and job.nats.auth:
        yield (
            ("nats", "auth"),
            "PERSIA's client cannot log in, so no role would get through; remove it: the job's NetworkPolicy lets only "
            "its own pods reach its NATS",
        )
    if url and url.value and "@" in url.value:
        yield ("env",), f"{NATS_URL} has a user in it, which PERSIA takes for a part of the host; remove it"
    if url and url.value is not None and not url.value.strip():
        yield ("env",), f"{NATS_URL} is empty, so no role would find another; remove it, or name a server"
    elif url and url.value and "://" in url.value and not url.value.startswith(("nats://", "tls://")):
        yield ("env",), f"{NATS_URL} is no address of NATS; write one such as nats://nats.example:4222"


def shared_nats_findings(jobs: "Mapping[str, tuple[str, PersiaJobSpec]]") -> Iterator[Finding]:
    """Jobs that would hear each other, by their name, with the namespace of each."""
    users: dict[str, str] = {}
    for name, (namespace, job) in jobs.items():
        url = job.given_nats_url
        if url is not None and not url.value:
            continue
        address = _full_address(url.value, namespace) if url and url.value else f"{name}-nats.{namespace}:4222"
        other = users.setdefault(address, name)
        if other != name:
            place, said = (name, other) if url else (other, name)
            yield (
                (place, "env"),
                f"{NATS_URL} names the NATS of the job {said} too, and PERSIA's subjects carry no job's name, so "
                "each would get the other's batches; remove it here, and the job gets a NATS of its own",
            )


def _full_address(url: str, namespace: str) -> str:
    """Host with namespace, and port: `nats://bus` and `nats://bus.training.svc:4222` are one."""
    host, _, port = url.strip().split("://")[-1].rstrip("/").partition(":")
    if "." not in host:
        host = f"{host}.{namespace}"
    return f"{host.removesuffix('.cluster.local').removesuffix('.svc')}:{port or 4222}"


def _volume_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    for at, said in duplicate_names(job.volumes, "volume"):
        yield ("volumes", *at), said
    declared = {volume.name for volume in job.volumes}
    for reserved in (job.CONFIG_VOLUME, *job.SCRIPT_VOLUMES.values(), job.SHARED_MEMORY_VOLUME):
        if reserved in declared:
            yield ("volumes",), f"{reserved!r} is the name of a volume that jobs may have of their own; choose another"
    for key, role in job.roles.items():
        for at, said in mount_findings(role.volume_mounts, declared):
            yield (key, "volumeMounts", *at), said
        taken = {job.CONFIG_FOLDER: "inline configuration"} if job.config_files else {}
        taken |= {job.SCRIPT_FOLDER: "inline script"} if job.script(key) else {}
        for index, mount in enumerate(role.volume_mounts):
            folder = mount.folder
            if folder in taken:
                yield (
                    (key, "volumeMounts", index, "mountPath"),
                    f"{folder} is where the {taken[folder]} goes, and one would hide the other; mount it elsewhere",
                )


def _role_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    if not job.roles:
        known = "embeddingParameterServer, embeddingWorker, nnWorker, dataloader"
        yield (), f"has no role, so nothing would run; describe at least one of {known}"
    worker = job.nn_worker
    if worker and worker.resources.gpus and worker.nproc_per_node > worker.resources.gpus:
        yield (
            ("nnWorker", "nprocPerNode"),
            f"{worker.nproc_per_node} processes but {worker.resources.gpus} GPU in each pod: a process without "
            "a GPU of its own stops at start; lower it or raise the nvidia.com/gpu limit",
        )


def _operator_findings(job: "PersiaJobSpec") -> Iterator[Finding]:
    for key, role in job.roles.items():
        for field in role.beyond_the_operator:
            yield (
                (key, field),
                "the PERSIA operator has no words for it, so its pods would run without; remove it, or leave out "
                "mode: operator",
            )
    for index, volume in enumerate(job.volumes):
        if volume.model_fields_set & _NEWER_VOLUME_SOURCES:
            yield (
                ("volumes", index),
                "is of a source that the PersiaJob resource definition lacks and drops; use a PersistentVolumeClaim, "
                "or leave out mode: operator",
            )
