"""Messages of the GKE API from the properties of clusters and node pools."""

import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from pulumi_gcp import container

from persia_infra.rehearsal.provider.gke_api import Malformed, api_fields, cluster_message, node_pool_message
from persia_infra.rehearsal.provider.gke_messages import gke
from persia_infra.rehearsal.provider.package import UNKNOWN


def without_a_place(arguments: type, message: Descriptor, path: str) -> Iterator[str]:
    """Returns the inputs of a class of pulumi-gcp, at any depth, that the mapping does not know."""
    for name, accessor in vars(arguments).items():
        if not isinstance(accessor, property):
            continue
        wire = re.sub(r"_(\w)", lambda found: found[1].upper(), name)
        fields = api_fields(message, wire)
        if fields is None:
            yield f"{path}.{wire}"
            continue
        nested = re.search(r"'(\w+Args)'", str(accessor.fget.__annotations__["return"]))  # type: ignore[union-attr]
        if fields and nested and (inner := fields[-1].message_type):
            if inner.GetOptions().map_entry:
                inner = inner.fields_by_name["value"].message_type
            yield from without_a_place(
                getattr(container, nested[1]), typing.cast("Descriptor", inner), f"{path}.{wire}"
            )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (container.NodePoolArgs, gke.NodePool),
        (container.ClusterArgs, gke.Cluster),
    ],
)
def test_every_input_of_the_provider_has_its_place_in_the_api(arguments: type, message: Any) -> None:
    assert list(without_a_place(arguments, message.pb().DESCRIPTOR, message.__name__)) == []


@pytest.mark.parametrize("first", ["google.rpc.status_pb2", "pulumi.runtime.proto.status_pb2"])
def test_googles_and_pulumis_messages_can_be_loaded_in_one_process(first: str) -> None:
    code = f"import {first}, persia_infra.rehearsal.provider.gke_api, pulumi.runtime.proto.status_pb2"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_properties_of_a_node_pool_have_their_place_in_its_message() -> None:
    pool = node_pool_message(
        {
            "name": "gpu",
            "cluster": "train",
            "nodeCount": 2,
            "maxPodsPerNode": 32,
            "nodeLocations": ["us-central1-a"],
            "placementPolicy": {"type": "COMPACT"},
            "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1},
            "nodeConfig": {
                "machineType": "n1-standard-8",
                "spot": True,
                "maxRunDuration": "604800s",
                "labels": {"a/b": "c"},
                "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
                "loggingVariant": "MAX_THROUGHPUT",
                "linuxNodeConfig": {"hugepagesConfig": {"hugepageSize2m": 1024}},
                "kubeletConfig": {"insecureKubeletReadonlyPortEnabled": "FALSE"},
                "guestAccelerators": [
                    {
                        "type": "nvidia-tesla-t4",
                        "count": 2,
                        "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
                        "gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 4},
                    }
                ],
            },
        }
    )

    (gpu,) = pool.config.accelerators
    assert (gpu.accelerator_type, gpu.accelerator_count) == ("nvidia-tesla-t4", 2)
    assert gpu.gpu_driver_installation_config.gpu_driver_version.name == "LATEST"
    assert gpu.gpu_sharing_config.gpu_sharing_strategy.name == "MPS"
    assert pool.config.taints[0].effect.name == "NO_SCHEDULE"
    assert pool.config.labels == {"a/b": "c"}
    assert pool.config.max_run_duration == timedelta(days=7)
    assert pool.config.linux_node_config.hugepages.hugepage_size2m == 1024
    assert pool.config.logging_config.variant_config.variant.name == "MAX_THROUGHPUT"
    assert pool.config.kubelet_config.insecure_kubelet_readonly_port_enabled is False
    assert pool.max_pods_constraint.max_pods_per_node == 32
    assert pool.placement_policy.type_.name == "COMPACT"
    assert (list(pool.locations), pool.initial_node_count) == (["us-central1-a"], 2)


