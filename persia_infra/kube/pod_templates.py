"""Pod templates as job manifests carry them, with every key that Kubernetes knows.

What jobs are judged by (containers, volumes, security, placement) is typed; the rest keeps its shape and is
left to the API server, which refuses what it does not like in its own words.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from persia_infra.kube.affinity import Affinity
from persia_infra.kube.pods import EnvVar, Named, Resources, Volume, VolumeMount, duplicate_names, mount_findings
from persia_infra.spec.base import DnsLabel, Finding, Image, Spec, refuse
from persia_infra.spec.quantity import LARGEST, format_quantity, parse_quantity

Plain = dict[str, Any]
"""An object whose inside is left to the API server."""

SHARED_MEMORY = "/dev/shm"  # noqa: S108

_LIKE_PRIVILEGED = frozenset(("ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO"))


def _not_root(value: int) -> int:
    if value == 0:
        raise ValueError(
            "0 is root, which runs are not allowed to be: whoever breaks out of such a container owns the node; "
            "write another number, such as 1000"
        )
    if value >= 2**31:
        raise ValueError("is more than a number of a user or group can be; write one below 2147483648")
    return value


UserId = Annotated[int, Field(ge=0, strict=True), AfterValidator(_not_root)]
"""Of a user or group other than root."""


class Toleration(Spec):
    """Lets a pod onto nodes with a taint."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if self.operator == "Exists" and self.value:
            yield ("value",), "has no place beside operator Exists, and Kubernetes refuses both; remove one"
        if not self.key and self.operator != "Exists":
            yield ("key",), "is missing, which only operator Exists allows (and tolerates every taint); add the key"
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            yield ("tolerationSeconds",), "counts for the effect NoExecute only, and Kubernetes refuses it elsewhere"


class SeccompProfile(Spec):
    """The filter of system calls."""

    type: Literal["RuntimeDefault", "Unconfined", "Localhost"]
    localhost_profile: str | None = None


class Capabilities(Spec):
    """Linux capabilities beyond, or short of, the runtime's own set."""

    add: list[str] | None = None
    drop: list[str] | None = None

    @model_validator(mode="after")
    def _short_of_root(self) -> Self:
        refuse(
            (("add", index), f"{name} makes a container as powerful as the node's root; name what the program needs")
            for index, name in enumerate(self.add or ())
            if name.upper().removeprefix("CAP_") in _LIKE_PRIVILEGED
        )
        return self


class _RunAs(Spec):
    run_as_user: UserId | None = None
    run_as_group: UserId | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: SeccompProfile | None = None
    se_linux_options: Plain | None = None
    app_armor_profile: Plain | None = None
    windows_options: Plain | None = None

    @model_validator(mode="after")
    def _no_root_by_choice(self) -> Self:
        if self.run_as_non_root is False:
            said = "false asks for root, which runs are not allowed to be; leave it out, or write true and runAsUser"
            refuse([(("runAsNonRoot",), said)])
        return self


class PodSecurity(_RunAs):
    """Who a pod's containers run as, and who its volumes belong to."""

    fs_group: UserId | None = None
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None
    supplemental_groups: list[UserId] | None = None
    supplemental_groups_policy: Literal["Merge", "Strict"] | None = None
    se_linux_change_policy: str | None = None
    sysctls: list[Plain] | None = None


class ContainerSecurity(_RunAs):
    """What a container may do."""

    allow_privilege_escalation: bool | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None

    @model_validator(mode="after")
    def _confined(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if self.privileged:
            yield ("privileged",), "gives the container the whole node, its other pods and disks included; remove it"
        if self.allow_privilege_escalation:
            yield (
                ("allowPrivilegeEscalation",),
                "lets a program become root after all, through any set-user-ID file of the image; remove it",
            )
        if self.proc_mount == "Unmasked":
            yield ("procMount",), "Unmasked opens the node's kernel settings to the container; remove it"


class ContainerPort(Spec):
    """A port that a container listens on."""

    container_port: int = Field(ge=1, le=65535)
    name: str | None = None
    protocol: Literal["TCP", "UDP", "SCTP"] | None = None
    host_port: int | None = Field(default=None, ge=0, le=65535)
    host_ip: str | None = Field(default=None, alias="hostIP")


class _NamedRef(Named):
    optional: bool | None = None


class EnvFrom(Spec):
    """All keys of a Secret or ConfigMap as variables."""

    prefix: str | None = None
    secret_ref: _NamedRef | None = None
    config_map_ref: _NamedRef | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.secret_ref is None) == (self.config_map_ref is None):
            raise ValueError("needs exactly one of secretRef and configMapRef")
        return self


class Container(Spec):
    """One container of a pod."""

    name: DnsLabel
    image: Image | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] = Field(default=[])
    env_from: list[EnvFrom] = Field(default=[])
    resources: Resources = Resources()
    volume_mounts: list[VolumeMount] = Field(default=[])
    ports: list[ContainerPort] | None = None
    security_context: ContainerSecurity = ContainerSecurity()
    working_dir: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[Plain] | None = None
    lifecycle: Plain | None = None
    liveness_probe: Plain | None = None
    readiness_probe: Plain | None = None
    startup_probe: Plain | None = None
    resize_policy: list[Plain] | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    tty: bool | None = None
    termination_message_path: str | None = None
    termination_message_policy: Literal["File", "FallbackToLogsOnError"] | None = None
    volume_devices: list[Plain] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse((("env", *at), said) for at, said in duplicate_names(self.env, "variable"))
        return self


