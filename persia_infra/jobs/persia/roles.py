"""The four roles of a PERSIA job: their pods and where these run."""

from typing import Annotated, Literal

from pydantic import Field

from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.affinity import Affinity
from persia_infra.kube.pod_templates import SHARED_MEMORY, PodSecurity, Toleration
from persia_infra.kube.pods import ABOVE_ZERO, EnvVar, Resources, VolumeMount, mount_folder
from persia_infra.spec.base import DnsLabel, Image, PodCount, Quantity, Spec

Mode = Literal["native", "operator"]
"""Whether a system runs as plain Kubernetes workloads, or as an object that its own operator acts on."""


class PersiaEnv(Spec):
    """Paths inside the containers, by the environment variables that hold them."""

    global_config: str | None = Field(default=None, min_length=1, alias="PERSIA_GLOBAL_CONFIG")
    """Path of the global configuration file in the containers; alternative to `globalConfig`."""
    embedding_config: str | None = Field(default=None, min_length=1, alias="PERSIA_EMBEDDING_CONFIG")
    """Path of the embedding configuration file in the containers; alternative to `embeddingConfig`."""
    nn_worker_entry: str | None = Field(default=None, min_length=1, alias="PERSIA_NN_WORKER_ENTRY")
    """Path of the training script in the nnWorker containers."""
    dataloader_entry: str | None = Field(default=None, min_length=1, alias="PERSIA_DATALOADER_ENTRY")
    """Path of the data loading script in the dataloader containers."""


class Role(Spec):
    """One of the four kinds of process of a PERSIA job.

    Fields that are excluded from its dump are not part of PERSIA's own resource definition.
    """

    replicas: PodCount = Field(ge=0)
    """Number of pods."""
    resources: Resources = Resources.defaults()
    """Requests and limits of each pod."""
    volume_mounts: list[VolumeMount] = Field(default=[])
    """Where the pods mount the job's volumes."""
    env: list[EnvVar] = Field(default=[])
    """Environment variables of this role, in addition to the job's."""
    image: Image | None = None
    """Container image; PERSIA's published image for the role when absent."""
    pool: DnsLabel | None = Field(default=None, exclude=True)
    """The node pool of the pods; needed when more than one pool could take them."""
    node_selector: dict[str, str] = Field(default={}, exclude=True)
    """Labels that the nodes must have, in addition to those of the pool."""
    tolerations: list[Toleration] = Field(default=[], exclude=True)
    """Taints of nodes that the pods tolerate, in addition to those of their pool."""
    affinity: Affinity | None = Field(default=None, exclude=True)
    """Rules on which nodes the pods prefer or need, as in Kubernetes."""
    service_account_name: DnsLabel | None = Field(default=None, exclude=True)
    """The ServiceAccount of the pods, for example for Workload Identity."""
    priority_class_name: DnsLabel | None = Field(default=None, exclude=True)
    """The PriorityClass of the pods."""
    security_context: PodSecurity | None = Field(default=None, exclude=True)
    """The user and groups that the pods run as."""
    settings: RunSettings = Field(default=RunSettings.defaults(), exclude=True)
    """Settings in the platform's terms; they take precedence over the role's other fields."""
    profile: DnsLabel | None = Field(default=None, exclude=True)
    """A profile of the environment; its values take precedence over everything else."""

    @property
    def mounts_shared_memory(self) -> bool:
        """Whether the role mounts a volume of its own as shared memory."""
        return any(mount_folder(mount) == SHARED_MEMORY for mount in self.volume_mounts)

    @property
    def beyond_the_operator(self) -> list[str]:
        """The given fields that the PERSIA operator has no counterpart for."""
        fields = {
            "pool": self.pool,
            "nodeSelector": self.node_selector,
            "tolerations": self.tolerations,
            "affinity": self.affinity,
            "serviceAccountName": self.service_account_name,
            "priorityClassName": self.priority_class_name,
            "securityContext": self.security_context,
            "settings": self.settings != RunSettings.defaults(),
            "profile": self.profile,
        }
        return [name for name, value in fields.items() if value]


class ScriptedRole(Role):
    """A role that runs one of the user's Python scripts."""

    script: str | None = Field(default=None, min_length=1, exclude=True)
    """The Python script itself, as an alternative to a path in `persiaEnv`; it cannot import other files."""


class NnWorker(ScriptedRole):
    """The role that trains the dense part, usually on GPUs."""

    nproc_per_node: int = Field(ge=1)
    """Training processes per pod, usually one per GPU."""
    shared_memory: Annotated[Quantity, ABOVE_ZERO] | None = Field(default=None, exclude=True)
    """Size limit of /dev/shm, which counts as the pod's memory; the memory limit when absent."""
