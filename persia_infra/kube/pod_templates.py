"""Rules for whole pods: tolerations, users, privileges and ports; and what else is asked of a pod.

Runs never get the privileges of their node. Pods that this library makes itself may have them: see `trusted`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from persia_infra.kube.types.base import KubeType, rule_for
from persia_infra.kube.types.meta import ObjectMeta as TemplateMetadata
from persia_infra.kube.types.pods import (
    Affinity,
    Capabilities,
    Container,
    ContainerPort,
    PodSpec,
    SeccompProfile,
    Toleration,
)
from persia_infra.kube.types.pods import EnvFromSource as EnvFrom
from persia_infra.kube.types.pods import PodSecurityContext as PodSecurity
from persia_infra.kube.types.pods import PodTemplateSpec as PodTemplate
from persia_infra.kube.types.pods import SecurityContext as ContainerSecurity
from persia_infra.spec.base import Finding, Place

__all__ = [
    "SHARED_MEMORY",
    "Affinity",
    "Capabilities",
    "Container",
    "ContainerPort",
    "ContainerSecurity",
    "EnvFrom",
    "PodSecurity",
    "PodSpec",
    "PodTemplate",
    "SeccompProfile",
    "TemplateMetadata",
    "Toleration",
    "UserId",
    "all_containers",
    "keys_given",
    "main_container",
]

SHARED_MEMORY = "/dev/shm"  # noqa: S108

_LIKE_PRIVILEGED = frozenset(("ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO"))
_PORT = "must be a port, from 1 to 65535"


def _user_findings(number: int) -> Iterator[Finding]:
    if number == 0:
        yield (
            (),
            "0 is root, which runs are not allowed to be: whoever breaks out of such a container owns the node; "
            "write another number, such as 1000",
        )
    if number < 0:
        yield (), "must be greater than or equal to 0"
    if number >= 2**31:
        yield (), "is too large for a user or group; write a number below 2147483648"


def _not_root(value: int) -> int:
    for _, message in _user_findings(value):
        raise ValueError(message)
    return value


UserId = Annotated[int, Field(strict=True), AfterValidator(_not_root)]
"""The number of a user or group other than root."""


@rule_for(Toleration, "operator")
def _operator(operator: str) -> Iterator[Finding]:
    if operator not in ("Exists", "Equal"):
        yield (), f"{operator} is not enabled in GKE's releases; write Exists or Equal"


@rule_for(Toleration)
def _toleration(toleration: Toleration) -> Iterator[Finding]:
    if toleration.operator == "Exists" and toleration.value:
        yield ("value",), "cannot be combined with operator Exists, and Kubernetes refuses both; remove one"
    if not toleration.key and toleration.operator != "Exists":
        yield ("key",), "is missing, which only operator Exists allows (and tolerates every taint); add the key"
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield ("tolerationSeconds",), "needs the effect NoExecute, and Kubernetes refuses it otherwise; remove it"


@rule_for(Capabilities, "add")
def _no_node_privileges(capabilities: Sequence[str]) -> Iterator[Finding]:
    for index, name in enumerate(capabilities):
        if name.upper().removeprefix("CAP_") in _LIKE_PRIVILEGED:
            yield (
                (index,),
                f"{name} makes a container as powerful as the node's root; name only the capabilities that the "
                "program needs",
            )


rule_for(PodSecurity, "run_as_user", "run_as_group", "fs_group")(_user_findings)
rule_for(ContainerSecurity, "run_as_user", "run_as_group")(_user_findings)


@rule_for(PodSecurity, "supplemental_groups")
def _groups(groups: Sequence[int]) -> Iterator[Finding]:
    for index, group in enumerate(groups):
        yield from (((index,), message) for _, message in _user_findings(group))


@rule_for(PodSecurity, "run_as_non_root")
@rule_for(ContainerSecurity, "run_as_non_root")
def _non_root(chosen: bool) -> Iterator[Finding]:
    if not chosen:
        yield (), "false asks for root, which runs are not allowed to be; leave it out, or write true and runAsUser"


@rule_for(ContainerSecurity, "privileged")
def _privileged(chosen: bool) -> Iterator[Finding]:
    if chosen:
        yield (), "gives the container the whole node, its other pods and disks included; remove it"


@rule_for(ContainerSecurity, "allow_privilege_escalation")
def _escalation(chosen: bool) -> Iterator[Finding]:
    if chosen:
        yield (), "lets a program become root after all, through any set-user-ID file of the image; remove it"


@rule_for(ContainerSecurity, "proc_mount")
def _masked(mount: str) -> Iterator[Finding]:
    if mount == "Unmasked":
        yield (), "Unmasked opens the node's kernel settings to the container; remove it"


@rule_for(PodSpec, "host_pid")
def _own_processes(shared: bool) -> Iterator[Finding]:
    if shared:
        yield (), "lets the pod reach the processes of everything on its node; remove it"


@rule_for(PodSpec, "host_ipc")
def _own_memory(shared: bool) -> Iterator[Finding]:
    if shared:
        yield (), "lets the pod reach the shared memory of everything on its node; remove it"


@rule_for(PodSpec, "containers")
def _some_container(containers: Sequence[Container]) -> Iterator[Finding]:
    if not containers:
        yield (), "is empty; give at least one"


@rule_for(PodSpec, "ephemeral_containers")
def _no_debugging(containers: Sequence[object]) -> Iterator[Finding]:
    if containers:
        yield (), "is only for pods that run already, and Kubernetes refuses it in a description; remove it"


@rule_for(PodSpec, "termination_grace_period_seconds")
def _not_negative(seconds: int) -> Iterator[Finding]:
    if seconds < 0:
        yield (), "must be greater than or equal to 0"


@rule_for(PodSpec, "active_deadline_seconds")
def _at_least_one(seconds: int) -> Iterator[Finding]:
    if seconds < 1:
        yield (), "must be greater than or equal to 1"


@rule_for(ContainerPort, "container_port")
def _port(port: int) -> Iterator[Finding]:
    if not 1 <= port <= 65535:
        yield (), _PORT


@rule_for(ContainerPort, "host_port")
def _host_port(port: int) -> Iterator[Finding]:
    if not 0 <= port <= 65535:
        yield (), f"{_PORT}, or 0 for none"


def keys_given(part: KubeType, wanted: Mapping[str, Collection[str]], place: Place = ()) -> Iterator[Place]:
    """Yields where some keys of some types are given in an object, at any depth.

    Args:
        part: The object.
        wanted: The fields to look for, by the name of the type that has them.
        place: The place of the object, which all places start with.
    """
    for name in sorted(part.model_fields_set):
        value, here = getattr(part, name), (*place, type(part).model_fields[name].alias or name)
        if name in wanted.get(type(part).__name__, ()):
            yield here
        for index, inner in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(inner, KubeType):
                yield from keys_given(inner, wanted, here if index is None else (*here, index))


def main_container(pod: PodSpec) -> Container:
    """Returns the container that trains: the first one, as the operators see it."""
    return pod.containers[0]


def all_containers(pod: PodSpec) -> list[tuple[tuple[str, int], Container]]:
    """Returns every container with its place in the pod."""
    return [
        *((("initContainers", index), container) for index, container in enumerate(pod.init_containers)),
        *((("containers", index), container) for index, container in enumerate(pod.containers)),
    ]
