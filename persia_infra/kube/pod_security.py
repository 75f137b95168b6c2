"""Which of Kubernetes' Pod Security levels a pod needs, and how to make it fit the strictest one.

Windows, SELinux and sysctls are not covered.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from persia_infra.kube.pod_templates import (
    Capabilities,
    Container,
    PodSpec,
    PodTemplate,
    SeccompProfile,
    all_containers,
)

Level = Literal["restricted", "baseline", "privileged"]
LEVELS: tuple[Level, ...] = ("restricted", "baseline", "privileged")
"""The levels from the strictest to the most permissive."""

Need = tuple[Level, str]
"""A level, and the reason why a stricter one is not enough."""

_BASELINE_CAPABILITIES = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_RESTRICTED_VOLUMES = frozenset(
    ("config_map", "csi", "downward_api", "empty_dir", "ephemeral", "persistent_volume_claim", "projected", "secret")
)


def security_need(pods: Sequence[PodSpec]) -> Need | None:
    """The most permissive level that any of these pods needs, with the reason; None if all fit `restricted`."""
    needs = [need for pod in pods for need in _needs(pod)]
    return max(needs, key=lambda need: LEVELS.index(need[0]), default=None)


def _needs(pod: PodSpec) -> Iterator[Need]:
    if pod.host_network:
        yield "privileged", "its pods use the node's network"
    for volume in pod.volumes:
        if volume.host_path:
            yield "privileged", f"its volume {volume.name} is a folder on the node"
        elif not (volume.model_fields_set - {"name"}) <= _RESTRICTED_VOLUMES:
            yield "baseline", f"its volume {volume.name} is mounted from outside the cluster without a claim"
    for _, container in all_containers(pod):
        yield from _container_needs(pod, container)


def _container_needs(pod: PodSpec, container: Container) -> Iterator[Need]:
    security = container.security_context
    added = set((security.capabilities and security.capabilities.add) or ())
    dropped = (security.capabilities and security.capabilities.drop) or ()
    if added - _BASELINE_CAPABILITIES:
        extra = ", ".join(sorted(added - _BASELINE_CAPABILITIES))
        yield "privileged", f"its container {container.name} adds the capability {extra}"
    if any(port.host_port for port in container.ports):
        yield "privileged", f"its container {container.name} uses a port of the node"
    non_root = security.run_as_non_root
    if non_root is None:
        non_root = pod.security_context.run_as_non_root
    if not non_root:
        yield "baseline", f"its container {container.name} may run as root unless its settings have run_as_user"
    if security.allow_privilege_escalation is None or "ALL" not in dropped or added - {"NET_BIND_SERVICE"}:
        yield "baseline", f"its container {container.name} keeps capabilities or may gain privileges"
    seccomp = security.seccomp_profile or pod.security_context.seccomp_profile
    if seccomp is None:
        yield "baseline", f"its container {container.name} has no seccomp profile"
    elif seccomp.type == "Unconfined":
        yield "privileged", f"its container {container.name} turns off the seccomp profile"


def confined(template: PodTemplate) -> PodTemplate:
    """The template with everything that `restricted` requires, except where it sets something else itself.

    Pods that may run as root are not changed: without capabilities an SSH server, for example, would not start.
    """
    pod = template.spec
    security = pod.security_context
    if not (security.run_as_user or security.run_as_non_root):
        return template
    update: dict[str, object] = {}
    if security.run_as_non_root is None:
        update["run_as_non_root"] = True
    if security.seccomp_profile is None:
        update["seccomp_profile"] = SeccompProfile(type="RuntimeDefault")
    changes: dict[str, object] = {
        "security_context": security.model_copy(update=update),
        "containers": [_confined_container(container) for container in pod.containers],
    }
    if pod.init_containers:
        changes["init_containers"] = [_confined_container(container) for container in pod.init_containers]
    return template.model_copy(update={"spec": pod.model_copy(update=changes)})


def _confined_container(container: Container) -> Container:
    security = container.security_context
    update: dict[str, object] = {}
    if security.allow_privilege_escalation is None:
        update["allow_privilege_escalation"] = False
    if security.capabilities is None:
        update["capabilities"] = Capabilities(drop=["ALL"])
    return container.model_copy(update={"security_context": security.model_copy(update=update)})
