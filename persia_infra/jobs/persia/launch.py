"""How each role of a PERSIA job is started: program, arguments, variables and files, identical in every mode.

Names, arguments and the order of variables match the PERSIA operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from persia_infra.kube.objects import hashed_name
from persia_infra.kube.pods import EnvVar
from persia_infra.kube.types.base import trusted
from persia_infra.kube.workloads import POD_INDEX_LABEL, field_variable
from persia_infra.nats.objects import nats_url

if TYPE_CHECKING:
    from persia_infra.jobs.persia.spec import PersiaJobSpec

GATEWAY_PORT = 9091
"""The port of the metrics gateway."""

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
    """How one role is started."""

    suffix: str
    """The part that follows the job's name in the names of the role's objects and pods."""
    container: str
    image: str
    """The default image."""
    args: tuple[str, ...]
    port: int | None = None
    """The port that the role listens on; for nn-workers the port of the DDP rendezvous."""
    probed: bool = False
    """Whether a pod counts as ready only when the port accepts connections."""

    @property
    def ports(self) -> dict[str, int]:
        """Named ports of the role's container and Service."""
        return {"persia": self.port} if self.port else {}


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
"""How each role is started, by the role's key in the PersiaJob resource."""


def gateway_service(job: str) -> str:
    """The name of the metrics gateway's Service."""
    return f"{job}-metrics-gateway-service"


def own_nats_name(job: str) -> str:
    """The name of the job's own NATS cluster."""
    return f"{job}-nats"


def variables(spec: "PersiaJobSpec", name: str, key: str, role_variables: Sequence[EnvVar]) -> list[EnvVar]:
    """The variables of a role's container, in the operator's order; later ones override earlier ones.

    Args:
        spec: The job.
        name: The job's name.
        key: The role.
        role_variables: The role's own variables, those of its settings included.
    """
    role = spec.roles[key]
    fixed: dict[str, str | None] = {
        "PERSIA_EMBEDDING_CONFIG": spec.embedding_config_path,
        "PERSIA_GLOBAL_CONFIG": spec.global_config_path,
        "LOG_LEVEL": spec.log_level,
        "RUST_BACKTRACE": "full",
        "PERSIA_METRICS_GATEWAY_ADDR": f"{gateway_service(name)}:{GATEWAY_PORT}",
    }
    if spec.own_nats:
        fixed["PERSIA_NATS_URL"] = nats_url(own_nats_name(name))
    for_each_pod: dict[str, str | None] = {"REPLICA_SIZE": str(role.replicas)}
    if key == "nnWorker" and spec.nn_worker:
        for_each_pod["NPROC_PER_NODE"] = str(spec.nn_worker.nproc_per_node)
        for_each_pod["PERSIA_NN_WORKER_ENTRY"] = spec.entry_path(key)
        if role.replicas > 1:
            # torch.distributed.launch sets RANK and WORLD_SIZE for each process, but assumes a single node unless
            # it gets the first pod's address: up to torch 1.8 from MASTER_ADDR, later from PET_MASTER_ADDR.
            first = f"{name}-{LAUNCHES[key].suffix}-0.{name}-{LAUNCHES[key].suffix}"
            for_each_pod |= {"MASTER_ADDR": first, "PET_MASTER_ADDR": first}
    if key == "dataloader":
        for_each_pod["PERSIA_DATALOADER_ENTRY"] = spec.entry_path(key)
    index = trusted(EnvVar, field_variable("REPLICA_INDEX", f"metadata.labels['{POD_INDEX_LABEL}']"))
    given = [*_texts(fixed), *spec.env, index, *_texts(for_each_pod), *role_variables]
    # Kubernetes also uses the last variable of a name, but server-side apply refuses a list with duplicate names.
    last = {variable.name: position for position, variable in enumerate(given)}
    return [variable for position, variable in enumerate(given) if last[variable.name] == position]


def _texts(values: Mapping[str, str | None]) -> list[EnvVar]:
    return [EnvVar.model_construct(name=name, value=value) for name, value in values.items()]


@dataclass(frozen=True)
class ConfigFiles:
    """Inline files that a role reads, in a ConfigMap whose name contains a hash of their content."""

    volume: str
    folder: str
    base_name: str
    files: dict[str, str]

    @property
    def object_name(self) -> str:
        """The name of the ConfigMap."""
        return hashed_name(self.base_name, self.files)


def files_of(job: str, spec: "PersiaJobSpec", key: str) -> list[ConfigFiles]:
    """The inline files that a role reads: PERSIA's configuration, or its own script."""
    files = []
    if spec.config_files and key in spec.CONFIG_READERS:
        files.append(ConfigFiles(spec.CONFIG_VOLUME, spec.CONFIG_FOLDER, f"{job}-config", spec.config_files))
    if script := spec.script(key):
        volume = spec.SCRIPT_VOLUMES[key]
        files.append(ConfigFiles(volume, spec.SCRIPT_FOLDER, f"{job}-{volume}", {spec.SCRIPT_NAMES[key]: script}))
    return files