def test_the_properties_of_a_cluster_have_their_place_in_its_message() -> None:
    cluster = cluster_message(
        {
            "name": "train",
            "removeDefaultNodePool": True,
            "deletionProtection": True,
            "initialNodeCount": 1,
            "datapathProvider": "ADVANCED_DATAPATH",
            "enableMultiNetworking": True,
            "enableShieldedNodes": True,
            "defaultMaxPodsPerNode": 64,
            "dnsConfig": {"clusterDns": "CLOUD_DNS"},
            "monitoringConfig": {
                "enableComponents": ["SYSTEM_COMPONENTS", "DCGM"],
                "managedPrometheus": {"enabled": True},
            },
            "addonsConfig": {"rayOperatorConfigs": [{"enabled": True}], "gcsFuseCsiDriverConfig": {"enabled": True}},
            "maintenancePolicy": {
                "recurringWindow": {
                    "startTime": "2030-01-01T02:00:00Z",
                    "endTime": "2030-01-01T08:00:00Z",
                    "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
                },
                "maintenanceExclusions": [
                    {
                        "exclusionName": "launch",
                        "startTime": "2030-03-01T00:00:00Z",
                        "endTime": "2030-03-20T00:00:00Z",
                        "exclusionOptions": {"scope": "NO_MINOR_UPGRADES"},
                    }
                ],
            },
            "nodePools": [{"name": "inline", "nodeCount": 1, "nodeConfig": {"machineType": "e2-medium"}}],
        }
    )

    assert cluster.network_config.datapath_provider.name == "ADVANCED_DATAPATH"
    assert cluster.network_config.enable_multi_networking is True
    assert cluster.network_config.dns_config.cluster_dns.name == "CLOUD_DNS"
    assert cluster.shielded_nodes.enabled is True
    assert cluster.default_max_pods_constraint.max_pods_per_node == 64
    assert [one.name for one in cluster.monitoring_config.component_config.enable_components] == [
        "SYSTEM_COMPONENTS",
        "DCGM",
    ]
    assert cluster.monitoring_config.managed_prometheus_config.enabled is True
    assert cluster.addons_config.ray_operator_config.enabled is True
    window = cluster.maintenance_policy.window
    assert window.recurring_window.window.end_time == datetime(2030, 1, 1, 8, tzinfo=UTC)
    exclusion = window.maintenance_exclusions["launch"]
    assert exclusion.maintenance_exclusion_options.scope.name == "NO_MINOR_UPGRADES"
    assert exclusion.end_time == datetime(2030, 3, 20, tzinfo=UTC)
    assert cluster.node_pools[0].config.machine_type == "e2-medium"


def test_values_that_are_not_known_yet_are_left_out_of_the_message() -> None:
    config = {"serviceAccount": UNKNOWN, "labels": {"a": UNKNOWN, "b": "c"}, "oauthScopes": [UNKNOWN], "tags": UNKNOWN}
    pool = node_pool_message({"cluster": UNKNOWN, "nodeCount": UNKNOWN, "nodeConfig": config})

    assert pool.config.service_account == ""
    assert pool.config.labels == {"b": "c"}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"nodeConfg": {}}, "nodePool.nodeConfg: the API's NodePool has no such field"),
        ({"nodeConfig": {"machineTyp": "x"}}, "nodePool.config.machineTyp: the API's NodeConfig has no such field"),
        ({"nodeConfig": {"machineType": 4}}, "nodePool.config.machineType: must be text"),
        ({"nodeConfig": {"diskSizeGb": "100"}}, "nodePool.config.diskSizeGb: must be a whole number"),
        ({"nodeConfig": {"diskSizeGb": 10.5}}, "nodePool.config.diskSizeGb: must be a whole number"),
        ({"nodeConfig": {"diskSizeGb": 2**40}}, "nodePool.config.diskSizeGb: 1099511627776 is out of range"),
        ({"nodeConfig": {"spot": "yes"}}, "nodePool.config.spot: must be true or false"),
        ({"nodeConfig": {"labels": {"a": 1}}}, 'nodePool.config.labels["a"]: must be text'),
        ({"nodeConfig": {"labels": ["a"]}}, "nodePool.config.labels: must be a mapping"),
        ({"nodeConfig": {"tags": "web"}}, "nodePool.config.tags: must be a list"),
        ({"nodeConfig": {"tags": [1]}}, "nodePool.config.tags[0]: must be text"),
        ({"nodeConfig": "small"}, "nodePool.config: must be a block of fields"),
        ({"nodeConfig": {"maxRunDuration": "a week"}}, "nodePool.config.maxRunDuration: must be a number of seconds"),
        (
            {"nodeConfig": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            "nodePool.config.taints[0].effect: 'NoSchedule' is not a valid Effect: use one of NO_SCHEDULE, PREFER",
        ),
        (
            {"nodeConfig": {"guestAccelerators": [{"gpuDriverInstallationConfig": {"gpuDriverVersion": "NEWEST"}}]}},
            "nodePool.config.accelerators[0].gpuDriverInstallationConfig.gpuDriverVersion: 'NEWEST' is not a valid "
            "GPUDriverVersion: use one of INSTALLATION_DISABLED, DEFAULT, LATEST",
        ),
        (
            {"placementPolicy": {"type": "TIGHT"}},
            "nodePool.placementPolicy.type: 'TIGHT' is not a valid Type: use one of COMPACT",
        ),
    ],
)
def test_a_wrong_field_is_reported_under_its_name_in_the_api(inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(Malformed, match=re.escape(message)):
        node_pool_message(inputs)


def test_every_wrong_field_is_reported() -> None:
    with pytest.raises(Malformed) as caught:
        cluster_message({"releaseChannel": {"channel": "FAST"}, "datapathProvider": "V2", "locations": 1, "network": 5})

    assert [field.path for field in caught.value.fields] == [
        "cluster.releaseChannel.channel",
        "cluster.networkConfig.datapathProvider",
        "cluster.locations",
        "cluster.network",
    ]
