"""NATS clusters."""

from collections.abc import Mapping

import pulumi

from persia_components._objects import ObjectsComponent, namespace_value
from persia_infra.kube.placement import Placement
from persia_infra.nats.objects import nats_objects
from persia_infra.nats.spec import NatsSpec


class NatsCluster(ObjectsComponent):
    """A full mesh of NATS servers behind one client Service, reachable only inside the Kubernetes cluster."""

    url: pulumi.Output[str]
    """The address that clients in the same namespace connect to."""

    def __init__(
        self,
        name: str,
        spec: NatsSpec,
        *,
        namespace: pulumi.Input[str],
        object_name: str | None = None,
        placement: Placement | None = None,
        client_labels: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declares the servers.

        Args:
            name: The component's name, which the logical names of its children start with.
            spec: The cluster.
            namespace: The namespace of its objects.
            object_name: The name of the client Service and prefix of the other objects' names; `name` when absent.
            placement: The pool of the servers; any node when absent.
            client_labels: Labels of the pods that may connect; all pods of the namespace when absent.
            opts: Options of the component.
        """
        text, values = namespace_value(namespace)
        group = nats_objects(spec, object_name or name, text, placement=placement, client_labels=client_labels)
        super().__init__(name, group, values=values, opts=opts)
        self.url = self.outputs["url"]
