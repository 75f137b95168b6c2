"""The NATS operator, which runs NatsCluster objects as pods of its own."""

from typing import TYPE_CHECKING, Any

import pulumi

from persia_components import _pods
from persia_components._children import token
from persia_components.operators._operator import Installation, Program, Right, Rights, probe

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement
    from persia_infra.operators.specs import NatsOperatorSpec

_USER = 1001

RIGHTS = Rights(
    everywhere=(
        # It writes both definitions anew whenever it starts, and ends if it may not.
        Right("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "update", "watch")),
        Right(
            "apiextensions.k8s.io",
            ("customresourcedefinitions",),
            ("create",),
            used_when="it starts after somebody deleted a definition by hand",
        ),
        # At its start it looks for operators of the other scope, which would fight with it.
        Right("", ("pods",), ("list",)),
        # For a cluster with auth.enableServiceAccounts it looks for accounts in every namespace.
        Right("", ("namespaces",), ("list",)),
    ),
    watched=(
        Right("nats.io", ("natsclusters",), ("list", "patch", "watch")),
        Right("nats.io", ("natsserviceroles",), ("list", "watch")),
        Right("", ("pods",), ("create", "delete", "watch")),
        Right("", ("pods",), ("get", "patch"), used_when="a cluster changes its version: it does so pod by pod"),
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


class NatsOperator(pulumi.ComponentResource):
    """The operator and its two kinds.

    Its definitions are declared exactly as it writes them itself when it starts, without a schema: a stricter
    one would be overwritten. `check` and the descriptions hold NatsClusters to the operator's own fields.
    """

    def __init__(
        self,
        name: str,
        spec: "NatsOperatorSpec",
        *,
        placement: "Placement | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(token("NatsOperator"), name, None, opts)
        called = "nats-operator"
        parts = Installation(self, name, called, spec.own_namespace, makes_namespace=spec.watched_namespace is None)
        for plural, kind, short in (
            ("natsclusters", "NatsCluster", "nats"),
            ("natsserviceroles", "NatsServiceRole", ""),
        ):
            parts.define_body(f"{plural}.nats.io", _definition(plural, kind, short))
        parts.allow(RIGHTS, watched=spec.watched_namespace)
        parts.deploy(
            spec,
            Program(
                image=spec.image_reference(),
                command=["nats-operator"],
                args=[] if spec.watched_namespace else ["--feature-gates=ClusterScoped=true"],
                ports={"readyz": 8080},
                variables=[
                    _pods.field_variable("MY_POD_NAMESPACE", "metadata.namespace"),
                    _pods.field_variable("MY_POD_NAME", "metadata.name"),
                ],
                readiness=probe("/readyz", "readyz"),
                liveness=probe("/readyz", "readyz", delay=15),
                user=_USER,
            ),
            placement=placement,
        )
        self.register_outputs({})


def _definition(plural: str, kind: str, short: str) -> dict[str, Any]:
    names: dict[str, Any] = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
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
