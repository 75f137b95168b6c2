"""How each role of a PERSIA job is started: program, arguments, variables and files, the same in both modes.

Names, arguments and the order of variables are the PERSIA operator's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes import core

from persia_components import _pods

if TYPE_CHECKING:
    from persia_infra.jobs.persia.roles import Role
    from persia_infra.jobs.persia.spec import PersiaJobSpec

GATEWAY_PORT = 9091

_CPU_IMAGE = "persiaml/persia-cpu-runtime:latest"
_CUDA_IMAGE = "persiaml/persia-cuda-runtime:latest"
_CONFIG_FLAGS = (
    "--embedding-config",
    "$(PERSIA_EMBEDDING_CONFIG)",
    "--global-config",
    "$(PERSIA_GLOBAL_CONFIG)",
)
_REPLICA_FLAGS = ("--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)")


@dataclass(frozen=True)
class Launch:
    """How one role is run."""

    suffix: str
    container: str
    image: str
    args: tuple[str, ...]
    port: int | None = None
    """Where the role listens; the DDP rendezvous port in the case of nn-workers."""
    probed: bool = False


LAUNCHES: Mapping[str, Launch] = {
    "embeddingParameterServer": Launch(
        "embedding-ps",
        "emb-server",
        _CPU_IMAGE,
        ("embedding-parameter-server", *_CONFIG_FLAGS, *_REPLICA_FLAGS),
        port=8888,
        probed=True,
    ),
    "embeddingWorker": Launch(
        "embedding-worker",
        "embedding-worker",
        _CPU_IMAGE,
        ("embedding-worker", *_CONFIG_FLAGS, *_REPLICA_FLAGS),
        port=8887,
        probed=True,
    ),
    "nnWorker": Launch(
        "nn-worker",
        "nn-worker",
        _CUDA_IMAGE,
        (
            "nn-worker",
            "$(PERSIA_NN_WORKER_ENTRY)",
            "--nproc-per-node",
            "$(NPROC_PER_NODE)",
            "--nnodes",
            "$(REPLICA_SIZE)",
            "--node-rank",
            "$(REPLICA_INDEX)",
        ),
        port=23456,
    ),
    "dataloader": Launch(
        "dataloader",
        "data-loader",
        _CPU_IMAGE,
        ("data-loader", "$(PERSIA_DATALOADER_ENTRY)", *_REPLICA_FLAGS),
    ),
}


def gateway_service(job: str) -> str:
    """The name of the metrics gateway's Service."""
    return f"{job}-metrics-gateway-service"


def environment(
    job: str, spec: "PersiaJobSpec", key: str, role: "Role", nats_url: pulumi.Input[str] | None
) -> "list[core.v1.EnvVarArgs]":
    """The variables in the operator's order; what is described later overrides."""

    def fixed(name: str, value: pulumi.Input[str] | None) -> "core.v1.EnvVarArgs":
        return core.v1.EnvVarArgs(name=name, value=value)

    given = [
        fixed("PERSIA_EMBEDDING_CONFIG", spec.embedding_config_path),
        fixed("PERSIA_GLOBAL_CONFIG", spec.global_config_path),
        fixed("LOG_LEVEL", spec.log_level),
        fixed("RUST_BACKTRACE", "full"),
        fixed("PERSIA_METRICS_GATEWAY_ADDR", f"{gateway_service(job)}:{GATEWAY_PORT}"),
    ]
    if nats_url is not None:
        given.append(fixed("PERSIA_NATS_URL", nats_url))
    given += _pods.variables(spec.env)
    given.append(_pods.field_variable("REPLICA_INDEX", f"metadata.labels['{_pods.POD_INDEX_LABEL}']"))
    given.append(fixed("REPLICA_SIZE", str(role.replicas)))
    if key == "nnWorker" and spec.nn_worker:
        given.append(fixed("NPROC_PER_NODE", str(spec.nn_worker.nproc_per_node)))
        given.append(fixed("PERSIA_NN_WORKER_ENTRY", spec.entry_path(key)))
        if role.replicas > 1:
            # torch.distributed.launch gives each process its RANK and WORLD_SIZE, but takes itself for the only
            # node's unless it is told otherwise: until torch 1.8 by nobody, later by these two.
            first = f"{job}-{LAUNCHES[key].suffix}-0.{job}-{LAUNCHES[key].suffix}"
            given += [fixed("MASTER_ADDR", first), fixed("PET_MASTER_ADDR", first)]
    if key == "dataloader":
        given.append(fixed("PERSIA_DATALOADER_ENTRY", spec.entry_path(key)))
    return _pods.last_of_each_name([*given, *_pods.variables(role.env)])


@dataclass(frozen=True)
class ConfigFiles:
    """Inline files of a job that a role reads, as a ConfigMap named after their content."""

    volume: str
    folder: str
    base_name: str
    files: dict[str, str]

    @property
    def object_name(self) -> str:
        """Of the ConfigMap."""
        return _pods.hashed_name(self.base_name, self.files)


def files_of(job: str, spec: "PersiaJobSpec", key: str) -> list[ConfigFiles]:
    """What a role gets to read: PERSIA's configuration, or its own script."""
    found = []
    if spec.config_files and key in spec.CONFIG_READERS:
        found.append(ConfigFiles(spec.CONFIG_VOLUME, spec.CONFIG_FOLDER, f"{job}-config", spec.config_files))
    if script := spec.script(key):
        volume = spec.SCRIPT_VOLUMES[key]
        files = {spec.SCRIPT_NAMES[key]: script}
        found.append(ConfigFiles(volume, spec.SCRIPT_FOLDER, f"{job}-{volume}", files))
    return found
