"""Parts of pods and workloads that all jobs are made of."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes import apps, core, meta, networking, policy

from persia_components._children import child_options, metadata

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement
    from persia_infra.kube.pod_templates import EnvFrom, Toleration
    from persia_infra.kube.pods import EnvVar, Resources, Volume, VolumeMount

POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


def hashed_name(base: str, files: Mapping[str, str]) -> str:
    """A name that changes with the content, so pods that read the old files keep them until they are replaced."""
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    return f"{base}-{digest[:10]}"


def resources(spec: "Resources") -> "core.v1.ResourceRequirementsArgs | None":
    """Requests and limits of a container."""
    if not spec.requests and not spec.limits:
        return None
    return core.v1.ResourceRequirementsArgs(requests=spec.requests or None, limits=spec.limits or None)


def variables(named: "Sequence[EnvVar]") -> "list[core.v1.EnvVarArgs]":
    """Variables as they were described."""
    return [core.v1.EnvVarArgs(**variable.model_dump(exclude_none=True)) for variable in named]


def variable_sources(described: "Sequence[EnvFrom]") -> "list[core.v1.EnvFromSourceArgs] | None":
    """Secrets and ConfigMaps whose keys all become variables."""
    return [core.v1.EnvFromSourceArgs(**one.model_dump(exclude_none=True)) for one in described] or None


def field_variable(name: str, field_path: str) -> "core.v1.EnvVarArgs":
    """A variable that holds a field of the pod itself."""
    return core.v1.EnvVarArgs(
        name=name,
        value_from=core.v1.EnvVarSourceArgs(field_ref=core.v1.ObjectFieldSelectorArgs(field_path=field_path)),
    )


def last_of_each_name(given: "Sequence[core.v1.EnvVarArgs]") -> "list[core.v1.EnvVarArgs]":
    """Variables without those that a later one of the same name overrides.

    Kubernetes would take the last as well, but server-side apply refuses a list with a name twice.
    """
    last = {str(variable.name): index for index, variable in enumerate(given)}
    return [variable for index, variable in enumerate(given) if last[str(variable.name)] == index]


def volumes(described: "Sequence[Volume]") -> "list[core.v1.VolumeArgs]":
    """Volumes as they were described."""
    return [core.v1.VolumeArgs(**volume.model_dump(exclude_none=True)) for volume in described]


def mounts(described: "Sequence[VolumeMount]") -> "list[core.v1.VolumeMountArgs]":
    """Mounts as they were described."""
    return [core.v1.VolumeMountArgs(**mount.model_dump(exclude_none=True)) for mount in described]


def tolerations(
    placement: "Placement | None", described: "Sequence[Toleration]" = ()
) -> "list[core.v1.TolerationArgs] | None":
    """What lets a pod onto the tainted nodes of its pool, and what was described besides."""
    own = [] if placement is None else placement.taints
    found = [
        core.v1.TolerationArgs(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect) for taint in own
    ]
    found += [core.v1.TolerationArgs(**toleration.model_dump(exclude_none=True)) for toleration in described]
    return found or None


def node_selector(placement: "Placement | None", described: Mapping[str, str]) -> dict[str, str] | None:
    """Labels of the pool's nodes, and what was described besides."""
    return {**described, **(placement.node_selector if placement else {})} or None


def confined(*, read_only_root: bool = False) -> "core.v1.SecurityContextArgs":
    """A container that can neither gain privileges nor use capabilities."""
    return core.v1.SecurityContextArgs(
        allow_privilege_escalation=False,
        capabilities=core.v1.CapabilitiesArgs(drop=["ALL"]),
        read_only_root_filesystem=True if read_only_root else None,
    )


def pod_security(*, user: int | None) -> "core.v1.PodSecurityContextArgs":
    """The default system call filter; and a user other than root, where the image can do with one."""
    return core.v1.PodSecurityContextArgs(
        run_as_non_root=True if user else None,
        run_as_user=user,
        run_as_group=user,
        fs_group=user,
        seccomp_profile=core.v1.SeccompProfileArgs(type="RuntimeDefault"),
    )


def spread(labels: dict[str, str]) -> "list[core.v1.TopologySpreadConstraintArgs]":
    """Pods over as many nodes as there are, without insisting on it."""
    return [
        core.v1.TopologySpreadConstraintArgs(
            max_skew=1,
            topology_key="kubernetes.io/hostname",
            when_unsatisfiable="ScheduleAnyway",
            label_selector=meta.v1.LabelSelectorArgs(match_labels=labels),
        )
    ]


def config_map(
    parent: pulumi.Resource,
    name: str,
    object_name: str,
    namespace: pulumi.Input[str],
    *,
    labels: dict[str, str],
    files: Mapping[str, str],
) -> "core.v1.ConfigMap":
    """Files for pods, under a name that changes with them."""
    return core.v1.ConfigMap(
        name,
        metadata=metadata(hashed_name(object_name, files), namespace, labels),
        data=dict(files),
        immutable=True,
        opts=child_options(parent),
    )


