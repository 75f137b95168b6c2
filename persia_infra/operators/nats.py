"""The NATS operator (nats-io/nats-operator), which creates pods for NatsCluster objects."""

from collections.abc import Iterator
from typing import ClassVar

from persia_infra.kube.objects import Body, ObjectGroup
from persia_infra.kube.placement import Placement
from persia_infra.kube.programs import GoSource, OperatorProgram
from persia_infra.kube.workloads import field_variable
from persia_infra.operators.installation import Installation, Program, http_probe
from persia_infra.operators.operator import ScopedOperatorSpec, Tag
from persia_infra.operators.rights import Right, Rights
from persia_infra.spec.base import DnsLabel, Finding

_DEPLOYMENT = "nats-operator"
_USER = 1001
SOURCE = GoSource(
    "nats-operator",
    "github.com/nats-io/nats-operator",
    ("github.com/nats-io/nats-operator/cmd/operator",),
    1,
    program="nats-operator",
)

RIGHTS = Rights(
    everywhere=(
        # It overwrites both definitions whenever it starts, and exits if it is not allowed to.
        Right("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "update", "watch")),
        Right(
            "apiextensions.k8s.io",
            ("customresourcedefinitions",),
            ("create",),
            used_when="it starts after someone deleted a definition by hand",
        ),
        # When it starts, it looks for operators of the other scope, which would conflict with it.
        Right("", ("pods",), ("list",)),
        # For a cluster with auth.enableServiceAccounts it looks for ServiceAccounts in every namespace.
        Right("", ("namespaces",), ("list",)),
    ),
    watched=(
        Right("nats.io", ("natsclusters",), ("list", "patch", "watch")),
        Right("nats.io", ("natsserviceroles",), ("list", "watch")),
        Right("", ("pods",), ("create", "delete", "watch")),
        Right(
            "", ("pods",), ("get", "patch"), used_when="the version of a cluster changes, which it applies pod by pod"
        ),
        Right("", ("pods/exec",), ("create",)),
        Right("", ("services",), ("create", "list", "watch")),
        Right("", ("services",), ("get", "patch"), used_when="servicePolicy or the version of a cluster changes"),
        Right("", ("secrets",), ("create", "get", "list", "update", "watch")),
        Right("", ("serviceaccounts",), ("get",)),
        Right("", ("serviceaccounts/token",), ("create",)),
    ),
    own=(
        # Its leader lock is an Endpoints object.
        Right("", ("endpoints",), ("create", "get", "update")),
        Right("", ("events",), ("create",)),
        Right("", ("events",), ("patch",), used_when="it repeats an event"),
    ),
)


class NatsOperatorSpec(ScopedOperatorSpec):
    """The NATS operator, which runs NatsClusters.

    Its definitions are declared exactly as it writes them itself when it starts, without a schema: a stricter one
    would be overwritten. `check` validates NatsClusters instead.
    """

    NAME = "nats"
    COMPONENT = "NatsOperator"
    PROGRAMS = (
        OperatorProgram(
            _DEPLOYMENT,
            "nats-operator",
            SOURCE,
            "http://127.0.0.1:{port}/readyz",
            "--debug-kube-config-path",
            added_arguments=("--listen-addr=127.0.0.1:{port}",),
        ),
    )
    IMAGE = "natsio/nats-operator"
    FLOOR = (0, 8, 3)
    TOO_OLD = (
        "it registers its kinds through apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 removed, and exits at once"
    )
    NEWEST = (0, 8, 3)
    TRIED = ((0, 8, 3),)
    ALL_NAMESPACES_FROM: ClassVar[str] = "nats-io"
    """The only namespace from which the operator can act in all namespaces."""

    version: Tag = "0.8.3"
    """The version of the operator; 0.8.3 by default."""
    namespace: DnsLabel = ALL_NAMESPACES_FROM
    """The namespace that the operator runs in; nats-io by default, or the watched namespace."""

    def objects(self, *, volcano_installed: bool, placement: Placement | None) -> ObjectGroup:  # noqa: ARG002
        """Returns the operator's objects."""
        watched = self.watched_namespace
        parts = Installation(_DEPLOYMENT, watched or self.namespace, makes_namespace=watched is None)
        for plural, kind, short in (
            ("natsclusters", "NatsCluster", "nats"),
            ("natsserviceroles", "NatsServiceRole", ""),
        ):
            parts.define_body(f"{plural}.nats.io", _definition(plural, kind, short))
        parts.allow(RIGHTS, watched=watched)
        program = Program(
            image=self.image_reference(),
            command=["nats-operator"],
            args=[] if watched else ["--feature-gates=ClusterScoped=true"],
            ports={"readyz": 8080},
            variables=[
                field_variable("MY_POD_NAMESPACE", "metadata.namespace"),
                field_variable("MY_POD_NAME", "metadata.name"),
            ],
            readiness=http_probe("/readyz", "readyz"),
            liveness=http_probe("/readyz", "readyz", delay=15),
            user=_USER,
        )
        parts.deploy(self, program, placement=placement)
        return ObjectGroup(self.COMPONENT, tuple(parts.objects))

    def notes(self) -> Iterator[Finding]:
        """Notes on choices that are allowed but have consequences."""
        yield from super().notes()
        yield (
            (),
            "the NATS maintainers advise against their operator for new deployments; the NATS of a job does not need "
            "it",
        )

    def _findings(self) -> Iterator[Finding]:
        yield from super()._findings()
        watched = self.watched_namespace
        if watched is None and self.namespace != self.ALL_NAMESPACES_FROM:
            yield (
                ("namespace",),
                f"the NATS operator acts in all namespaces only from {self.ALL_NAMESPACES_FROM}, and exits elsewhere; "
                f"remove namespace, or write watchedNamespace: {self.namespace}",
            )
        if watched is not None and self.namespace not in (watched, self.ALL_NAMESPACES_FROM):
            yield (
                ("watchedNamespace",),
                "the NATS operator can watch only the namespace that it runs in, or all; remove namespace",
            )


def _definition(plural: str, kind: str, short: str) -> Body:
    names: Body = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    if short:
        names["shortNames"] = [short]
    return {
        "group": "nats.io",
        "names": names,
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    }
