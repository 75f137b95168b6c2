"""A whole training environment, from the network to the jobs."""

from typing import Any, cast

import pulumi
from pulumi_kubernetes import core

from persia_components._children import child_options, token
from persia_components.gke.cluster import Cluster
from persia_components.gke.drivers import DriverInstaller
from persia_components.gke.network import Network
from persia_components.gke.node_pool import NodePool
from persia_components.gke.project import ProjectApis
from persia_components.jobs import Job
from persia_components.operators import Operator
from persia_infra.environment import EnvironmentSpec
from persia_infra.gke.drivers import installers
from persia_infra.kube.objects import object_labels

_PSA_MODES = ("enforce", "audit", "warn")


class Environment(pulumi.ComponentResource):
    """Network, cluster, node pools, namespaces, operators and jobs of one stack.

    Jobs depend on the pools that they run on, so they are deleted while their nodes still exist.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name in GKE."""
    endpoint: pulumi.Output[str]
    """The address of the control plane."""
    kubeconfig: pulumi.Output[str]
    """A kubeconfig that gets credentials from gke-gcloud-auth-plugin."""
    pool_names: pulumi.Output[dict[str, str]]
    """Each pool's name in GKE."""
    pools: pulumi.Output[dict[str, Any]]
    """Each pool's name in GKE, node selector and tolerations, for workloads of other stacks."""
    nats_urls: pulumi.Output[dict[str, str]]
    """The address of the NATS cluster of each PERSIA job."""

    def __init__(self, name: str, spec: EnvironmentSpec, *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declares the environment.

        Args:
            name: The component's name, which the logical names of its children start with.
            spec: The environment.
            opts: Options of the component.
        """
        super().__init__(token("Environment"), name, None, opts)
        cluster = self._cluster(name, spec)
        pools = self._pools(name, spec, cluster)
        for installer in installers(spec.pools):
            DriverInstaller(
                f"{name}-{installer.name}", installer, opts=child_options(self, providers=[cluster.provider])
            )
        namespaces = self._namespaces(name, spec, cluster)
        operators = self._operators(name, spec, cluster, pools, namespaces)
        jobs = self._jobs(name, spec, cluster, pools, namespaces, operators)
        self.cluster_name = cluster.cluster_name
        self.endpoint = cluster.endpoint
        self.kubeconfig = cluster.kubeconfig
        self.pool_names = _all({key: pool.pool_name for key, pool in pools.items()})
        self.pools = pulumi.Output.from_input(
            {
                key: {
                    "poolName": pool.pool_name,
                    "nodeSelector": spec.pools[key].placement(key).node_selector,
                    "tolerations": spec.pools[key].placement(key).tolerations,
                }
                for key, pool in pools.items()
            }
        )
        self.nats_urls = _all({key: job.outputs["natsUrl"] for key, job in jobs.items() if "natsUrl" in job.outputs})
        self.register_outputs(self.exports())

    def exports(self) -> dict[str, pulumi.Output]:
        """Returns the outputs of a stack."""
        return {
            "clusterName": self.cluster_name,
            "endpoint": self.endpoint,
            "kubeconfig": self.kubeconfig,
            "poolNames": self.pool_names,
            "pools": self.pools,
            "natsUrls": self.nats_urls,
        }

    def _cluster(self, name: str, spec: EnvironmentSpec) -> Cluster:
        apis = ProjectApis(f"{name}-apis", spec, opts=child_options(self))
        network = Network(
            f"{name}-network",
            spec.network,
            project=spec.project,
            region=spec.region,
            opts=child_options(self, depends_on=[apis]),
        )
        return Cluster(
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
            # Nodes cannot pull images without the NAT, so it is created before and deleted after them.
            opts=child_options(self, depends_on=[apis, network]),
        )

    def _pools(self, name: str, spec: EnvironmentSpec, cluster: Cluster) -> dict[str, NodePool]:
        return {
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

    def _namespaces(self, name: str, spec: EnvironmentSpec, cluster: Cluster) -> dict[str, core.v1.Namespace]:
        namespaces = {}
        for namespace in spec.namespaces:
            level = spec.pod_security(namespace)
            labels = {f"pod-security.kubernetes.io/{mode}": level for mode in _PSA_MODES}
            labels = {**object_labels("persia-infra", name, "namespace"), **labels}
            namespaces[namespace] = core.v1.Namespace(
                f"{name}-{namespace}",
                metadata={"name": namespace, "labels": labels},
                opts=child_options(self, provider=cluster.provider),
            )
        return namespaces

    def _operators(
        self,
        name: str,
        spec: EnvironmentSpec,
        cluster: Cluster,
        pools: dict[str, NodePool],
        namespaces: dict[str, core.v1.Namespace],
    ) -> dict[str, Operator]:
        operators: dict[str, Operator] = {}
        for kind, installed in spec.operators.installed.items():
            pool = spec.operator_pool(installed)
            before = [operators[other] for other in installed.INSTALL_AFTER if other in operators]
            operators[kind] = Operator(
                f"{name}-{kind}-operator",
                installed,
                volcano_installed=spec.operators.volcano_installed,
                placement=spec.pools[pool].placement(pool) if pool else None,
                opts=child_options(
                    self,
                    depends_on=[*([pools[pool]] if pool else []), *namespaces.values(), *before],
                    providers=[cluster.provider],
                ),
            )
        return operators

    def _jobs(
        self,
        name: str,
        spec: EnvironmentSpec,
        cluster: Cluster,
        pools: dict[str, NodePool],
        namespaces: dict[str, core.v1.Namespace],
        operators: dict[str, Operator],
    ) -> dict[str, Job]:
        jobs = {}
        for job, described in spec.jobs.items():
            placements = spec.placements(job)
            namespace = spec.namespace_of(described)
            used = {placement.pool for placement in placements.values()}
            jobs[job] = Job(
                f"{name}-{job}",
                described,
                namespace=namespace,
                object_name=job,
                placements=placements,
                opts=child_options(
                    self,
                    # The operator has to remove the job's finalizer, so it is deleted after the job.
                    depends_on=[
                        namespaces[namespace],
                        *(pools[pool] for pool in sorted(used)),
                        *(operators[kind] for kind in described.needed_operators()),
                    ],
                    providers=[cluster.provider],
                ),
            )
        return jobs


def _all(values: dict[str, pulumi.Output[str]]) -> pulumi.Output[dict[str, str]]:
    return pulumi.Output.from_input(cast("dict[str, str]", values))
