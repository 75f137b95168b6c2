"""A private GKE cluster without nodes, and the Kubernetes provider for it."""

import hashlib
import json

import pulumi
import pulumi_kubernetes
from pulumi_gcp import compute, container, projects, serviceaccount

from persia_components._children import child_options, token
from persia_infra.gke.cluster import ClusterSpec
from persia_infra.gke.maintenance import format_utc

_NODE_ROLES = (
    "roles/container.defaultNodeServiceAccount",
    "roles/stackdriver.resourceMetadata.writer",
    "roles/artifactregistry.reader",
)
"""Roles that let nodes run, report metrics and pull images, and nothing that lets a pod change the project."""


class Cluster(pulumi.ComponentResource):
    """The control plane, the service account of the nodes, and a Kubernetes provider.

    Node pools are separate components: changing a pool inside the cluster resource would replace the cluster.
    """

    cluster_name: pulumi.Output[str]
    """The name of the cluster in Google Cloud."""
    endpoint: pulumi.Output[str]
    """The IP address of the control plane, or its DNS name if the spec has `dns_endpoint`."""
    node_service_account: pulumi.Output[str]
    """The e-mail address of the service account that the nodes run as."""
    kubeconfig: pulumi.Output[str]
    """Access for kubectl and Pulumi; it gets credentials from gke-gcloud-auth-plugin and contains none."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        *,
        project: str,
        region: str,
        network_id: pulumi.Input[str],
        subnet_id: pulumi.Input[str],
        pods_range: str,
        services_range: str,
        webhook_ports: list[int] | None = None,
        network_project: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(token("Cluster"), name, None, opts)
        account = serviceaccount.Account(
            f"{name}-nodes",
            project=project,
            account_id=_account_id(name),
            display_name=f"Nodes of {name}",
            opts=child_options(self),
        )
        grants = [
            projects.IAMMember(
                f"{name}-nodes-{role.rpartition('/')[2]}",
                project=project,
                role=role,
                member=account.email.apply(lambda email: f"serviceAccount:{email}"),
                opts=child_options(self),
            )
            for role in _NODE_ROLES
        ]
        self.location = region if spec.regional else spec.zones[0]
        cluster = container.Cluster(
            name,
            project=project,
            location=self.location,
            node_locations=(spec.zones if spec.regional else spec.zones[1:]) or None,
            network=network_id,
            subnetwork=subnet_id,
            networking_mode="VPC_NATIVE",
            datapath_provider="ADVANCED_DATAPATH",
            enable_multi_networking=spec.multi_networking or None,
            ip_allocation_policy=container.ClusterIpAllocationPolicyArgs(
                cluster_secondary_range_name=pods_range, services_secondary_range_name=services_range
            ),
            private_cluster_config=container.ClusterPrivateClusterConfigArgs(
                enable_private_nodes=True,
                enable_private_endpoint=spec.private_endpoint,
                master_ipv4_cidr_block=spec.control_plane_cidr,
            ),
            master_authorized_networks_config=_authorized_networks(spec),
            control_plane_endpoints_config=_endpoints(spec),
            release_channel=container.ClusterReleaseChannelArgs(channel=spec.release_channel),
            maintenance_policy=_maintenance(spec),
            workload_identity_config=container.ClusterWorkloadIdentityConfigArgs(
                workload_pool=f"{project}.svc.id.goog"
            ),
            enable_shielded_nodes=True,
            database_encryption=container.ClusterDatabaseEncryptionArgs(state="ENCRYPTED", key_name=spec.secrets_key)
            if spec.secrets_key
            else None,
            monitoring_config=_monitoring(spec),
            cost_management_config=container.ClusterCostManagementConfigArgs(enabled=spec.cost_allocation),
            addons_config=_addons(spec),
            notification_config=container.ClusterNotificationConfigArgs(
                pubsub=container.ClusterNotificationConfigPubsubArgs(enabled=True, topic=spec.notification_topic)
            )
            if spec.notification_topic
            else None,
            resource_labels=spec.labels or None,
            # GKE requires a first pool. It is small, uses the nodes' own account, and is removed right away.
            remove_default_node_pool=True,
            initial_node_count=1,
            node_config=container.ClusterNodeConfigArgs(
                service_account=account.email,
                shielded_instance_config=container.ClusterNodeConfigShieldedInstanceConfigArgs(
                    enable_secure_boot=True, enable_integrity_monitoring=True
                ),
            ),
            deletion_protection=spec.deletion_protection,
            opts=child_options(
                self,
                depends_on=grants,
                ignore_changes=["nodeConfig", "initialNodeCount"],
                # Google's own protection only stops the deletion, which in a replacement comes after the new cluster
                # has been created and is being paid for. The engine's protection stops it in the preview.
                protect=spec.deletion_protection or None,
            ),
        )
        if webhook_ports:
            compute.Firewall(
                f"{name}-webhooks",
                project=network_project or project,
                network=network_id,
                description=f"Admission webhooks: from the control plane of {name} to its nodes",
                direction="INGRESS",
                source_ranges=[spec.control_plane_cidr],
                target_service_accounts=[account.email],
                allows=[
                    compute.FirewallAllowArgs(protocol="tcp", ports=[str(port) for port in sorted(set(webhook_ports))])
                ],
                opts=child_options(self),
            )
        self.cluster_name = cluster.name
        self.endpoint = _dns_name(cluster) if spec.dns_endpoint else cluster.endpoint
        self.node_service_account = account.email
        self.kubeconfig = pulumi.Output.all(
            name=cluster.name,
            endpoint=self.endpoint,
            # The certificate of a DNS endpoint is signed by a public authority.
            certificate=None if spec.dns_endpoint else cluster.master_auth.cluster_ca_certificate,
        ).apply(lambda known: _kubeconfig(known["name"], known["endpoint"], known["certificate"]))
        self.provider = pulumi_kubernetes.Provider(
            f"{name}-kubernetes", kubeconfig=self.kubeconfig, opts=child_options(self)
        )
        self.register_outputs(
            {"clusterName": self.cluster_name, "endpoint": self.endpoint, "kubeconfig": self.kubeconfig}
        )


def _dns_name(cluster: container.Cluster) -> pulumi.Output[str]:
    def name(endpoints: container.outputs.ClusterControlPlaneEndpointsConfig) -> str:
        dns = endpoints.dns_endpoint_config
        return dns.endpoint or "" if dns else ""

    return cluster.control_plane_endpoints_config.apply(name)


def _endpoints(spec: ClusterSpec) -> container.ClusterControlPlaneEndpointsConfigArgs | None:
    if not spec.dns_endpoint:
        return None
    return container.ClusterControlPlaneEndpointsConfigArgs(
        dns_endpoint_config=container.ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs(
            allow_external_traffic=True
        ),
        ip_endpoints_config=container.ClusterControlPlaneEndpointsConfigIpEndpointsConfigArgs(
            enabled=spec.reachable_by_address
        ),
    )


def _maintenance(spec: ClusterSpec) -> container.ClusterMaintenancePolicyArgs:
    start, end = spec.maintenance.window
    return container.ClusterMaintenancePolicyArgs(
        recurring_window=container.ClusterMaintenancePolicyRecurringWindowArgs(
            start_time=start, end_time=end, recurrence=spec.maintenance.recurrence
        ),
        maintenance_exclusions=[
            container.ClusterMaintenancePolicyMaintenanceExclusionArgs(
                exclusion_name=exclusion.name,
                start_time=format_utc(exclusion.start),
                end_time=format_utc(exclusion.end),
                exclusion_options=container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs(
                    scope=exclusion.scope
                ),
            )
            for exclusion in spec.maintenance.exclusions
        ]
        or None,
    )


def _monitoring(spec: ClusterSpec) -> container.ClusterMonitoringConfigArgs:
    components = ["SYSTEM_COMPONENTS", *(["DCGM"] if spec.monitoring.dcgm else [])]
    return container.ClusterMonitoringConfigArgs(
        enable_components=components,
        managed_prometheus=container.ClusterMonitoringConfigManagedPrometheusArgs(
            enabled=spec.monitoring.managed_prometheus
        ),
    )


def _addons(spec: ClusterSpec) -> container.ClusterAddonsConfigArgs:
    return container.ClusterAddonsConfigArgs(
        gce_persistent_disk_csi_driver_config=container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs(
            enabled=True
        ),
        gcp_filestore_csi_driver_config=container.ClusterAddonsConfigGcpFilestoreCsiDriverConfigArgs(
            enabled="FILESTORE" in spec.csi_drivers
        ),
        gcs_fuse_csi_driver_config=container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(
            enabled="GCS_FUSE" in spec.csi_drivers
        ),
        lustre_csi_driver_config=container.ClusterAddonsConfigLustreCsiDriverConfigArgs(
            enabled="LUSTRE" in spec.csi_drivers
        ),
    )


def _authorized_networks(spec: ClusterSpec) -> container.ClusterMasterAuthorizedNetworksConfigArgs | None:
    if not spec.authorized_networks and not spec.private_endpoint:
        return None
    return container.ClusterMasterAuthorizedNetworksConfigArgs(
        cidr_blocks=[
            container.ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(
                cidr_block=network.cidr, display_name=network.name
            )
            for network in spec.authorized_networks
        ]
    )


def _account_id(name: str) -> str:
    """Returns an account id of 6 to 30 characters that stays unique for long names with the same beginning."""
    full = f"{name}-nodes"
    if len(full) <= 30:
        return full
    return f"{name[:17]}-{hashlib.sha256(name.encode()).hexdigest()[:6]}-nodes"


def _kubeconfig(name: str, endpoint: str, certificate: str | None) -> str:
    authority = {"certificate-authority-data": certificate} if certificate else {}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": f"https://{endpoint}", **authority},
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "users": [
                {
                    "name": name,
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "gke-gcloud-auth-plugin",
                            "installHint": "gcloud components install gke-gcloud-auth-plugin",
                            "interactiveMode": "Never",
                            "provideClusterInfo": True,
                        }
                    },
                }
            ],
        },
        indent=2,
    )