class PodSpec(Spec):
    """A pod."""

    containers: list[Container] = Field(min_length=1)
    init_containers: list[Container] = Field(default=[])
    volumes: list[Volume] = Field(default=[])
    node_selector: dict[str, str] = Field(default={})
    tolerations: list[Toleration] = Field(default=[])
    affinity: Affinity | None = None
    security_context: PodSecurity = PodSecurity()
    restart_policy: Literal["Always", "OnFailure", "Never"] | None = None
    scheduler_name: str | None = None
    host_network: bool | None = None
    host_pid: bool | None = Field(default=None, alias="hostPID")
    host_ipc: bool | None = Field(default=None, alias="hostIPC")
    service_account_name: str | None = None
    service_account: str | None = None
    automount_service_account_token: bool | None = None
    priority_class_name: str | None = None
    image_pull_secrets: list[Named] | None = None
    termination_grace_period_seconds: int | None = Field(default=None, ge=0)
    active_deadline_seconds: int | None = Field(default=None, ge=1)
    dns_config: Plain | None = None
    dns_policy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"] | None = None
    enable_service_links: bool | None = None
    host_aliases: list[Plain] | None = None
    host_users: bool | None = None
    hostname: str | None = None
    hostname_override: str | None = None
    subdomain: str | None = None
    set_hostname_as_fqdn: bool | None = Field(default=None, alias="setHostnameAsFQDN")
    node_name: str | None = None
    os: Plain | None = None
    overhead: Plain | None = None
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None
    priority: int | None = None
    readiness_gates: list[Plain] | None = None
    resource_claims: list[Plain] | None = None
    resources: Plain | None = None
    runtime_class_name: str | None = None
    scheduling_gates: list[Plain] | None = None
    share_process_namespace: bool | None = None
    topology_spread_constraints: list[Plain] | None = None

    @property
    def main(self) -> Container:
        """The container that trains: the first one, as the operators see it."""
        return self.containers[0]

    @property
    def all_containers(self) -> list[tuple[tuple[str, int], Container]]:
        """Every container with its place."""
        return [
            *((("initContainers", index), one) for index, one in enumerate(self.init_containers)),
            *((("containers", index), one) for index, one in enumerate(self.containers)),
        ]

    def mounts_at(self, path: str) -> bool:
        """Whether the main container has a mount there already."""
        return any(mount.folder == path for mount in self.main.volume_mounts)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        for shared, key, what in ((self.host_pid, "hostPID", "processes"), (self.host_ipc, "hostIPC", "shared memory")):
            if shared:
                yield (key,), f"lets the pod reach the {what} of everything on its node; remove it"
        for at, said in duplicate_names(self.volumes, "volume"):
            yield ("volumes", *at), said
        declared = {volume.name for volume in self.volumes}
        names: set[str] = set()
        for place, container in self.all_containers:
            if container.name in names:
                yield (*place, "name"), f"container {container.name!r} is given twice; remove one"
            names.add(container.name)
            for at, said in mount_findings(container.volume_mounts, declared):
                yield (*place, "volumeMounts", *at), said


class TemplateMetadata(Spec):
    """What the pods are labelled with; their names are not the template's to choose."""

    labels: dict[str, str] = Field(default={})
    annotations: dict[str, str] = Field(default={})
    name: str | None = None
    creation_timestamp: Any = None


class PodTemplate(Spec):
    """What each pod of a role is made from."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: PodSpec

    @property
    def resources(self) -> Resources:
        """What the scheduler counts for one pod, all its containers together."""
        return pod_resources(self.spec)

    def as_kubernetes(self) -> dict[str, Any]:
        """Exactly the keys that were given, in Kubernetes' spelling."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)


def pod_resources(pod: PodSpec) -> Resources:
    """The sum over the containers; an init container counts where it asks for more than all of them."""
    totals: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
    for kind, sums in totals.items():
        for container in pod.containers:
            for name, amount in _amounts(container, kind).items():
                sums[name] = sums.get(name, 0) + amount
        for container in pod.init_containers:
            for name, amount in _amounts(container, kind).items():
                sums[name] = max(sums.get(name, 0), amount)
    for name, limit in totals["limits"].items():
        # With a limit in some containers only, the sum of the requests can exceed that of the limits.
        totals["limits"][name] = max(limit, totals["requests"].get(name, limit))
    return Resources.model_validate(
        {
            kind: {
                name: format_quantity(min(amount, LARGEST), binary=name == "memory") for name, amount in sums.items()
            }
            for kind, sums in totals.items()
        }
    )


def _amounts(container: Container, kind: str) -> dict[str, Any]:
    if kind == "requests":
        return dict(container.resources.effective_requests)
    return {name: parse_quantity(text) for name, text in container.resources.limits.items()}
