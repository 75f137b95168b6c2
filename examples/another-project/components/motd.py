"""A message for the people who use the cluster."""

import pulumi
import pulumi_kubernetes as kubernetes


class Motd(pulumi.ComponentResource):
    def __init__(self, name: str, kubeconfig: pulumi.Output[str], *, text: str) -> None:
        super().__init__("research:index:Motd", name)
        provider = kubernetes.Provider(name, kubeconfig=kubeconfig, opts=pulumi.ResourceOptions(parent=self))
        kubernetes.core.v1.ConfigMap(
            name,
            metadata={"name": "motd", "namespace": "default"},
            data={"motd": text},
            opts=pulumi.ResourceOptions(parent=self, provider=provider),
        )
        self.register_outputs({})
