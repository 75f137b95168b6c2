"""What the operators' components share: namespace, kinds, rights and the Deployment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_kubernetes import apiextensions, apps, core, meta, rbac

from persia_components import _pods
from persia_components._children import child_options, metadata, object_labels, selector_labels

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement
    from persia_infra.kube.crd import Definition
    from persia_infra.operators.specs import OperatorSpec

NON_ROOT = 65532
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


@dataclass(frozen=True)
class Right:
    """One rule of a role; the tests hold it against what the operator's own program was seen to do."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only these objects, where it knows them by name."""
    used_when: str | None = None
    """When the operator needs it, where no test gets it to; None where a test shows every verb in use."""


@dataclass(frozen=True)
class Rights:
    """What an operator may do, by where."""

    everywhere: tuple[Right, ...] = ()
    """On objects of the cluster, or of namespaces that it must see whatever it is confined to."""
    watched: tuple[Right, ...] = ()
    """In the namespace that it is confined to; in all of them where it is not."""
    own: tuple[Right, ...] = ()
    """In the namespace that it runs in."""

    def in_all_namespaces(self, watched: str | None) -> tuple[Right, ...]:
        """Those that hold in the whole cluster."""
        return self.everywhere if watched else (*self.everywhere, *beyond(self.everywhere, self.watched))

    def in_watched(self) -> tuple[Right, ...]:
        """Those of the namespace that the operator is confined to."""
        return tuple(beyond(self.everywhere, self.watched))

    def in_own(self, own: str, watched: str | None) -> tuple[Right, ...]:
        """Those of the namespace that it runs in, without what it may do there anyway."""
        wider = (*self.everywhere, *self.watched) if watched in (None, own) else self.everywhere
        return tuple(beyond(wider, self.own))


def beyond(wider: Sequence[Right], rights: Sequence[Right]) -> Iterator[Right]:
    """What rights allow and wider ones do not."""
    known = {
        (right.group, resource, verb)
        for right in wider
        if not right.names
        for resource in right.resources
        for verb in right.verbs
    }
    for right in rights:
        left: dict[tuple[str, ...], list[str]] = {}
        for resource in right.resources:
            verbs = tuple(verb for verb in right.verbs if (right.group, resource, verb) not in known)
            left.setdefault(verbs, []).append(resource)
        yield from (
            replace(right, resources=tuple(resources), verbs=verbs) for verbs, resources in left.items() if verbs
        )


@dataclass(frozen=True)
class Program:
    """The container of an operator."""

    image: str
    args: list[str]
    command: list[str] | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    variables: "Sequence[core.v1.EnvVarArgs]" = ()
    readiness: "core.v1.ProbeArgs | None" = None
    liveness: "core.v1.ProbeArgs | None" = None
    user: int = NON_ROOT
    pull_always: bool = False
    recreate: bool = False
    """The old pod must be gone before the new one starts, because nothing elects a leader among them."""
    critical: bool = False
    files: "Mapping[str, core.v1.VolumeArgs]" = field(default_factory=dict)
    """Volumes by the folder that they are seen at."""


