"""Network and cluster: what the components send to Google Cloud."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from persia_components import Cluster, Environment, Network

from persia_infra.gke.cluster import ClusterSpec
from persia_infra.gke.network import NetworkSpec
from persia_infra.stack import parse_environment

Record = Callable[..., Any]
NODE_ROLES = ("container.defaultNodeServiceAccount", "stackdriver.resourceMetadata.writer", "artifactregistry.reader")


def cluster(record: Record, name: str = "c", *, network_project: str | None = None, **fields: Any) -> Any:
    described = {"zones": ["us-central1-a", "us-central1-b"], "authorized_networks": [{"cidr": "203.0.113.0/24"}]}
    spec = ClusterSpec.model_validate({**described, **fields})
    return record(
        lambda: Cluster(
            name,
            spec,
            project="persia-example",
            region="us-central1",
            network_id="vpc",
            subnet_id="subnet",
            pods_range="pods",
            services_range="services",
            webhook_ports=[9443, 8443],
            network_project=network_project,
        )
    )


def test_a_network_has_a_subnet_for_nodes_and_reaches_the_internet_through_nat(record: Record) -> None:
    networks: list[Network] = []
    spec = NetworkSpec.model_validate({"nodesCidr": "10.1.0.0/22"})
    recording = record(lambda: networks.append(Network("n", spec, project="persia-example", region="us-central1")))

    subnet = recording.one("Subnetwork", "n-nodes").inputs
    assert subnet["privateIpGoogleAccess"] is True
    assert (subnet["ipCidrRange"], subnet["region"]) == ("10.1.0.0/22", "us-central1")
    assert subnet["network"] == "n-id"
    assert (networks[0].pods_range, networks[0].services_range) == ("pods", "services")
    assert recording.outputs["n"] == {"networkId": "n-id", "subnetId": "n-nodes-id"}
    assert {r.inputs["project"] for r in recording.all if r.custom} == {"persia-example"}
    nat = recording.one("RouterNat", "n-nat").inputs
    assert nat["sourceSubnetworkIpRangesToNat"] == "ALL_SUBNETWORKS_ALL_IP_RANGES"
    assert nat["natIpAllocateOption"] == "AUTO_ONLY"
    assert {r["rangeName"]: r["ipCidrRange"] for r in subnet["secondaryIpRanges"]} == {
        "pods": "10.4.0.0/14",
        "services": "10.8.0.0/20",
    }
    vpc = recording.one("compute/network:Network", "n").inputs
    assert vpc["autoCreateSubnetworks"] is False
    assert recording.one("RouterNat", "n-nat").inputs["router"] == "n-router-1a2b3c4"


def test_an_existing_network_is_used_and_nothing_is_created(record: Record) -> None:
    existing = {"network": "shared", "subnet": "nodes", "podsRange": "p", "servicesRange": "s", "project": "host-1"}
    spec = NetworkSpec.model_validate({"existing": existing})
    networks: list[Network] = []
    recording = record(lambda: networks.append(Network("n", spec, project="persia-example", region="us-central1")))

    assert [r.type for r in recording.all] == ["persia-infra:index:Network"]
    assert recording.outputs["n"] == {
        "networkId": "projects/host-1/global/networks/shared",
        "subnetId": "projects/host-1/regions/us-central1/subnetworks/nodes",
    }
    assert (networks[0].pods_range, networks[0].services_range) == ("p", "s")


def test_an_existing_network_belongs_to_the_own_project_unless_another_is_named(record: Record) -> None:
    existing = {"network": "shared", "subnet": "nodes", "podsRange": "p", "servicesRange": "s"}
    spec = NetworkSpec.model_validate({"existing": existing})
    recording = record(lambda: Network("n", spec, project="persia-example", region="us-central1"))

    assert recording.outputs["n"]["networkId"] == "projects/persia-example/global/networks/shared"


@pytest.mark.parametrize("host", [None, "host-1"])
def test_everything_but_the_firewall_rule_of_a_shared_vpc_is_in_the_environments_project(
    record: Record, description: dict[str, Any], host: str | None
) -> None:
    existing = {"network": "shared", "subnet": "nodes", "podsRange": "p", "servicesRange": "s", "project": host}
    description["network"] = {"existing": {key: value for key, value in existing.items() if value}}
    spec = parse_environment(description)

    recording = record(lambda: Environment("dev", spec))

    projects = {(r.name, r.inputs["project"]) for r in recording.all if r.custom and r.type.startswith("gcp:")}
    in_host = {name for name, project in projects if project == "host-1"}
    assert in_host == ({"dev-cluster-webhooks"} if host else set())
    assert {project for _, project in projects} == {"persia-example", *([host] if host else [])}
    inputs = recording.one("container/cluster:Cluster", "dev-cluster").inputs
    assert inputs["network"] == f"projects/{host or 'persia-example'}/global/networks/shared"
    assert inputs["ipAllocationPolicy"] == {"clusterSecondaryRangeName": "p", "servicesSecondaryRangeName": "s"}


def test_the_same_environment_always_sends_the_same_to_google_cloud(
    record: Record, description: dict[str, Any]
) -> None:
    description["cluster"]["labels"] = {"team": "ads", "env": "dev"}
    description["pools"]["gpu"] |= {"labels": {"b": "1", "a": "2"}, "driver": {"install": "INSTALLER"}}
    spec = parse_environment(description)

    def sent() -> dict[tuple[str, str], Any]:
        recording = record(lambda: Environment("dev", spec))
        return {(r.type, r.name): r.asked for r in recording.all if r.custom and r.type.startswith("gcp:")}

    first = sent()
    assert {"gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool"} <= {kind for kind, _ in first}
    assert sent() == first


class TestCluster:
    def test_private_shielded_and_without_a_default_pool(self, record: Record) -> None:
        registered = cluster(record).one("container/cluster:Cluster", "c")
        inputs = registered.inputs

        assert inputs["privateClusterConfig"] == {
            "enablePrivateNodes": True,
            "enablePrivateEndpoint": False,
            "masterIpv4CidrBlock": "172.16.0.0/28",
        }
        assert inputs["enableShieldedNodes"] is True
        assert inputs["workloadIdentityConfig"] == {"workloadPool": "persia-example.svc.id.goog"}
        assert inputs["datapathProvider"] == "ADVANCED_DATAPATH"
        assert inputs["masterAuthorizedNetworksConfig"] == {"cidrBlocks": [{"cidrBlock": "203.0.113.0/24"}]}
        assert (inputs["removeDefaultNodePool"], inputs["initialNodeCount"]) == (True, 1)
        assert inputs["deletionProtection"] is True
        assert inputs["nodeConfig"]["serviceAccount"] == "c-nodes@example.com"
        assert inputs["nodeConfig"]["shieldedInstanceConfig"]["enableSecureBoot"] is True
        assert (inputs["network"], inputs["subnetwork"]) == ("vpc", "subnet")
        assert inputs["ipAllocationPolicy"] == {
            "clusterSecondaryRangeName": "pods",
            "servicesSecondaryRangeName": "services",
        }
        assert {f"c-nodes-{role}" for role in NODE_ROLES} <= registered.depends_on
        assert {"nodeConfig", "initialNodeCount"} <= set(registered.ignored)

    def test_a_zonal_cluster_is_in_the_first_zone(self, record: Record) -> None:
        def where(**fields: Any) -> tuple[str, list[str] | None]:
            recording = cluster(record, **fields)
            inputs = recording.one("container/cluster:Cluster", "c").inputs
            return inputs["location"], inputs.get("nodeLocations")

        assert where() == ("us-central1", ["us-central1-a", "us-central1-b"])
        assert where(regional=False) == ("us-central1-a", ["us-central1-b"])
        assert where(regional=False, zones=["us-central1-a"]) == ("us-central1-a", None)

    def test_open_to_the_internet_leaves_the_list_out(self, record: Record) -> None:
        recording = cluster(record, authorized_networks=[], open_to_internet=True)
        inputs = recording.one("container/cluster:Cluster", "c").inputs

        assert "masterAuthorizedNetworksConfig" not in inputs
        assert inputs["privateClusterConfig"]["enablePrivateNodes"] is True

    def test_a_private_endpoint_keeps_an_empty_list(self, record: Record) -> None:
        """GKE wants the block whenever the endpoint is private."""
        recording = cluster(record, authorized_networks=[], private_endpoint=True)
        inputs = recording.one("container/cluster:Cluster", "c").inputs

        assert inputs["masterAuthorizedNetworksConfig"] == {"cidrBlocks": []}
        assert inputs["privateClusterConfig"]["enablePrivateEndpoint"] is True

    def test_kubeconfig_holds_no_credentials(self, record: Record) -> None:
        recording = cluster(record)
        kubeconfig = json.loads(recording.outputs["c"]["kubeconfig"])

        assert kubeconfig["clusters"][0]["cluster"] == {
            "server": "https://198.51.100.7",
            "certificate-authority-data": "Q0E=",
        }
        (user,) = kubeconfig["users"]
        assert set(user["user"]) == {"exec"}
        assert user["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"
        assert recording.one("kubernetes", "c-kubernetes").inputs["kubeconfig"] == recording.outputs["c"]["kubeconfig"]

    def test_webhooks_are_reached_from_the_control_plane_only(self, record: Record) -> None:
        rule = cluster(record).one("Firewall", "c-webhooks").inputs

        assert rule["sourceRanges"] == ["172.16.0.0/28"]
        assert (rule["direction"], rule["network"]) == ("INGRESS", "vpc")
        assert rule["project"] == "persia-example"
        assert rule["targetServiceAccounts"] == ["c-nodes@example.com"]
        assert rule["allows"] == [{"protocol": "tcp", "ports": ["8443", "9443"]}]

    def test_the_firewall_rule_is_in_the_project_of_the_network(self, record: Record) -> None:
        recording = cluster(record, network_project="host-1")

        assert recording.one("Firewall", "c-webhooks").inputs["project"] == "host-1"
        assert recording.one("container/cluster:Cluster", "c").inputs["project"] == "persia-example"
        assert recording.one("Account", "c-nodes").inputs["project"] == "persia-example"

    def test_monitoring_costs_and_maintenance_windows_by_default(self, record: Record) -> None:
        inputs = cluster(record).one("container/cluster:Cluster", "c").asked

        assert inputs["monitoringConfig"] == {
            "enableComponents": ["SYSTEM_COMPONENTS", "DCGM"],
            "managedPrometheus": {"enabled": True},
        }
        assert inputs["costManagementConfig"] == {"enabled": True}
        assert inputs["maintenancePolicy"]["recurringWindow"] == {
            "startTime": "2024-01-01T02:00:00Z",
            "endTime": "2024-01-01T08:00:00Z",
            "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
        }
        for key in ("databaseEncryption", "notificationConfig", "enableMultiNetworking", "controlPlaneEndpointsConfig"):
            assert key not in inputs

    def test_every_option_reaches_gke(self, record: Record) -> None:
        key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
        exclusion = {"name": "launch", "start": "2030-01-01T00:00:00+02:00", "end": "2030-02-01T00:00:00Z"}
        recording = cluster(
            record,
            release_channel="STABLE",
            multi_networking=True,
            csi_drivers=["FILESTORE", "LUSTRE"],
            secrets_key=key,
            notification_topic="projects/p/topics/t",
            cost_allocation=False,
            labels={"team": "ads"},
            maintenance={"exclusions": [exclusion]},
            monitoring={"managed_prometheus": False, "dcgm": False},
        )
        inputs = recording.one("container/cluster:Cluster", "c").inputs

        assert inputs["releaseChannel"] == {"channel": "STABLE"}
        assert inputs["enableMultiNetworking"] is True
        addons = {name: addon["enabled"] for name, addon in inputs["addonsConfig"].items()}
        assert addons == {
            "gcePersistentDiskCsiDriverConfig": True,
            "gcpFilestoreCsiDriverConfig": True,
            "gcsFuseCsiDriverConfig": False,
            "lustreCsiDriverConfig": True,
        }
        assert inputs["databaseEncryption"] == {"state": "ENCRYPTED", "keyName": key}
        assert inputs["notificationConfig"] == {"pubsub": {"enabled": True, "topic": "projects/p/topics/t"}}
        assert inputs["costManagementConfig"] == {"enabled": False}
        assert inputs["resourceLabels"] == {"team": "ads"}
        assert inputs["maintenancePolicy"]["maintenanceExclusions"] == [
            {
                "exclusionName": "launch",
                "startTime": "2029-12-31T22:00:00Z",
                "endTime": "2030-02-01T00:00:00Z",
                "exclusionOptions": {"scope": "NO_MINOR_OR_NODE_UPGRADES"},
            }
        ]
        assert inputs["monitoringConfig"]["enableComponents"] == ["SYSTEM_COMPONENTS"]

    def test_the_dns_endpoint_closes_the_address_and_needs_no_certificate(self, record: Record) -> None:
        recording = cluster(record, dns_endpoint=True, authorized_networks=[])
        inputs = recording.one("container/cluster:Cluster", "c").inputs

        assert recording.outputs["c"]["endpoint"] == "gke-1a2b.us-central1.gke.goog"
        kubeconfig = json.loads(recording.outputs["c"]["kubeconfig"])
        assert kubeconfig["clusters"][0]["cluster"] == {"server": "https://gke-1a2b.us-central1.gke.goog"}
        assert "masterAuthorizedNetworksConfig" not in inputs

    @pytest.mark.parametrize(("networks", "by_address"), [([], False), ([{"cidr": "203.0.113.0/24"}], True)])
    def test_the_dns_endpoint_leaves_listed_addresses_open(
        self, record: Record, networks: list[Any], by_address: bool
    ) -> None:
        recording = cluster(record, dns_endpoint=True, authorized_networks=networks)
        asked = recording.one("container/cluster:Cluster", "c").asked

        assert asked["controlPlaneEndpointsConfig"] == {
            "dnsEndpointConfig": {"allowExternalTraffic": True},
            "ipEndpointsConfig": {"enabled": by_address},
        }

    @pytest.mark.parametrize("protected", [True, False])
    def test_the_engine_protects_what_google_does(self, record: Record, protected: bool) -> None:
        recording = cluster(record, deletion_protection=protected).one("container/cluster:Cluster", "c")

        assert recording.protected is protected

    def test_nodes_get_three_roles_and_no_more(self, record: Record) -> None:
        grants = [r.inputs for r in cluster(record).all if r.type.endswith(":IAMMember")]

        assert sorted(grant["role"] for grant in grants) == [
            "roles/artifactregistry.reader",
            "roles/container.defaultNodeServiceAccount",
            "roles/stackdriver.resourceMetadata.writer",
        ]
        assert {grant["member"] for grant in grants} == {"serviceAccount:c-nodes@example.com"}

    @pytest.mark.parametrize(
        "name", ["c", "a" * 24, "a" * 25, "a-cluster-with-quite-a-long-name", "a-cluster-with-quite-a-long-word"]
    )
    def test_account_ids_are_legal_and_distinct(self, record: Record, name: str) -> None:
        account = cluster(record, name).one("Account", f"{name}-nodes").inputs["accountId"]

        assert 6 <= len(account) <= 30
        assert account.startswith(name[:17])
        if len(name) > 24:
            assert account != cluster(record, f"{name}s").one("Account", f"{name}s-nodes").inputs["accountId"]
