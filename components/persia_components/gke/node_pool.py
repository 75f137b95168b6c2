"""A node pool of a GKE cluster."""

import json
from math import ceil
from typing import TYPE_CHECKING

import pulumi
from pulumi_gcp import container

from persia_components._children import child_options, token

if TYPE_CHECKING:
    from persia_infra.gke.pools import NodePoolSpec

_EFFECTS = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
_SIZE_KEY = "persia-infra-machine-size"
"""Instance metadata with the size of a machine type that no catalogue has, for a rehearsal to make nodes of."""


class NodePool(pulumi.ComponentResource):
    """Machines of one type.

    Its name in Google Cloud is chosen by Pulumi, so a change that needs a new pool makes that one first. Another
    machine type is such a change: GKE would otherwise drain the nodes of the old type one after the other, with no
    way back when the new one is not to be had.
    """

    pool_name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        spec: "NodePoolSpec",
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
            name: Of the component, and the beginning of the pool's name.
            spec: The description.
            pool: The name that jobs know it by.
            project: Of the cluster.
            location: Of the cluster.
            zones: Of the nodes.
            cluster_name: The cluster that it is part of.
            service_account: The e-mail address of the account that its nodes run as.
            image_streaming: For a pool that does not say.
            opts: Of the component.
        """
        super().__init__(token("NodePool"), name, None, opts)
        scaling = spec.autoscaling
        made = container.NodePool(
            name,
            project=project,
            cluster=cluster_name,
            location=location,
            node_locations=zones,
            # GKE counts a fixed size for each zone, and limits of autoscaling in all zones where they say total.
            node_count=None if spec.count is None else spec.count // len(zones),
            initial_node_count=_initial(scaling.min, scaling.max, len(zones)) if scaling else None,
            autoscaling=container.NodePoolAutoscalingArgs(
                total_min_node_count=scaling.min,
                total_max_node_count=scaling.max,
                location_policy="ANY" if spec.spot or spec.has_gpus else "BALANCED",
            )
            if scaling
            else None,
            # Machines with a fixed end are not worth repairing, and GKE insists on that.
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
        self.pool_name = made.name
        self.register_outputs({"poolName": self.pool_name})


def _initial(least: int, most: int, zones: int) -> int:
    """Nodes in each zone to begin with: enough for the minimum, unless that would be above the maximum."""
    each = ceil(least / zones)
    return each if each * zones <= most else least // zones


def _upgrades(spec: "NodePoolSpec") -> "container.NodePoolUpgradeSettingsArgs | None":
    if spec.flex_start:
        # GKE has a way of its own for machines with a fixed end.
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


def _network(spec: "NodePoolSpec") -> "container.NodePoolNetworkConfigArgs":
    return container.NodePoolNetworkConfigArgs(
        enable_private_nodes=True,
        accelerator_network_profile=spec.network_profile,
        additional_node_network_configs=[
            container.NodePoolNetworkConfigAdditionalNodeNetworkConfigArgs(network=one.network, subnetwork=one.subnet)
            for one in spec.networks
        ]
        or None,
    )


def _node_config(
    spec: "NodePoolSpec", pool: str, service_account: pulumi.Input[str], image_streaming: bool
) -> "container.NodePoolNodeConfigArgs":
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
        gpudirect_strategy=spec.gpu_direct,
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


def _reservation(spec: "NodePoolSpec") -> "container.NodePoolNodeConfigReservationAffinityArgs | None":
    if spec.reservation:
        return container.NodePoolNodeConfigReservationAffinityArgs(
            consume_reservation_type="SPECIFIC_RESERVATION",
            key="compute.googleapis.com/reservation-name",
            values=[spec.reservation],
        )
    if spec.flex_start or spec.queued_provisioning:
        return container.NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
    return None


def _accelerators(spec: "NodePoolSpec") -> "list[container.NodePoolNodeConfigGuestAcceleratorArgs] | None":
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
