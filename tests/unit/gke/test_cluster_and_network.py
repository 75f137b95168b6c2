"""The cluster, its network and what holds between them and the pools."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.gke.cluster import ClusterSpec
from persia_infra.gke.network import NetworkSpec, pod_addresses_of_node
from persia_infra.stack import parse_environment

Spoil = Callable[..., list[str]]
EXISTING = {"network": "shared", "subnet": "nodes", "podsRange": "pods", "servicesRange": "services"}
KEY = "projects/p/locations/{}/keyRings/r/cryptoKeys/k"
FREEZE = {"name": "launch", "start": "2030-01-01T00:00:00Z", "end": "2030-02-01T00:00:00Z", "scope": "NO_UPGRADES"}


@pytest.fixture
def description(description: dict[str, Any]) -> dict[str, Any]:
    """Without jobs: nothing here depends on them."""
    del description["jobs"]
    return description


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        # network
        (
            "network",
            {"nodesCidr": "10.0.0.0/30"},
            "network.nodesCidr: has addresses for 0 nodes, but the pools may grow",
        ),
        (
            "network",
            {"podsCidr": "10.4.0.0/23"},
            "network.podsCidr: has 512 addresses, but the pools' 4 nodes take 1024",
        ),
        ("network", {"podsCidr": "10.0.0.0/14"}, "network.podsCidr: overlaps nodesCidr"),
        ("network", {"existing": EXISTING, "podsCidr": "10.4.0.0/14"}, "network.podsCidr: has no effect besides exist"),
        ("network", {"existing": {**EXISTING, "vpc": "n"}}, "network.existing.vpc: unknown key"),
        ("network", {"webhookPorts": [0]}, "network.webhookPorts[0]: must be greater than or equal to 1"),
        ("cluster/controlPlaneCidr", "10.8.0.0/28", "cluster.controlPlaneCidr: overlaps network.servicesCidr"),
        # cluster
        ("cluster/monitoring", {"managedPrometheus": False}, "cluster.monitoring.dcgm: needs managedPrometheus"),
        ("cluster/csiDrivers", ["GCS_FUSE", "GCS_FUSE"], "cluster.csiDrivers[1]: GCS_FUSE is given twice"),
        ("cluster/csiDrivers", ["NFS"], "cluster.csiDrivers[0]: not one of the values it can have"),
        ("cluster/labels", {"Team": "ads"}, "cluster.labels.Team: is no label of Google Cloud's"),
        ("cluster/labels", {"team": "Ads"}, "cluster.labels.team: is no label of Google Cloud's"),
        ("cluster/secretsKey", "my-key", "cluster.secretsKey: is no key; write projects/"),
        ("cluster/secretsKey", KEY.format("global"), "cluster.secretsKey: is in global, and GKE takes keys of the"),
        ("cluster/notificationTopic", "upgrades", "cluster.notificationTopic: is no Pub/Sub topic"),
        ("cluster/maintenance", {"start": "2am"}, "cluster.maintenance.start: is no time of day"),
        ("cluster/maintenance", {"hours": 2}, "cluster.maintenance.hours: must be greater than or equal to 4"),
        ("cluster/maintenance", {"days": ["SA"]}, "cluster.maintenance.hours: leaves 24 hours in four weeks"),
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
            "cluster.maintenance.exclusions[1].name: 'launch' is given twice",
        ),
        (
            "cluster/maintenance",
            {"exclusions": [{**FREEZE, "name": str(number)} for number in range(4)]},
            "cluster.maintenance.exclusions[3].scope: GKE takes 3 of NO_UPGRADES at most",
        ),
        # between pools and the rest
        ("pools/cpu", {"machineType": "n2-standard-8", "count": 0}, "pools: all have taints, so GKE's own pods"),
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
def test_refused(spoiled: Spoil, place: str, value: Any, line: str) -> None:
    (said,) = spoiled(place, value)

    assert said.startswith(f"f.yaml: environment.{line}")


def test_compact_placement_needs_one_zone(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["cluster"]["zones"] = ["us-central1-a", "us-central1-b"]
    description["pools"]["cpu"]["count"] = 2
    assert spoiled("pools/cpu/zones", ["us-central1-b"]) == []
    del description["pools"]["cpu"]["zones"]

    (said,) = spoiled("pools/cpu/compactPlacement", True)

    assert said == (
        "f.yaml: environment.pools.cpu.compactPlacement: needs a single zone, and the pool has 2, so GKE would "
        "refuse it; write zones: [us-central1-a]"
    )


def test_the_dns_endpoint_needs_no_addresses(spoiled: Spoil, description: dict[str, Any]) -> None:
    del description["cluster"]["authorizedNetworks"]

    assert spoiled("cluster/dnsEndpoint", True) == []
    assert not parse_environment(description).cluster.reachable_by_address


@pytest.mark.parametrize(("pods", "addresses"), [(8, 16), (32, 64), (64, 128), (110, 256), (129, 512), (256, 512)])
def test_addresses_of_a_nodes_pods(pods: int, addresses: int) -> None:
    assert pod_addresses_of_node(pods) == addresses


def test_fewer_pods_for_each_node_leave_room_for_more_nodes(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["pools"] = {"cpu": {"machineType": "n2-standard-8", "count": 62, "maxPods": 32}}

    assert spoiled("network", {"podsCidr": "10.4.0.0/20"}) == []
    assert "take 16128 for their pods" in spoiled("pools/cpu/maxPods", 110)[0]


def test_blue_green_upgrades_need_addresses_for_both_sets(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["pools"] = {"cpu": {"machineType": "n2-standard-8", "count": 9}}
    assert spoiled("network", {"nodesCidr": "10.0.0.0/28"}) == []

    (said,) = spoiled("pools/cpu/upgrades", {"strategy": "BLUE_GREEN"})

    assert (
        "has addresses for 12 nodes, but the pools may grow to 18 together, upgrades included; widen it to a /27"
        in said
    )


def test_an_existing_network_is_taken_as_it_is() -> None:
    assert NetworkSpec.model_validate({"existing": EXISTING}).ranges == {}


def test_the_maintenance_window_as_gke_writes_it() -> None:
    described = {"start": "22:30", "hours": 8, "days": ["MO", "WE"]}
    spec = ClusterSpec.model_validate({"zones": ["us-central1-a"], "dnsEndpoint": True, "maintenance": described})

    assert spec.maintenance.window == ("2024-01-01T22:30:00Z", "2024-01-02T06:30:00Z")
    assert spec.maintenance.recurrence == "FREQ=WEEKLY;BYDAY=MO,WE"


def test_apis_follow_the_options(description: dict[str, Any]) -> None:
    plain = parse_environment(description).required_apis
    assert {"compute.googleapis.com", "container.googleapis.com", "iam.googleapis.com"} <= set(plain)
    assert "file.googleapis.com" not in plain

    description["cluster"] |= {"csiDrivers": ["FILESTORE", "LUSTRE"], "imageStreaming": True}
    more = set(parse_environment(description).required_apis) - set(plain)

    assert more == {"file.googleapis.com", "lustre.googleapis.com", "containerfilesystem.googleapis.com"}
    description["cluster"]["enableApis"] = False
    assert parse_environment(description).required_apis == []
