"""A whole training environment, from the network to the jobs."""

from typing import TYPE_CHECKING, Any, cast

import pulumi
from pulumi_kubernetes import core

from persia_components._children import child_options, metadata, object_labels, token
from persia_components.gke.cluster import Cluster
from persia_components.gke.drivers import DriverInstaller
from persia_components.gke.network import Network
from persia_components.gke.node_pool import NodePool
from persia_components.gke.project import ProjectApis
from persia_components.mpi_job import MpiJob
from persia_components.operators import operator
from persia_components.paddle_job import PaddleJob
from persia_components.persia_job import PersiaJob
from persia_components.single_node_job import SingleNodeJob
from persia_components.training_job import TrainingJob

if TYPE_CHECKING:
    from persia_infra.environment import EnvironmentSpec

JOB_COMPONENTS = {
    "PersiaJob": PersiaJob,
    "MPIJob": MpiJob,
    "PaddleJob": PaddleJob,
    "Job": SingleNodeJob,
    "TrainingJob": TrainingJob,
}
"""The component that runs a job of each kind."""


_PSA_MODES = ("enforce", "audit", "warn")


class Environment(pulumi.ComponentResource):
    """Network, cluster, node pools, namespaces, operators and jobs of one stack.

    Jobs depend on the pools they run on, so they are deleted while there still are nodes to end them on.
    """

    cluster_name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    pool_names: pulumi.Output[dict[str, str]]
    pools: pulumi.Output[dict[str, Any]]
    """For workloads of other stacks: each pool's name in GKE, node selector and tolerations."""
    nats_urls: pulumi.Output[dict[str, str]]

    def __init__(self, name: str, spec: "EnvironmentSpec", *, opts: pulumi.ResourceOptions | None = None) -> None:
        from persia_infra.gke.drivers import installers
        from persia_infra.operators.rules import needed_operators

        super().__init__(token("Environment"), name, None, opts)
        apis = ProjectApis(f"{name}-apis", spec, opts=child_options(self))
        network = Network(
            f"{name}-network",
            spec.network,
            project=spec.project,
            region=spec.region,
            opts=child_options(self, depends_on=[apis]),
        )
        cluster = Cluster(
            f"{name}-cluster",
            spec.cluster,
            project=spec.project,
            region=spec.region,
            network_id=network.network_id,
            subnet_id=network.subnet_id,
            pods_range=network.pods_range,
            services_range=network.services_range,
            webhook_ports=spec.webhook_ports,
            network_project=spec.network.existing.project if spec.network.existing else None,
            # Nodes without the NAT cannot pull images, and the last of them go before it does.
            opts=child_options(self, depends_on=[apis, network]),
        )
        pools = {
            pool: NodePool(
                f"{name}-{pool}",
                described,
                pool=pool,
                project=spec.project,
                location=cluster.location,
                zones=spec.zones_of(described),
                cluster_name=cluster.cluster_name,
                service_account=cluster.node_service_account,
                image_streaming=spec.cluster.image_streaming,
                opts=child_options(self, depends_on=[cluster]),
            )
            for pool, described in spec.pools.items()
        }
        for installer in installers(spec.pools):
            DriverInstaller(
                f"{name}-{installer.name}", installer, opts=child_options(self, providers=[cluster.provider])
            )
        namespaces = {
            namespace: core.v1.Namespace(
                f"{name}-{namespace}",
                metadata=metadata(
                    namespace,
                    None,
                    {
                        **object_labels("persia-infra", name, "namespace"),
                        **{f"pod-security.kubernetes.io/{mode}": spec.pod_security(namespace) for mode in _PSA_MODES},
                    },
                ),
                opts=child_options(self, provider=cluster.provider),
            )
            for namespace in spec.namespaces
        }
        operators: dict[str, pulumi.Resource] = {}
        for kind, installed in spec.operators.installed.items():
            pool = spec.operator_pool(installed)
            # Volcano comes first: the others make its PodGroups.
            before = [*([pools[pool]] if pool else []), *namespaces.values(), *list(operators.values())[:1]]
            operators[kind] = operator(
                kind,
                f"{name}-{kind}-operator",
                installed,
                gangs=spec.operators.volcano is not None,
                placement=spec.pools[pool].placement(pool) if pool else None,
                opts=child_options(self, depends_on=before, providers=[cluster.provider]),
            )
        jobs = {}
        for job, described in spec.jobs.items():
            placements = spec.placements(job)
            used = {placement.pool for placement in placements.values()}
            jobs[job] = JOB_COMPONENTS[described.kind](
                f"{name}-{job}",
                described,  # type: ignore[arg-type]
                namespace=namespaces[spec.namespace_of(described)].metadata.name,
                object_name=job,
                placements=placements,
                opts=child_options(
                    self,
                    # A job's finalizer is its operator's to remove, so the operator stays until the job is gone.
                    depends_on=[
                        *(pools[pool] for pool in sorted(used)),
                        *(operators[kind] for kind in needed_operators(described)),
                    ],
                    providers=[cluster.provider],
                ),
            )
        self.cluster_name = cluster.cluster_name
        self.endpoint = cluster.endpoint
        self.kubeconfig = cluster.kubeconfig
        self.pool_names = _all({pool: made.pool_name for pool, made in pools.items()})
        self.pools = pulumi.Output.from_input(
            {
                pool: {
                    "poolName": made.pool_name,
                    "nodeSelector": spec.pools[pool].placement(pool).node_selector,
                    "tolerations": spec.pools[pool].placement(pool).tolerations,
                }
                for pool, made in pools.items()
            }
        )
        self.nats_urls = _all({job: made.nats_url for job, made in jobs.items() if isinstance(made, PersiaJob)})
        self.register_outputs(self.exports())

    def exports(self) -> dict[str, pulumi.Output]:
        """What a stack shows of it."""
        return {
            "clusterName": self.cluster_name,
            "endpoint": self.endpoint,
            "kubeconfig": self.kubeconfig,
            "poolNames": self.pool_names,
            "pools": self.pools,
            "natsUrls": self.nats_urls,
        }


def _all(values: dict[str, pulumi.Output[str]]) -> pulumi.Output[dict[str, str]]:
    return pulumi.Output.from_input(cast("dict[str, str]", values))
