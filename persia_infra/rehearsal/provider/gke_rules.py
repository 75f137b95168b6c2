"""Rules of the GKE API for well-formed clusters and node pools; each violation names the field.

Only rules that Google documents, and that depend on the request alone: quotas, capacity, permissions and the stock
of a zone are out of scope.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, cast

from persia_infra.rehearsal.provider.gke_api import BadField
from persia_infra.rehearsal.provider.gke_messages import gke

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_IMAGES: Final = (
    "COS_CONTAINERD",
    "COS",
    "UBUNTU_CONTAINERD",
    "UBUNTU",
    "WINDOWS_LTSC_CONTAINERD",
    "WINDOWS_SAC_CONTAINERD",
    "WINDOWS_LTSC",
    "WINDOWS_SAC",
)
_LONGEST_RUN: Final = timedelta(days=7)
_LONGEST_FREEZE: Final = timedelta(days=90)
_SHORTEST_WINDOW: Final = timedelta(hours=4)
_RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"


def refused_in_node_pool(pool: gke.NodePool, path: str = "nodePool") -> Iterator[BadField]:
    """Yields the fields of a node pool that the API would refuse."""
    if pool.name and not _NAME.fullmatch(pool.name):
        yield BadField(f"{path}.name", _name_rule(pool.name))
    if (pods := pool.max_pods_constraint.max_pods_per_node) and not 8 <= pods <= 256:
        yield BadField(f"{path}.maxPodsConstraint.maxPodsPerNode", f"{pods} is not between 8 and 256")
    yield from _placement(pool, path)
    yield from _upgrades(pool, path)
    yield from _provisioning(pool, path)
    yield from _node_config(pool.config, f"{path}.config")


def refused_in_cluster(cluster: gke.Cluster) -> Iterator[BadField]:
    """Yields the fields of a cluster, and of the pools inside it, that the API would refuse."""
    if cluster.name and not _NAME.fullmatch(cluster.name):
        yield BadField("cluster.name", _name_rule(cluster.name))
    yield from _control_plane(cluster)
    yield from _networking(cluster)
    yield from _maintenance(cluster.maintenance_policy.window)
    if (pods := cluster.default_max_pods_constraint.max_pods_per_node) and not 8 <= pods <= 256:
        yield BadField("cluster.defaultMaxPodsConstraint.maxPodsPerNode", f"{pods} is not between 8 and 256")
    if topic := cluster.notification_config.pubsub.topic:
        if not re.fullmatch(r"projects/[^/]+/topics/[^/]+", topic):
            yield BadField("cluster.notificationConfig.pubsub.topic", "write it as projects/PROJECT/topics/TOPIC")
    elif cluster.notification_config.pubsub.enabled:
        yield BadField("cluster.notificationConfig.pubsub.topic", "is required if pubsub.enabled is true")
    for index, pool in enumerate(cluster.node_pools):
        yield from refused_in_node_pool(pool, f"cluster.nodePools[{index}]")
    yield from _node_config(cluster.node_config, "cluster.nodeConfig")


def _placement(pool: gke.NodePool, path: str) -> Iterator[BadField]:
    if pool.placement_policy.type_ != gke.NodePool.PlacementPolicy.Type.COMPACT:
        return
    place = f"{path}.placementPolicy.type"
    if len(pool.locations) > 1:
        yield BadField(place, f"COMPACT requires a single zone, but locations has {len(pool.locations)}")
    if pool.upgrade_settings.strategy == gke.NodePoolUpdateStrategy.BLUE_GREEN:
        yield BadField(place, "COMPACT is not available with upgradeSettings.strategy BLUE_GREEN")
    if pool.queued_provisioning.enabled and not pool.placement_policy.tpu_topology:
        yield BadField(place, "COMPACT is not available with queuedProvisioning")


def _upgrades(pool: gke.NodePool, path: str) -> Iterator[BadField]:
    settings = pool.upgrade_settings
    if "upgrade_settings" not in pool:
        return
    blue_green = settings.strategy == gke.NodePoolUpdateStrategy.BLUE_GREEN
    if "blue_green_settings" in settings and not blue_green:
        yield BadField(f"{path}.upgradeSettings.blueGreenSettings", "is only allowed with strategy BLUE_GREEN")
    surge = settings.strategy in (
        gke.NodePoolUpdateStrategy.NODE_POOL_UPDATE_STRATEGY_UNSPECIFIED,
        gke.NodePoolUpdateStrategy.SURGE,
    )
    if surge and not settings.max_surge and not settings.max_unavailable:
        yield BadField(f"{path}.upgradeSettings", "maxSurge and maxUnavailable are both 0: raise one of them")
    if settings.max_surge + settings.max_unavailable > 20:
        yield BadField(f"{path}.upgradeSettings", "the sum of maxSurge and maxUnavailable is greater than 20")


def _provisioning(pool: gke.NodePool, path: str) -> Iterator[BadField]:
    config, scaling = pool.config, pool.autoscaling
    reserves = config.reservation_affinity.consume_reservation_type in (
        gke.ReservationAffinity.Type.SPECIFIC_RESERVATION,
        gke.ReservationAffinity.Type.ANY_RESERVATION,
    )
    temporary = config.spot or config.preemptible
    for name, on in (("queuedProvisioning", pool.queued_provisioning.enabled), ("config.flexStart", config.flex_start)):
        if not on:
            continue
        if temporary:
            yield BadField(f"{path}.{name}", "is not available for Spot or preemptible nodes")
        if reserves:
            yield BadField(f"{path}.{name}", "requires reservationAffinity NO_RESERVATION")
        if "autoscaling" not in pool:
            yield BadField(f"{path}.{name}", "requires autoscaling")
    if pool.queued_provisioning.enabled and (scaling.min_node_count or scaling.total_min_node_count):
        yield BadField(f"{path}.queuedProvisioning", "requires an autoscaling minimum of 0")
    if config.flex_start and ("management" not in pool or pool.management.auto_repair):
        yield BadField(f"{path}.management.autoRepair", "must be false with flexStart")
    if temporary and reserves:
        yield BadField(
            f"{path}.config.reservationAffinity.consumeReservationType", "Spot nodes cannot come from a reservation"
        )


def _node_config(config: gke.NodeConfig, path: str) -> Iterator[BadField]:
    if config.image_type and config.image_type.upper() not in _IMAGES:
        yield BadField(
            f"{path}.imageType", f"{config.image_type!r} is not a valid node image: use one of {', '.join(_IMAGES)}"
        )
    if config.disk_size_gb and config.disk_size_gb < 10:
        yield BadField(f"{path}.diskSizeGb", f"{config.disk_size_gb} is below the minimum of 10")
    if config.spot and config.preemptible:
        yield BadField(f"{path}.spot", "cannot be set together with preemptible")
    longest = cast("timedelta | None", config.max_run_duration)
    if longest and longest > _LONGEST_RUN:
        yield BadField(f"{path}.maxRunDuration", "is longer than seven days (604800s)")
    seen = Counter((taint.key, taint.effect.name) for taint in config.taints)
    for (key, effect), count in seen.items():
        if count > 1:
            yield BadField(f"{path}.taints", f"Found more than one taint with key {key} and effect {effect}")
    yield from _local_ssds(config, path)
    yield from _reservation(config.reservation_affinity, f"{path}.reservationAffinity")
    if config.fast_socket.enabled and not config.gvnic.enabled:
        yield BadField(f"{path}.fastSocket.enabled", "requires gvnic.enabled")
    for index, gpu in enumerate(config.accelerators):
        yield from _gpu(gpu, config.image_type, f"{path}.accelerators[{index}]")


def _local_ssds(config: gke.NodeConfig, path: str) -> Iterator[BadField]:
    kinds = {
        "localSsdCount": config.local_ssd_count,
        "ephemeralStorageLocalSsdConfig": config.ephemeral_storage_local_ssd_config.local_ssd_count,
        "localNvmeSsdBlockConfig": config.local_nvme_ssd_block_config.local_ssd_count,
    }
    used = [name for name, count in kinds.items() if count]
    if len(used) > 1:
        yield BadField(f"{path}.{used[0]}", f"cannot be set together with {used[1]}")


def _reservation(affinity: gke.ReservationAffinity, path: str) -> Iterator[BadField]:
    if affinity.consume_reservation_type == gke.ReservationAffinity.Type.SPECIFIC_RESERVATION:
        if affinity.key != _RESERVATION_KEY:
            yield BadField(f"{path}.key", f"must be {_RESERVATION_KEY} for SPECIFIC_RESERVATION")
        if len(affinity.values) != 1:
            yield BadField(f"{path}.values", f"must name exactly one reservation, but has {len(affinity.values)}")
    elif affinity.key or affinity.values:
        yield BadField(f"{path}.values", "is only allowed with SPECIFIC_RESERVATION")


def _gpu(gpu: gke.AcceleratorConfig, image: str, path: str) -> Iterator[BadField]:
    sharing = gpu.gpu_sharing_config
    strategies = gke.GPUSharingConfig.GPUSharingStrategy
    if sharing.gpu_sharing_strategy == strategies.MPS and gpu.gpu_partition_size:
        yield BadField(f"{path}.gpuSharingConfig.gpuSharingStrategy", "MPS is not available with gpuPartitionSize")
    if sharing.gpu_sharing_strategy and not 2 <= sharing.max_shared_clients_per_gpu <= 48:
        yield BadField(
            f"{path}.gpuSharingConfig.maxSharedClientsPerGpu",
            f"{sharing.max_shared_clients_per_gpu} is not between 2 and 48",
        )
    version = gpu.gpu_driver_installation_config.gpu_driver_version
    if version == gke.GPUDriverInstallationConfig.GPUDriverVersion.LATEST and image.upper().startswith("UBUNTU"):
        yield BadField(
            f"{path}.gpuDriverInstallationConfig.gpuDriverVersion", "LATEST is only available for COS images"
        )


def _control_plane(cluster: gke.Cluster) -> Iterator[BadField]:
    private = cluster.private_cluster_config
    if private.enable_private_endpoint and "master_authorized_networks_config" not in cluster:
        yield BadField(
            "cluster.privateClusterConfig.enablePrivateEndpoint", "requires masterAuthorizedNetworksConfig.enabled"
        )
    if private.master_ipv4_cidr_block and not private.master_ipv4_cidr_block.endswith("/28"):
        yield BadField("cluster.privateClusterConfig.masterIpv4CidrBlock", "must be a /28")
    encryption = cluster.database_encryption
    if encryption.state == gke.DatabaseEncryption.State.ENCRYPTED and not re.fullmatch(
        r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+", encryption.key_name
    ):
        yield BadField(
            "cluster.databaseEncryption.keyName",
            "state ENCRYPTED requires projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY",
        )
    workload_pool = cluster.workload_identity_config.workload_pool
    if workload_pool and not workload_pool.endswith(".svc.id.goog"):
        yield BadField("cluster.workloadIdentityConfig.workloadPool", "must be PROJECT.svc.id.goog")
    if cluster.addons_config.gcs_fuse_csi_driver_config.enabled and not workload_pool:
        yield BadField("cluster.addonsConfig.gcsFuseCsiDriverConfig.enabled", "requires workloadIdentityConfig")


def _networking(cluster: gke.Cluster) -> Iterator[BadField]:
    network = cluster.network_config
    advanced = network.datapath_provider == gke.DatapathProvider.ADVANCED_DATAPATH
    if network.enable_multi_networking and not advanced:
        yield BadField("cluster.networkConfig.enableMultiNetworking", "requires datapathProvider ADVANCED_DATAPATH")
    if cluster.network_policy.enabled and advanced:
        yield BadField(
            "cluster.networkPolicy.enabled",
            "cannot be combined with datapathProvider ADVANCED_DATAPATH, which includes it",
        )


def _maintenance(window: gke.MaintenanceWindow) -> Iterator[BadField]:
    path = "cluster.maintenancePolicy.window"
    daily = window.daily_maintenance_window.start_time
    if daily and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", daily):
        yield BadField(f"{path}.dailyMaintenanceWindow.startTime", f"{daily!r} is not a time of day such as 03:00")
    recurring = window.recurring_window
    if "recurring_window" in window:
        if not re.match(r"FREQ=(DAILY|WEEKLY)", recurring.recurrence):
            yield BadField(f"{path}.recurringWindow.recurrence", "must be an RFC 5545 rule such as FREQ=DAILY")
        if _length(recurring.window) < _SHORTEST_WINDOW:
            yield BadField(f"{path}.recurringWindow.window", "is shorter than four hours")
    for name, exclusion in window.maintenance_exclusions.items():
        length = _length(exclusion)
        place = f'{path}.maintenanceExclusions["{name}"].endTime'
        if length <= timedelta(0):
            yield BadField(place, "is not after startTime")
        scope = exclusion.maintenance_exclusion_options.scope
        if scope == gke.MaintenanceExclusionOptions.Scope.NO_UPGRADES and length > _LONGEST_FREEZE:
            yield BadField(place, "is more than 90 days after startTime, the maximum for scope NO_UPGRADES")


def _length(window: gke.TimeWindow) -> timedelta:
    return cast("datetime", window.end_time) - cast("datetime", window.start_time)


def _name_rule(name: str) -> str:
    return f"{name!r} is not a valid name: use lower-case letters, digits and '-' (at most 40), starting with a letter"