class Installation:
    """Makes the children of one operator's component, in the order in which they need each other.

    Attributes:
        called: Name of its objects.
        namespace: Where it runs.
        labels: Of its objects.
    """

    def __init__(
        self,
        parent: pulumi.Resource,
        name: str,
        called: str,
        namespace: str,
        *,
        makes_namespace: bool = True,
    ) -> None:
        self._parent = parent
        self._name = name
        self.called = called
        self.namespace = namespace
        self.labels = object_labels(called, called, "operator")
        self._made: list[pulumi.Resource] = []
        if makes_namespace:
            made = core.v1.Namespace(
                f"{name}-namespace",
                metadata=metadata(namespace, None, {**self.labels, **_RESTRICTED}),
                opts=child_options(parent),
            )
            self._in_namespace: list[pulumi.Resource] = [made]
        else:
            self._in_namespace = []

    def define(self, kinds: "Sequence[Definition]") -> list[pulumi.Resource]:
        """The kinds that the operator acts on."""
        return [self.define_body(kind.name, kind.body()) for kind in kinds]

    def define_body(self, definition_name: str, body: dict[str, Any]) -> pulumi.Resource:
        """A kind whose definition is given as it is on the wire."""
        made = apiextensions.v1.CustomResourceDefinition(
            f"{self._name}-{definition_name}",
            metadata=metadata(definition_name, None, self.labels),
            spec=body,  # type: ignore[arg-type]
            opts=child_options(self._parent),
        )
        self._made.append(made)
        return made

    def allow(self, rights: Rights, *, watched: str | None = None, account: str | None = None) -> str:
        """A ServiceAccount with these rights and no others; its name."""
        account = account or self.called
        made = core.v1.ServiceAccount(
            f"{self._name}-{account}",
            metadata=metadata(account, self.namespace, self.labels),
            automount_service_account_token=False,
            opts=self._options(),
        )
        self._made.append(made)
        if everywhere := rights.in_all_namespaces(watched):
            self._grant_everywhere(account, everywhere)
        if watched:
            called = f"{account}-watched" if watched == self.namespace else account
            self._grant(account, called, watched, rights.in_watched())
        if own := rights.in_own(self.namespace, watched):
            self._grant(account, f"{account}-own", self.namespace, own)
        return account

    def keep(self, made: pulumi.Resource) -> None:
        """Something else that has to be there before the operator starts."""
        self._made.append(made)

    def options(self) -> pulumi.ResourceOptions:
        """Of an object in the operator's namespace."""
        return self._options()

    def deploy(
        self,
        spec: "OperatorSpec",
        program: Program,
        *,
        placement: "Placement | None",
        account: str | None = None,
        part: str | None = None,
    ) -> "apps.v1.Deployment":
        """The operator itself; nothing of it starts before everything declared so far is there."""
        called = part or self.called
        selector = selector_labels(self.called, called, "operator")
        labels = object_labels(self.called, called, "operator")
        volumes = {f"files-{index}": item for index, item in enumerate(program.files.items())}
        pod = core.v1.PodSpecArgs(
            service_account_name=account or self.called,
            automount_service_account_token=True,
            security_context=_pods.pod_security(user=program.user),
            node_selector=placement.node_selector if placement else None,
            tolerations=_pods.tolerations(placement),
            topology_spread_constraints=_pods.spread(selector) if spec.replicas > 1 else None,
            priority_class_name="system-cluster-critical" if program.critical else None,
            containers=[
                core.v1.ContainerArgs(
                    name=called,
                    image=program.image,
                    image_pull_policy="Always" if program.pull_always else "IfNotPresent",
                    command=program.command,
                    args=program.args,
                    env=list(program.variables) or None,
                    ports=_pods.container_ports(program.ports),
                    resources=_pods.resources(spec.resources),
                    security_context=_pods.confined(read_only_root=True),
                    readiness_probe=program.readiness,
                    liveness_probe=program.liveness,
                    volume_mounts=[
                        core.v1.VolumeMountArgs(
                            name=volume, mount_path=path, read_only=None if _is_scratch(source) else True
                        )
                        for volume, (path, source) in volumes.items()
                    ]
                    or None,
                )
            ],
            volumes=[
                core.v1.VolumeArgs(
                    name=volume,
                    config_map=source.config_map,
                    secret=source.secret,
                    empty_dir=source.empty_dir,
                )
                for volume, (_, source) in volumes.items()
            ]
            or None,
        )
        return apps.v1.Deployment(
            f"{self._name}-{called}",
            metadata=metadata(called, self.namespace, labels),
            spec=apps.v1.DeploymentSpecArgs(
                replicas=spec.replicas,
                selector=meta.v1.LabelSelectorArgs(match_labels=selector),
                strategy=apps.v1.DeploymentStrategyArgs(type="Recreate") if program.recreate else None,
                template=core.v1.PodTemplateSpecArgs(metadata=meta.v1.ObjectMetaArgs(labels=labels), spec=pod),
            ),
            opts=self._options(depends_on=self._made),
        )

    def _options(self, *, depends_on: Sequence[pulumi.Resource] = ()) -> pulumi.ResourceOptions:
        return child_options(self._parent, depends_on=[*self._in_namespace, *depends_on])

    def _grant_everywhere(self, account: str, rights: Sequence[Right]) -> None:
        role = rbac.v1.ClusterRole(
            f"{self._name}-{account}",
            metadata=metadata(account, None, self.labels),
            rules=_rules(rights),
            opts=child_options(self._parent),
        )
        self._made += [
            role,
            rbac.v1.ClusterRoleBinding(
                f"{self._name}-{account}",
                metadata=metadata(account, None, self.labels),
                role_ref=rbac.v1.RoleRefArgs(
                    api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=role.metadata.name
                ),
                subjects=self._subjects(account),
                opts=child_options(self._parent),
            ),
        ]

    def _grant(self, account: str, called: str, namespace: str, rights: Sequence[Right]) -> None:
        role = rbac.v1.Role(
            f"{self._name}-{called}",
            metadata=metadata(called, namespace, self.labels),
            rules=_rules(rights),
            opts=self._options(),
        )
        self._made += [
            role,
            rbac.v1.RoleBinding(
                f"{self._name}-{called}",
                metadata=metadata(called, namespace, self.labels),
                role_ref=rbac.v1.RoleRefArgs(
                    api_group="rbac.authorization.k8s.io", kind="Role", name=role.metadata.name
                ),
                subjects=self._subjects(account),
                opts=self._options(),
            ),
        ]

    def _subjects(self, account: str) -> "list[rbac.v1.SubjectArgs]":
        return [rbac.v1.SubjectArgs(kind="ServiceAccount", name=account, namespace=self.namespace)]


def probe(path: str, port: str, *, delay: int = 5, https: bool = False) -> "core.v1.ProbeArgs":
    """An HTTP health check."""
    return core.v1.ProbeArgs(
        http_get=core.v1.HTTPGetActionArgs(path=path, port=port, scheme="HTTPS" if https else None),
        initial_delay_seconds=delay,
        period_seconds=10,
        timeout_seconds=3,
    )


def _is_scratch(volume: "core.v1.VolumeArgs") -> bool:
    return volume.empty_dir is not None


def _rules(rights: Sequence[Right]) -> "list[rbac.v1.PolicyRuleArgs]":
    return [
        rbac.v1.PolicyRuleArgs(
            api_groups=[right.group],
            resources=list(right.resources),
            verbs=list(right.verbs),
            resource_names=list(right.names) or None,
        )
        for right in rights
    ]
