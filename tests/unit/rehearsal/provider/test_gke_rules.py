"""Well-formed clusters and node pools that the simulated GKE refuses, as the API does."""

import re
from typing import Any

import pytest

from persia_infra.rehearsal.provider.gcp import Gcp
from persia_infra.rehearsal.provider.package import UNKNOWN, ProviderError
from tests.support.fake_cloud import CLUSTER, NODE_POOL, PRIVATE_CLUSTER, checked, create, make_pool, update, urn

T4 = {"type": "nvidia-tesla-t4", "count": 1}
QUEUED = {"queuedProvisioning": {"enabled": True}}
SCALED = {"autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 2}}
SPECIFIC = {"consumeReservationType": "SPECIFIC_RESERVATION"}
BLUE_GREEN = {"strategy": "BLUE_GREEN", "blueGreenSettings": {"standardRolloutPolicy": {"batchNodeCount": 1}}}
ANY = {"consumeReservationType": "ANY_RESERVATION"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}


def gpu(**more: Any) -> dict[str, Any]:
    return {"nodeConfig": {"machineType": "n1-standard-8", "guestAccelerators": [{**T4, **more}]}}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"name": "a" * 41}, "nodePool.name: 'aaa"),
        ({"maxPodsPerNode": 300}, "nodePool.maxPodsConstraint.maxPodsPerNode: 300 is not between 8 and 256"),
        (
            {"placementPolicy": {"type": "COMPACT"}, "nodeLocations": ["us-central1-a", "us-central1-b"]},
            "nodePool.placementPolicy.type: COMPACT requires a single zone, but locations has 2",
        ),
        (
            {"placementPolicy": {"type": "COMPACT"}, "upgradeSettings": BLUE_GREEN},
            "nodePool.placementPolicy.type: COMPACT is not available with upgradeSettings.strategy BLUE_GREEN",
        ),
        (
            {"placementPolicy": {"type": "COMPACT"}, **QUEUED, **SCALED},
            "nodePool.placementPolicy.type: COMPACT is not available with queuedProvisioning",
        ),
        (
            {"upgradeSettings": {"strategy": "SURGE", "blueGreenSettings": {}, "maxSurge": 1}},
            "nodePool.upgradeSettings.blueGreenSettings: is only allowed with strategy BLUE_GREEN",
        ),
        ({"upgradeSettings": {"maxSurge": 0, "maxUnavailable": 0}}, "nodePool.upgradeSettings: maxSurge and"),
        ({"upgradeSettings": {"maxSurge": 20, "maxUnavailable": 1}}, "nodePool.upgradeSettings: the sum of"),
        ({**QUEUED, **SCALED, "nodeConfig": {"spot": True}}, "nodePool.queuedProvisioning: is not available for Spot"),
        (
            {**QUEUED, **SCALED, "nodeConfig": {"reservationAffinity": ANY}},
            "nodePool.queuedProvisioning: requires reservationAffinity NO_RESERVATION",
        ),
        (QUEUED, "nodePool.queuedProvisioning: requires autoscaling"),
        (
            {**QUEUED, "autoscaling": {"totalMinNodeCount": 1, "totalMaxNodeCount": 2}},
            "nodePool.queuedProvisioning: requires an autoscaling minimum of 0",
        ),
        (
            {**SCALED, "nodeConfig": {"flexStart": True}, "management": {"autoRepair": True}},
            "nodePool.management.autoRepair: must be false with flexStart",
        ),
        (
            {"nodeConfig": {"spot": True, "reservationAffinity": ANY}},
            "nodePool.config.reservationAffinity.consumeReservationType: Spot nodes cannot",
        ),
        ({"nodeConfig": {"imageType": "DEBIAN"}}, "nodePool.config.imageType: 'DEBIAN' is not a valid node image"),
        ({"nodeConfig": {"diskSizeGb": 5}}, "nodePool.config.diskSizeGb: 5 is below the minimum"),
        ({"nodeConfig": {"spot": True, "preemptible": True}}, "nodePool.config.spot: cannot be set together"),
        ({"nodeConfig": {"maxRunDuration": "604801s"}}, "nodePool.config.maxRunDuration: is longer than seven days"),
        (
            {"nodeConfig": {"taints": [TAINT, TAINT]}},
            "nodePool.config.taints: Found more than one taint with key nvidia.com/gpu and effect NO_SCHEDULE",
        ),
        (
            {
                "nodeConfig": {
                    "ephemeralStorageLocalSsdConfig": {"localSsdCount": 1},
                    "localNvmeSsdBlockConfig": {"localSsdCount": 1},
                }
            },
            "nodePool.config.ephemeralStorageLocalSsdConfig: cannot be set together with localNvmeSsdBlockConfig",
        ),
        ({"nodeConfig": {"reservationAffinity": SPECIFIC}}, "nodePool.config.reservationAffinity.key: must be compute"),
        (
            {
                "nodeConfig": {
                    "reservationAffinity": {**SPECIFIC, "key": "compute.googleapis.com/reservation-name", "values": []}
                }
            },
            "nodePool.config.reservationAffinity.values: must name exactly one reservation, but has 0",
        ),
        (
            {"nodeConfig": {"reservationAffinity": {**ANY, "values": ["mine"]}}},
            "nodePool.config.reservationAffinity.values: is only allowed with SPECIFIC_RESERVATION",
        ),
        ({"nodeConfig": {"fastSocket": {"enabled": True}}}, "nodePool.config.fastSocket.enabled: requires gvnic"),
        (
            gpu(
                gpuPartitionSize="1g.5gb",
                gpuSharingConfig={"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 2},
            ),
            "nodePool.config.accelerators[0].gpuSharingConfig.gpuSharingStrategy: MPS is not available",
        ),
        (
            gpu(gpuSharingConfig={"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 99}),
            "nodePool.config.accelerators[0].gpuSharingConfig.maxSharedClientsPerGpu: 99 is not between 2 and 48",
        ),
        (
            {
                "nodeConfig": {
                    **gpu(gpuDriverInstallationConfig={"gpuDriverVersion": "LATEST"})["nodeConfig"],
                    "imageType": "UBUNTU_CONTAINERD",
                }
            },
            "nodePool.config.accelerators[0].gpuDriverInstallationConfig.gpuDriverVersion: LATEST is only available",
        ),
    ],
)
def test_node_pools_that_are_refused(gcp: Gcp, inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(ProviderError, match=rf"would refuse it: Error 400: INVALID_ARGUMENT: .*{re.escape(message)}"):
        make_pool(gcp, **inputs)


EXCLUSION = {"exclusionName": "x", "startTime": "2030-01-01T00:00:00Z", "exclusionOptions": {"scope": "NO_UPGRADES"}}
WINDOW = {"startTime": "2030-01-01T00:00:00Z", "endTime": "2030-01-01T06:00:00Z", "recurrence": "FREQ=DAILY"}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"name": "Train"}, "cluster.name: 'Train' is not"),
        ({"privateClusterConfig": {"enablePrivateEndpoint": True}}, "cluster.privateClusterConfig.enablePrivateEndpoi"),
        (
            {"privateClusterConfig": {"masterIpv4CidrBlock": "10.0.0.0/24"}},
            "cluster.privateClusterConfig.masterIpv4CidrBlock: must be a /28",
        ),
        ({"databaseEncryption": {"state": "ENCRYPTED", "keyName": "k"}}, "cluster.databaseEncryption.keyName: state"),
        ({"workloadIdentityConfig": {"workloadPool": "demo"}}, "cluster.workloadIdentityConfig.workloadPool: must be"),
        ({"addonsConfig": {"gcsFuseCsiDriverConfig": {"enabled": True}}}, "cluster.addonsConfig.gcsFuseCsiDriverConf"),
        ({"enableMultiNetworking": True}, "cluster.networkConfig.enableMultiNetworking: requires datapathProvider"),
        (
            {"datapathProvider": "ADVANCED_DATAPATH", "networkPolicy": {"enabled": True}},
            "cluster.networkPolicy.enabled: cannot be combined with datapathProvider",
        ),
        ({"defaultMaxPodsPerNode": 4}, "cluster.defaultMaxPodsConstraint.maxPodsPerNode: 4 is not between"),
        (
            {"notificationConfig": {"pubsub": {"enabled": True, "topic": "t"}}},
            "cluster.notificationConfig.pubsub.topic",
        ),
        ({"notificationConfig": {"pubsub": {"enabled": True}}}, "cluster.notificationConfig.pubsub.topic: is required"),
        (
            {"maintenancePolicy": {"dailyMaintenanceWindow": {"startTime": "3am"}}},
            "cluster.maintenancePolicy.window.dailyMaintenanceWindow.startTime: '3am'",
        ),
        (
            {"maintenancePolicy": {"recurringWindow": {**WINDOW, "endTime": "2030-01-01T01:00:00Z"}}},
            "cluster.maintenancePolicy.window.recurringWindow.window: is shorter than four hours",
        ),
        (
            {"maintenancePolicy": {"recurringWindow": {**WINDOW, "recurrence": "daily"}}},
            "cluster.maintenancePolicy.window.recurringWindow.recurrence: must be",
        ),
        (
            {"maintenancePolicy": {"maintenanceExclusions": [{**EXCLUSION, "endTime": "2030-06-15T00:00:00Z"}]}},
            'cluster.maintenancePolicy.window.maintenanceExclusions["x"].endTime: is more than 90 days',
        ),
        (
            {"maintenancePolicy": {"maintenanceExclusions": [{**EXCLUSION, "endTime": "2029-02-15T00:00:00Z"}]}},
            'cluster.maintenancePolicy.window.maintenanceExclusions["x"].endTime: is not after startTime',
        ),
        (
            {"nodePools": [{"name": "p", "nodeCount": 1, "nodeConfig": {"diskSizeGb": 1}}]},
            "cluster.nodePools[0].config.diskSizeGb: 1 is below",
        ),
        ({"releaseChannel": {"channel": "FAST"}}, "cluster.releaseChannel.channel: 'FAST' is not a valid Channel"),
    ],
)
def test_clusters_that_are_refused(gcp: Gcp, inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(ProviderError, match=rf"would refuse it: Error 400: INVALID_ARGUMENT: .*{re.escape(message)}"):
        create(gcp, CLUSTER, {**PRIVATE_CLUSTER, **inputs})


def test_a_preview_refuses_an_invalid_node_pool_too(gcp: Gcp) -> None:
    inputs = checked(gcp, NODE_POOL, {"cluster": UNKNOWN, "nodeCount": 1, "nodeConfig": {"imageType": "DEBIAN"}})
    with pytest.raises(ProviderError, match=r"nodePool\.config\.imageType"):
        gcp.create(urn(NODE_POOL), inputs, preview=True, timeout=0)


def test_an_update_refuses_an_invalid_node_pool_too(gcp: Gcp) -> None:
    object_id, _ = make_pool(gcp, nodeCount=1)
    inputs = {"name": "workers", "cluster": "train", "location": "us-central1", "nodeCount": 1}
    with pytest.raises(ProviderError, match=r"nodePool\.config\.diskSizeGb"):
        update(gcp, NODE_POOL, object_id, {**inputs, "nodeConfig": {"diskSizeGb": 1}})


def test_valid_clusters_and_node_pools_are_accepted(gcp: Gcp) -> None:
    create(
        gcp,
        CLUSTER,
        {**PRIVATE_CLUSTER, "datapathProvider": "ADVANCED_DATAPATH", "maintenancePolicy": {"recurringWindow": WINDOW}},
    )
    make_pool(gcp, **QUEUED, **SCALED, **gpu(), placementPolicy=None, upgradeSettings={"maxUnavailable": 1})
    make_pool(gcp, **SCALED, name="flex", nodeConfig={"flexStart": True}, management={"autoRepair": False})
    make_pool(gcp, name="blue", nodeCount=1, upgradeSettings=BLUE_GREEN)
    make_pool(gcp, name="surge", nodeCount=1, upgradeSettings={"maxSurge": 19, "maxUnavailable": 1})
    make_pool(gcp, name="week", nodeCount=1, nodeConfig={"maxRunDuration": "604800s", "diskSizeGb": 10})
