"""A node pool of a GKE cluster."""

import json
from math import ceil

import pulumi
from pulumi_gcp import container

from persia_components._children import child_options, token
from persia_infra.gke.pools import NodePoolSpec

_EFFECTS = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
_SIZE_KEY = "persia-infra-machine-size"
"""Instance metadata with the size of a machine type that is not in the catalogue, read by a rehearsal."""


class NodePool(pulumi.ComponentResource):
    """Machines of one type.

    Pulumi chooses the pool's name in Google Cloud, so a replacement is created before the old pool is deleted. A new
    machine type always replaces the pool: otherwise GKE would drain the old nodes one by one, with no way back if
    machines of the new type are not available.
    """

    pool_name: pulumi.Output[str]
    """The name of the pool in Google Cloud."""

    def __init__(
        self,
        name: str,
        spec: NodePoolSpec,
        *,
        pool: str,
        project: str,
        location: str,
        zones: list[str],
        cluster_name: pulumi.Input[str],
        service_account: pulumi.Input[str],
        image_streaming: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declares the pool.

        Args:
            name: The name of the component, and the beginning of the pool's name in Google Cloud.
            spec: The spec of the pool.
            pool: The name of the pool in the environment, which jobs refer to.
            project: The project of the cluster.
            location: The region or zone of the cluster.
            zones: The zones of the nodes.
            cluster_name: The name of the cluster in Google Cloud.
            service_account: The e-mail address of the service account that the nodes run as.
            image_streaming: Whether to stream images if the spec does not decide.
            opts: The component's resource options.
        """
        super().__init__(token("NodePool"), name, None, opts)
        scaling = spec.autoscaling
        node_pool = container.NodePool(
            name,
            project=project,
            cluster=cluster_name,
            location=location,
            node_locations=zones,
            # GKE counts a fixed size per zone. Autoscaling limits named "total" are for all zones together.
            node_count=None if spec.count is None else spec.count // len(zones),
            initial_node_count=_initial_per_zone(scaling.min, scaling.max, len(zones)) if scaling else None,
            autoscaling=container.NodePoolAutoscalingArgs(
                total_min_node_count=scaling.min,
                total_max_node_count=scaling.max,
                location_policy="ANY" if spec.spot or spec.has_gpus else "BALANCED",
            )
            if scaling
            else None,
            # GKE requires that flex-start machines, which run for a limited time, are not repaired.
            management=container.NodePoolManagementArgs(auto_repair=not spec.flex_start, auto_upgrade=True),
            upgrade_settings=_upgrades(spec),
            max_pods_per_node=spec.max_pods,
            network_config=_network(spec),
            placement_policy=container.NodePoolPlacementPolicyArgs(type="COMPACT") if spec.compact_placement else None,
            queued_provisioning=container.NodePoolQueuedProvisioningArgs(enabled=True)
            if spec.queued_provisioning
            else None,
            node_config=_node_config(spec, pool, service_account, image_streaming),
            opts=child_options(
                self,
                ignore_changes=["initialNodeCount"],
                replace_on_changes=["nodeConfig.machineType"],
                timeout="30m",
            ),
        )
        self.pool_name = node_pool.name
        self.register_outputs({"poolName": self.pool_name})


def _initial_per_zone(minimum: int, maximum: int, zones: int) -> int:
    """Returns the first number of nodes per zone: enough for the minimum, but never above the maximum."""
    per_zone = ceil(minimum / zones)
    return per_zone if per_zone * zones <= maximum else minimum // zones


def _upgrades(spec: NodePoolSpec) -> container.NodePoolUpgradeSettingsArgs | None:
    if spec.flex_start:
        # GKE upgrades flex-start machines in its own way.
        return None
    if spec.upgrades.strategy == "BLUE_GREEN":
        soak = spec.upgrades.soak_seconds
        return container.NodePoolUpgradeSettingsArgs(
            strategy="BLUE_GREEN",
            blue_green_settings=container.NodePoolUpgradeSettingsBlueGreenSettingsArgs(
                node_pool_soak_duration=None if soak is None else f"{soak}s",
                standard_rollout_policy=container.NodePoolUpgradeSettingsBlueGreenSettingsStandardRolloutPolicyArgs(
                    batch_node_count=spec.upgrades.batch_nodes or 1
                ),
            ),
        )
    surge, unavailable = spec.surge
    return container.NodePoolUpgradeSettingsArgs(strategy="SURGE", max_surge=surge, max_unavailable=unavailable)


def _network(spec: NodePoolSpec) -> container.NodePoolNetworkConfigArgs:
    return container.NodePoolNetworkConfigArgs(
        enable_private_nodes=True,
        accelerator_network_profile=spec.network_profile,
        additional_node_network_configs=[
            container.NodePoolNetworkConfigAdditionalNodeNetworkConfigArgs(
                network=network.network, subnetwork=network.subnet
            )
            for network in spec.networks
        ]
        or None,
    )


def _node_config(
    spec: NodePoolSpec, pool: str, service_account: pulumi.Input[str], image_streaming: bool
) -> container.NodePoolNodeConfigArgs:
    metadata = {"disable-legacy-endpoints": "true"}
    if spec.size:
        metadata[_SIZE_KEY] = json.dumps(spec.size.model_dump(exclude_none=True), sort_keys=True)
    streaming = image_streaming if spec.image_streaming is None else spec.image_streaming
    return container.NodePoolNodeConfigArgs(
        machine_type=spec.machine_type,
        image_type=spec.image,
        disk_size_gb=spec.disk_size_gb,
        disk_type=spec.boot_disk_type,
        ephemeral_storage_local_ssd_config=container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(
            local_ssd_count=spec.ephemeral_ssds
        )
        if spec.ephemeral_ssds
        else None,
        local_nvme_ssd_block_config=container.NodePoolNodeConfigLocalNvmeSsdBlockConfigArgs(
            local_ssd_count=spec.block_ssds
        )
        if spec.block_ssds
        else None,
        spot=spec.spot,
        flex_start=spec.flex_start or None,
        max_run_duration=spec.max_run_duration,
        reservation_affinity=_reservation(spec),
        guest_accelerators=_accelerators(spec),
        # TCPX and TCPXO are set up on the nodes by installers; GKE refuses them as a strategy.
        gpudirect_strategy="RDMA" if spec.gpu_direct == "RDMA" else None,
        labels=spec.node_labels(pool),
        taints=[
            container.NodePoolNodeConfigTaintArgs(key=taint.key, value=taint.value, effect=_EFFECTS[taint.effect])
            for taint in spec.all_taints
        ]
        or None,
        service_account=service_account,
        oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
        metadata=metadata,
        gcfs_config=container.NodePoolNodeConfigGcfsConfigArgs(enabled=True) if streaming else None,
        gvnic=container.NodePoolNodeConfigGvnicArgs(enabled=True),
        shielded_instance_config=container.NodePoolNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=spec.secure_boot, enable_integrity_monitoring=True
        ),
        workload_metadata_config=container.NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
    )


def _reservation(spec: NodePoolSpec) -> container.NodePoolNodeConfigReservationAffinityArgs | None:
    if spec.reservation:
        return container.NodePoolNodeConfigReservationAffinityArgs(
            consume_reservation_type="SPECIFIC_RESERVATION",
            key="compute.googleapis.com/reservation-name",
            values=[spec.reservation],
        )
    if spec.flex_start or spec.queued_provisioning:
        return container.NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
    return None


def _accelerators(spec: NodePoolSpec) -> list[container.NodePoolNodeConfigGuestAcceleratorArgs] | None:
    machine = spec.machine
    if not machine.accelerator:
        return None
    sharing = spec.gpu_sharing
    return [
        container.NodePoolNodeConfigGuestAcceleratorArgs(
            type=machine.accelerator,
            count=machine.gpus,
            gpu_partition_size=spec.gpu_partition,
            gpu_sharing_config=container.NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs(
                gpu_sharing_strategy=sharing.strategy, max_shared_clients_per_gpu=sharing.clients
            )
            if sharing
            else None,
            gpu_driver_installation_config=container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
                gpu_driver_version=spec.driver.gke_version
            ),
        )
    ]