def disruption_budget(
    parent: pulumi.Resource,
    name: str,
    object_name: str,
    namespace: pulumi.Input[str],
    *,
    labels: dict[str, str],
    selector: dict[str, str],
) -> "policy.v1.PodDisruptionBudget":
    """Node drains take one pod at a time."""
    return policy.v1.PodDisruptionBudget(
        name,
        metadata=metadata(object_name, namespace, labels),
        spec=policy.v1.PodDisruptionBudgetSpecArgs(
            max_unavailable=1, selector=meta.v1.LabelSelectorArgs(match_labels=selector)
        ),
        opts=child_options(parent),
    )


def headless_service(
    parent: pulumi.Resource,
    name: str,
    object_name: str,
    namespace: pulumi.Input[str],
    *,
    labels: dict[str, str],
    selector: dict[str, str],
    ports: Mapping[str, int],
) -> "core.v1.Service":
    """A name for each pod of a StatefulSet, also before it is ready: its peers look for it while it starts."""
    return core.v1.Service(
        name,
        metadata=metadata(object_name, namespace, labels),
        spec=core.v1.ServiceSpecArgs(
            cluster_ip="None",
            publish_not_ready_addresses=True,
            selector=selector,
            ports=service_ports(ports),
        ),
        opts=child_options(parent),
    )


def service_ports(ports: Mapping[str, int]) -> "list[core.v1.ServicePortArgs] | None":
    """Ports of a Service that leads to container ports of the same names."""
    return [core.v1.ServicePortArgs(name=name, port=port, target_port=name) for name, port in ports.items()] or None


def container_ports(ports: Mapping[str, int]) -> "list[core.v1.ContainerPortArgs] | None":
    """Named ports of a container."""
    return [core.v1.ContainerPortArgs(name=name, container_port=port) for name, port in ports.items()] or None


def stateful_set(
    parent: pulumi.Resource,
    name: str,
    object_name: str,
    namespace: pulumi.Input[str],
    *,
    service_name: str,
    replicas: int,
    labels: dict[str, str],
    selector: dict[str, str],
    pod: "core.v1.PodSpecArgs",
    depends_on: Sequence[pulumi.Resource],
    annotations: dict[str, str] | None = None,
    claims: "Sequence[core.v1.PersistentVolumeClaimArgs] | None" = None,
) -> "apps.v1.StatefulSet":
    """Numbered pods that start all at once; `annotations` are the pods', and each pod has disks from `claims`."""
    return apps.v1.StatefulSet(
        name,
        metadata=metadata(object_name, namespace, labels),
        spec=apps.v1.StatefulSetSpecArgs(
            replicas=replicas,
            service_name=service_name,
            pod_management_policy="Parallel",
            selector=meta.v1.LabelSelectorArgs(match_labels=selector),
            template=core.v1.PodTemplateSpecArgs(
                metadata=meta.v1.ObjectMetaArgs(labels=labels, annotations=annotations or None), spec=pod
            ),
            volume_claim_templates=claims or None,
        ),
        opts=child_options(parent, depends_on=depends_on, timeout="30m"),
    )


def network_policy(
    parent: pulumi.Resource,
    name: str,
    object_name: str,
    namespace: pulumi.Input[str],
    *,
    labels: dict[str, str],
    selector: dict[str, str],
    ingress: "Sequence[networking.v1.NetworkPolicyIngressRuleArgs]",
) -> "networking.v1.NetworkPolicy":
    """Who may connect to pods; where they connect to themselves is left open."""
    return networking.v1.NetworkPolicy(
        name,
        metadata=metadata(object_name, namespace, labels),
        spec=networking.v1.NetworkPolicySpecArgs(
            pod_selector=meta.v1.LabelSelectorArgs(match_labels=selector),
            policy_types=["Ingress"],
            ingress=list(ingress),
        ),
        opts=child_options(parent),
    )


def from_pods(labels: dict[str, str] | None, ports: Sequence[int] = ()) -> "networking.v1.NetworkPolicyIngressRuleArgs":
    """Lets in pods of the same namespace with these labels, or all of its pods; to some ports, or to all."""
    peer = networking.v1.NetworkPolicyPeerArgs(pod_selector=meta.v1.LabelSelectorArgs(match_labels=labels))
    return networking.v1.NetworkPolicyIngressRuleArgs(from_=[peer], ports=_policy_ports(ports))


def from_everywhere(ports: Sequence[int]) -> "networking.v1.NetworkPolicyIngressRuleArgs":
    """Lets in whoever reaches these ports."""
    return networking.v1.NetworkPolicyIngressRuleArgs(ports=_policy_ports(ports))


def _policy_ports(ports: Sequence[int]) -> "list[networking.v1.NetworkPolicyPortArgs] | None":
    return [networking.v1.NetworkPolicyPortArgs(port=port, protocol="TCP") for port in ports] or None
