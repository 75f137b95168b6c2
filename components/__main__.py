"""The component package: makes the components available in every language that Pulumi supports."""

from importlib.metadata import version
from typing import Any, NotRequired, TypedDict

import persia_components
import pulumi
from pulumi.provider.experimental import component_provider_host

from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment


class EnvironmentArgs(TypedDict):
    """The environment, with the same keys as `persia-infra:environment` in a stack's configuration."""

    project: str
    region: str
    cluster: dict[str, Any]
    pools: dict[str, Any]
    network: NotRequired[dict[str, Any]]
    namespaces: NotRequired[list[str]]
    profiles: NotRequired[dict[str, Any]]
    operators: NotRequired[dict[str, Any]]
    jobs: NotRequired[dict[str, Any]]


class Environment(persia_components.Environment):
    """Network, cluster, node pools, namespaces, operators and jobs of one stack."""

    cluster_name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    pool_names: pulumi.Output[dict[str, str]]
    pools: pulumi.Output[dict[str, Any]]
    nats_urls: pulumi.Output[dict[str, str]]

    def __init__(self, name: str, args: EnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        try:
            spec = parse_environment(args)
        except InputError as error:
            raise pulumi.RunError(str(error)) from None
        super().__init__(name, spec, opts=opts)


if __name__ == "__main__":
    component_provider_host(components=[Environment], name="persia-infra", version=version("persia-infra"))
