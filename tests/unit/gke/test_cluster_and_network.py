"""The cluster, its network, and rules that involve them and the pools."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.gke.cluster import ClusterSpec
from persia_infra.gke.maintenance import Exclusion, format_utc
from persia_infra.gke.network import NetworkSpec, pod_addresses_per_node
from persia_infra.stack import parse_environment

Spoil = Callable[..., list[str]]
EXISTING = {"network": "shared", "subnet": "nodes", "podsRange": "pods", "servicesRange": "services"}
KEY = "projects/p/locations/{}/keyRings/r/cryptoKeys/k"
FREEZE = {"name": "launch", "start": "2030-01-01T00:00:00Z", "end": "2030-02-01T00:00:00Z", "scope": "NO_UPGRADES"}


@pytest.fixture
def description(description: dict[str, Any]) -> dict[str, Any]:
    """An environment without jobs, which nothing here depends on."""
    del description["jobs"]
    return description


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        # network
        (
            "network",
            {"nodesCidr": "10.0.0.0/30"},
            "network.nodesCidr: has addresses for 0 nodes, but the pools can grow",
        ),
        (
            "network",
            {"podsCidr": "10.4.0.0/23"},
            "network.podsCidr: has 512 addresses, but the pools' 4 nodes need 1024",
        ),
        ("network", {"podsCidr": "10.0.0.0/14"}, "network.podsCidr: overlaps nodesCidr"),
        (
            "network",
            {"existing": EXISTING, "podsCidr": "10.4.0.0/14"},
            "network.podsCidr: has no effect together",
        ),
        ("network", {"existing": {**EXISTING, "vpc": "n"}}, "network.existing.vpc: unknown key"),
        ("network", {"webhookPorts": [0]}, "network.webhookPorts[0]: must be greater than or equal to 1"),
        ("cluster/controlPlaneCidr", "10.8.0.0/28", "cluster.controlPlaneCidr: overlaps network.servicesCidr"),
        # cluster
        ("cluster/monitoring", {"managedPrometheus": False}, "cluster.monitoring.dcgm: needs managedPrometheus"),
        ("cluster/csiDrivers", ["GCS_FUSE", "GCS_FUSE"], "cluster.csiDrivers[1]: GCS_FUSE is listed twice"),
        ("cluster/csiDrivers", ["NFS"], "cluster.csiDrivers[0]: not one of the values it can have"),
        ("cluster/labels", {"Team": "ads"}, "cluster.labels.Team: is not a valid Google Cloud label"),
        ("cluster/labels", {"team": "Ads"}, "cluster.labels.team: is not a valid Google Cloud label"),
        ("cluster/secretsKey", "my-key", "cluster.secretsKey: is not a valid Cloud KMS key; write projects/"),
        ("cluster/secretsKey", KEY.format("global"), "cluster.secretsKey: is in global, but GKE accepts keys in the"),
        ("cluster/secretsKey", KEY.format("us-central10"), "cluster.secretsKey: is in us-central10, but GKE accepts"),
        ("cluster/notificationTopic", "upgrades", "cluster.notificationTopic: is not a valid Pub/Sub topic"),
        ("cluster/maintenance", {"start": "2am"}, "cluster.maintenance.start: is not a valid time of day"),
        ("cluster/maintenance", {"hours": 2}, "cluster.maintenance.hours: must be greater than or equal to 4"),
        ("cluster/maintenance", {"days": ["SA"]}, "cluster.maintenance.hours: leaves 24 hours for upgrades"),
        ("cluster/maintenance", {"days": []}, "cluster.maintenance.days: is empty"),
        (
            "cluster/maintenance",
            {"exclusions": [{**FREEZE, "end": "2029-02-01T00:00:00Z"}]},
            "cluster.maintenance.exclusions[0].end: is not after start",
        ),
        (
            "cluster/maintenance",
            {"exclusions": [{**FREEZE, "end": "2030-05-01T00:00:00Z"}]},
            "cluster.maintenance.exclusions[0].end: is more than 90 days after start",
        ),
        (
            "cluster/maintenance",
            {"exclusions": [FREEZE, FREEZE]},
            "cluster.maintenance.exclusions[1].name: 'launch' is used twice",
        ),
        (
            "cluster/maintenance",
            {"exclusions": [{**FREEZE, "name": str(number)} for number in range(4)]},
            "cluster.maintenance.exclusions[3].scope: GKE accepts at most 3 exclusions with NO_UPGRADES",
        ),
        # between pools and the rest
        (
            "pools/cpu",
            {"machineType": "n2-standard-8", "count": 0},
            "pools: no pool with nodes is free of taints, so GKE's own pods",
        ),
        (
            f"pools/{'a' * 25}",
            {"machineType": "n2-standard-8", "count": 1},
            f"pools.{'a' * 25}: the name has 25 characters",
        ),
        (
            "pools/cpu/networks",
            [{"network": "a", "subnet": "b"}],
            "pools.cpu.networks: needs a cluster with several networks",
        ),
        ("pools/cpu/networkProfile", "auto", "pools.cpu.networkProfile: needs a cluster with several networks"),
    ],
)
def test_refused_with_one_message_at_the_key_to_change(spoiled: Spoil, place: str, value: Any, line: str) -> None:
    (message,) = spoiled(place, value)

    assert message.startswith(f"f.yaml: environment.{line}")


def test_compact_placement_needs_one_zone(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["cluster"]["zones"] = ["us-central1-a", "us-central1-b"]
    description["pools"]["cpu"]["count"] = 2
    assert spoiled("pools/cpu/zones", ["us-central1-b"]) == []
    del description["pools"]["cpu"]["zones"]

    (message,) = spoiled("pools/cpu/compactPlacement", True)

    assert message == (
        "f.yaml: environment.pools.cpu.compactPlacement: needs a single zone, but the pool has 2, so GKE would "
        "refuse it; write zones: [us-central1-a]"
    )


def test_a_key_in_the_clusters_region_is_accepted(spoiled: Spoil) -> None:
    assert spoiled("cluster/secretsKey", KEY.format("us-central1")) == []


def test_the_dns_endpoint_needs_no_addresses(spoiled: Spoil, description: dict[str, Any]) -> None:
    del description["cluster"]["authorizedNetworks"]

    assert spoiled("cluster/dnsEndpoint", True) == []
    assert not parse_environment(description).cluster.reachable_by_address


@pytest.mark.parametrize(("pods", "addresses"), [(8, 16), (32, 64), (64, 128), (110, 256), (129, 512), (256, 512)])
def test_gke_sets_aside_twice_the_pods_rounded_up_to_a_power_of_two(pods: int, addresses: int) -> None:
    assert pod_addresses_per_node(pods) == addresses


def test_fewer_pods_per_node_leave_room_for_more_nodes(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["pools"] = {"cpu": {"machineType": "n2-standard-8", "count": 62, "maxPods": 32}}

    assert spoiled("network", {"podsCidr": "10.4.0.0/20"}) == []
    assert "need 16128 for their pods" in spoiled("pools/cpu/maxPods", 110)[0]


def test_blue_green_upgrades_need_addresses_for_both_sets(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["pools"] = {"cpu": {"machineType": "n2-standard-8", "count": 9}}
    assert spoiled("network", {"nodesCidr": "10.0.0.0/28"}) == []

    (message,) = spoiled("pools/cpu/upgrades", {"strategy": "BLUE_GREEN"})

    assert "has addresses for 12 nodes, but the pools can grow to 18 nodes in total during upgrades" in message
    assert message.endswith("widen it to a /27")


@pytest.mark.parametrize(("nodes", "prefix"), [(11, 28), (12, 27), (27, 27), (28, 26)])
def test_the_suggested_node_range_is_the_smallest_that_is_large_enough(
    spoiled: Spoil, description: dict[str, Any], nodes: int, prefix: int
) -> None:
    """One node more is created during an upgrade, and Google keeps four addresses."""
    description["pools"] = {"cpu": {"machineType": "n2-standard-8", "count": nodes}}

    (message,) = spoiled("network", {"nodesCidr": "10.0.0.0/29"})

    assert message.endswith(f"widen it to a /{prefix}")
    assert spoiled("network", {"nodesCidr": f"10.0.0.0/{prefix}"}) == []
    assert spoiled("network", {"nodesCidr": f"10.0.0.0/{prefix + 1}"}) != []


@pytest.mark.parametrize(("nodes", "prefix"), [(7, 21), (8, 20), (15, 20), (16, 19)])
def test_the_suggested_pod_range_is_the_smallest_that_is_large_enough(
    spoiled: Spoil, description: dict[str, Any], nodes: int, prefix: int
) -> None:
    """Each node takes 256 addresses, and one node more is created during an upgrade."""
    description["pools"] = {"cpu": {"machineType": "n2-standard-8", "count": nodes}}

    (message,) = spoiled("network", {"podsCidr": "10.4.0.0/24"})

    assert f"widen it to a /{prefix}, or lower the pools' maxPods" in message
    assert spoiled("network", {"podsCidr": f"10.4.0.0/{prefix}"}) == []
    assert spoiled("network", {"podsCidr": f"10.4.0.0/{prefix + 1}"}) != []


def test_nodes_that_gpu_pools_lose_during_upgrades_need_no_addresses(
    spoiled: Spoil, description: dict[str, Any]
) -> None:
    description["pools"] = {
        "cpu": {"machineType": "n2-standard-8", "count": 1},
        "gpu": {"machineType": "g2-standard-8", "autoscaling": {"max": 10}},
    }

    assert spoiled("network", {"nodesCidr": "10.0.0.0/28"}) == []


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_pool_with_a_taint_that_repels_pods_leaves_none_for_gke(spoiled: Spoil, effect: str) -> None:
    assert spoiled("pools/cpu/taints", [{"key": "team", "effect": "PreferNoSchedule"}]) == []

    (message,) = spoiled("pools/cpu/taints", [{"key": "team", "effect": effect}])

    assert message.startswith("f.yaml: environment.pools: no pool with nodes is free of taints")


def test_the_whole_internet_may_be_listed_if_the_cluster_is_open_to_it(
    spoiled: Spoil, description: dict[str, Any]
) -> None:
    description["cluster"]["openToInternet"] = True

    assert spoiled("cluster/authorizedNetworks", [{"cidr": "0.0.0.0/0"}]) == []


def test_ranges_that_together_are_the_whole_internet_are_refused(spoiled: Spoil) -> None:
    halves = [{"cidr": "0.0.0.0/1"}, {"cidr": "128.0.0.0/1"}]

    (message,) = spoiled("cluster/authorizedNetworks", halves)

    assert message.startswith("f.yaml: environment.cluster.authorizedNetworks: together these ranges are all addresses")
    assert spoiled("cluster/authorizedNetworks", halves[:1]) == []


def test_a_private_endpoint_has_no_name_that_the_internet_reaches(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["cluster"]["privateEndpoint"] = True

    (message,) = spoiled("cluster/dnsEndpoint", True)

    assert message.startswith("f.yaml: environment.cluster.dnsEndpoint: cannot be combined with privateEndpoint: true")


def test_a_freeze_of_ninety_days_and_a_longer_exclusion_of_minor_upgrades_are_accepted(spoiled: Spoil) -> None:
    exactly = {**FREEZE, "end": "2030-04-01T00:00:00Z"}
    longer = {**FREEZE, "name": "year", "end": "2031-01-01T00:00:00Z", "scope": "NO_MINOR_UPGRADES"}

    assert spoiled("cluster/maintenance", {"exclusions": [exactly, longer]}) == []


def test_an_exclusion_without_an_offset_is_in_utc() -> None:
    exclusion = Exclusion.model_validate({"name": "launch", "start": "2030-01-01T00:00:00", "end": "2030-02-01"})

    assert format_utc(exclusion.start) == "2030-01-01T00:00:00Z"
    assert exclusion.scope == "NO_MINOR_OR_NODE_UPGRADES"


def test_a_weekly_window_of_twelve_hours_is_long_enough(spoiled: Spoil) -> None:
    assert spoiled("cluster/maintenance", {"days": ["SA"], "hours": 12}) == []
    assert spoiled("cluster/maintenance", {"days": ["SA", "SA"], "hours": 11}) != []


def test_an_existing_network_keeps_its_own_ranges() -> None:
    assert NetworkSpec.model_validate({"existing": EXISTING}).ranges == {}


def test_the_maintenance_window_as_gke_writes_it() -> None:
    described = {"start": "22:30", "hours": 8, "days": ["MO", "WE"]}
    spec = ClusterSpec.model_validate({"zones": ["us-central1-a"], "dnsEndpoint": True, "maintenance": described})

    assert spec.maintenance.window == ("2024-01-01T22:30:00Z", "2024-01-02T06:30:00Z")
    assert spec.maintenance.recurrence == "FREQ=WEEKLY;BYDAY=MO,WE"


def test_apis_follow_the_options(description: dict[str, Any]) -> None:
    plain = parse_environment(description).required_apis
    assert plain == [
        f"{api}.googleapis.com"
        for api in (
            "artifactregistry",
            "cloudresourcemanager",
            "compute",
            "container",
            "iam",
            "logging",
            "monitoring",
        )
    ]

    description["cluster"] |= {"csiDrivers": ["FILESTORE", "LUSTRE"], "imageStreaming": True}
    more = set(parse_environment(description).required_apis) - set(plain)

    assert more == {"file.googleapis.com", "lustre.googleapis.com", "containerfilesystem.googleapis.com"}
    description["cluster"] |= {
        "csiDrivers": ["GCS_FUSE"],
        "imageStreaming": False,
        "secretsKey": KEY.format("us-central1"),
        "notificationTopic": "projects/p/topics/t",
    }
    more = set(parse_environment(description).required_apis) - set(plain)
    assert more == {"storage.googleapis.com", "cloudkms.googleapis.com", "pubsub.googleapis.com"}
    description["cluster"]["enableApis"] = False
    assert parse_environment(description).required_apis == []
