"""Operators of every kind."""

import pulumi

from persia_components._objects import FromDeclared, ObjectsComponent, Values
from persia_components.operators.certificate import webhook_certificate
from persia_infra.kube.placement import Placement
from persia_infra.operators import OperatorSpec, VolcanoSpec
from persia_infra.operators.volcano.objects import AUTHORITY_VALUE, CERTIFICATE_VALUE
from persia_infra.operators.volcano.rights import SERVICE


class Operator(ObjectsComponent):
    """An operator with its kinds, its rights and its Deployments.

    Jobs whose objects have the operator's finalizer must be deleted before it: make them depend on it.
    """

    def __init__(
        self,
        name: str,
        spec: OperatorSpec,
        *,
        volcano_installed: bool = False,
        placement: Placement | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declares the operator.

        Args:
            name: The component's name, which the logical names of its children start with.
            spec: The operator: a NatsOperatorSpec, MpiOperatorSpec, PaddleOperatorSpec, PersiaOperatorSpec or
                VolcanoSpec.
            volcano_installed: Whether the cluster has Volcano; some operators then create a PodGroup for every job.
            placement: The pool of its pods; any node when absent.
            opts: Options of the component.
        """
        values: Values = {}
        if isinstance(spec, VolcanoSpec):
            values = {
                CERTIFICATE_VALUE: pulumi.Output.secret(webhook_certificate(SERVICE, spec.namespace)),
                # The first certificate is kept, so the CA certificate comes from the deployed Secret.
                AUTHORITY_VALUE: FromDeclared("Secret", lambda secret: secret.data.apply(lambda data: data["ca.crt"])),
            }
        group = spec.objects(volcano_installed=volcano_installed, placement=placement)
        super().__init__(name, group, values=values, opts=opts)
