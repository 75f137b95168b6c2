"""PERSIA's own operator, which runs PersiaJob objects as bare pods."""

from functools import cache
from typing import TYPE_CHECKING

import pulumi

from persia_components._children import token
from persia_components.operators._operator import Installation, Program, Right, Rights

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement
    from persia_infra.kube.crd import Definition
    from persia_infra.operators.specs import PersiaOperatorSpec

RIGHTS = Rights(
    watched=(
        Right("persia.com", ("persiajobs",), ("list", "patch", "watch")),
        Right("", ("pods", "services"), ("create", "delete", "list")),
    ),
)


class PersiaOperator(pulumi.ComponentResource):
    """The operator and the kind PersiaJob.

    Every PersiaJob carries the operator's finalizer, so jobs have to go before it does: let them depend on it.
    It serves no health checks and elects no leader, so there are no probes, and only ever one pod.
    """

    def __init__(
        self,
        name: str,
        spec: "PersiaOperatorSpec",
        *,
        placement: "Placement | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(token("PersiaOperator"), name, None, opts)
        parts = Installation(self, name, "persia-operator", spec.namespace)
        parts.define([definition()])
        parts.allow(RIGHTS)
        parts.deploy(
            spec,
            Program(
                image=spec.image_reference(),
                args=["persia-k8s-utils", "operator"],
                pull_always=spec.digest is None and spec.version == "latest",
                recreate=True,
            ),
            placement=placement,
        )
        self.register_outputs({})


@cache
def definition() -> "Definition":
    """The kind PersiaJob, with the demands of PERSIA's own definition and no looser types."""
    from persia_infra.jobs.persia.spec import PersiaEnv, PersiaJobSpec
    from persia_infra.kube.crd import Definition, schema_of
    from persia_infra.kube.pods import EnvSource, Volume

    return Definition(
        group="persia.com",
        version="v1",
        kind="PersiaJob",
        plural="persiajobs",
        spec=schema_of(
            PersiaJobSpec,
            required={
                PersiaJobSpec: ["persiaEnv"],
                PersiaEnv: ["PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG"],
            },
            open_models=(EnvSource, Volume),
            plain_quantities=True,
        ),
    )
