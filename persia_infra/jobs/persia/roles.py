"""The four roles of a PERSIA job: what their pods are like and where they run."""

from typing import Annotated, Literal

from pydantic import Field

from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.affinity import Affinity
from persia_infra.kube.pod_templates import SHARED_MEMORY, PodSecurity, Toleration
from persia_infra.kube.pods import ABOVE_ZERO, EnvVar, Resources, VolumeMount
from persia_infra.spec.base import DnsLabel, Image, PodCount, Quantity, Spec

Mode = Literal["native", "operator"]
"""As workloads of Kubernetes itself, or as an object that the system's own operator acts on."""


class PersiaEnv(Spec):
    """Paths inside the containers, under the names of the variables that carry them."""

    global_config: str | None = Field(default=None, min_length=1, alias="PERSIA_GLOBAL_CONFIG")
    embedding_config: str | None = Field(default=None, min_length=1, alias="PERSIA_EMBEDDING_CONFIG")
    nn_worker_entry: str | None = Field(default=None, min_length=1, alias="PERSIA_NN_WORKER_ENTRY")
    dataloader_entry: str | None = Field(default=None, min_length=1, alias="PERSIA_DATALOADER_ENTRY")


class Role(Spec):
    """One of the four kinds of process of a PERSIA job.

    What is excluded from its dump is no part of PERSIA's own resource definition.
    """

    replicas: PodCount = Field(ge=0)
    resources: Resources = Resources()
    volume_mounts: list[VolumeMount] = Field(default=[])
    env: list[EnvVar] = Field(default=[])
    image: Image | None = None
    pool: DnsLabel | None = Field(default=None, exclude=True)
    node_selector: dict[str, str] = Field(default={}, exclude=True)
    """Labels that the nodes must have besides the pool's."""
    tolerations: list[Toleration] = Field(default=[], exclude=True)
    """Besides those for the taints of its pool."""
    affinity: Affinity | None = Field(default=None, exclude=True)
    service_account_name: DnsLabel | None = Field(default=None, exclude=True)
    priority_class_name: DnsLabel | None = Field(default=None, exclude=True)
    security_context: PodSecurity | None = Field(default=None, exclude=True)
    settings: RunSettings = Field(default=RunSettings(), exclude=True)
    """In the words of runs; they win over the role's own."""
    profile: DnsLabel | None = Field(default=None, exclude=True)
    """Of the environment's profiles; what it says wins over everything else."""

    @property
    def mounts_shared_memory(self) -> bool:
        """Whether a volume of its own is the shared memory of its processes."""
        return any(mount.folder == SHARED_MEMORY for mount in self.volume_mounts)

    @property
    def beyond_the_operator(self) -> list[str]:
        """What is described that the PERSIA operator has no words for."""
        fields = {
            "pool": self.pool,
            "nodeSelector": self.node_selector,
            "tolerations": self.tolerations,
            "affinity": self.affinity,
            "serviceAccountName": self.service_account_name,
            "priorityClassName": self.priority_class_name,
            "securityContext": self.security_context,
            "settings": self.settings != RunSettings(),
            "profile": self.profile,
        }
        return [name for name, value in fields.items() if value]


class ScriptedRole(Role):
    """A role that runs a Python script of the user's."""

    script: str | None = Field(default=None, min_length=1, exclude=True)
    """The script itself, in place of a path in persiaEnv; it must do without other files of its own."""


class NnWorker(ScriptedRole):
    """The role that trains the dense part, usually on GPUs."""

    nproc_per_node: int = Field(ge=1)
    shared_memory: Annotated[Quantity, ABOVE_ZERO] | None = Field(default=None, exclude=True)
    """Upper bound of /dev/shm, which counts as the container's memory; without one the memory limit is it."""
