"""The simulated Google Cloud package: names, ids, outputs and changes."""

import pytest

from persia_infra.rehearsal.provider.cloud import Cloud
from persia_infra.rehearsal.provider.gcp import Gcp
from persia_infra.rehearsal.provider.package import UNKNOWN, Properties, ProviderError, Secret, Seed
from tests.support.fake_cloud import (
    ACCOUNT,
    CLUSTER,
    MEMBER,
    NETWORK,
    NODE_POOL,
    PRIVATE_CLUSTER,
    SUBNETWORK,
    FakeCluster,
    checked,
    create,
    update,
    urn,
)


def changes(gcp: Gcp, token: str, old: Properties, new: Properties) -> dict[str, str]:
    return dict(gcp.diff(urn(token), "id", old, {}, new).detailed)


# Names and checks


def test_an_automatic_name_has_the_form_of_pulumi_gcp_and_is_kept(gcp: Gcp) -> None:
    first = checked(gcp, NETWORK, {}, name="Main")
    name, _, ending = first["name"].rpartition("-")
    assert name == "main"
    assert len(ending) == 7
    assert int(ending, 16) >= 0
    again, _ = gcp.check(urn(NETWORK, "Main"), first, {}, b"another seed")
    assert again["name"] == first["name"]
    assert first["project"] == "demo"


def test_a_name_that_the_program_chose_stays_as_it_is(gcp: Gcp) -> None:
    assert checked(gcp, NETWORK, {"name": "vpc"})["name"] == "vpc"
    assert "name" not in checked(gcp, ACCOUNT, {"accountId": "nodes"})


def test_the_projects_own_naming_is_followed(gcp: Gcp) -> None:
    seed = Seed(b"seed")
    seed.proposed_name, seed.naming = "dev-Main", "enforce"
    assert gcp.check(urn(NETWORK), {}, {}, seed)[0]["name"] == "dev-Main"
    seed.naming = "disable"
    assert [failure.property for failure in gcp.check(urn(NETWORK), {}, {}, seed)[1]] == ["name"]


def test_an_unknown_property_is_refused_with_the_nearest(gcp: Gcp) -> None:
    _, failures = gcp.check(urn(NETWORK), {}, {"autoCreateSubnetwork": False}, b"seed")
    assert [failure.property for failure in failures] == ["autoCreateSubnetwork"]
    assert "did you mean 'autoCreateSubnetworks'" in failures[0].reason


def test_a_missing_project_is_refused_with_the_setting(cloud: Cloud) -> None:
    _, failures = Gcp(cloud).check(urn(NETWORK), {}, {"name": "vpc"}, b"seed")
    assert "pulumi config set gcp:project" in failures[0].reason


def test_a_type_that_the_sdk_does_not_have_is_refused(gcp: Gcp) -> None:
    with pytest.raises(ProviderError, match="gcp:compute/netwrk:Netwrk: the installed pulumi_gcp has no such type"):
        gcp.check(urn("gcp:compute/netwrk:Netwrk"), {}, {}, b"seed")


# Every type: ids, answers, life


@pytest.mark.parametrize(
    ("token", "inputs", "object_id"),
    [
        (NETWORK, {"name": "vpc"}, "projects/demo/global/networks/vpc"),
        (
            SUBNETWORK,
            {"name": "sub", "network": "vpc", "ipCidrRange": "10.0.0.0/20"},
            "projects/demo/regions/us-central1/subnetworks/sub",
        ),
        ("gcp:compute/router:Router", {"name": "r", "region": "us-east1"}, "projects/demo/regions/us-east1/routers/r"),
        ("gcp:compute/routerNat:RouterNat", {"name": "nat", "router": "r"}, "demo/us-central1/r/nat"),
        ("gcp:compute/firewall:Firewall", {"name": "f"}, "projects/demo/global/firewalls/f"),
        ("gcp:compute/address:Address", {"name": "a"}, "projects/demo/regions/us-central1/addresses/a"),
        ("gcp:compute/globalAddress:GlobalAddress", {"name": "a"}, "projects/demo/global/addresses/a"),
        (ACCOUNT, {"accountId": "nodes"}, "projects/demo/serviceAccounts/nodes@demo.iam.gserviceaccount.com"),
        (MEMBER, {"role": "roles/x", "member": "user:a"}, "demo/roles/x/user:a"),
        ("gcp:projects/service:Service", {"service": "container.googleapis.com"}, "demo/container.googleapis.com"),
        ("gcp:storage/bucket:Bucket", {"name": "data", "location": "US"}, "data"),
        (
            "gcp:artifactregistry/repository:Repository",
            {"repositoryId": "images", "format": "DOCKER", "location": "us"},
            "projects/demo/locations/us/repositories/images",
        ),
        (
            "gcp:filestore/instance:Instance",
            {"name": "nfs", "location": "us-central1-a", "tier": "BASIC_HDD"},
            "projects/demo/locations/us-central1-a/instances/nfs",
        ),
    ],
)
def test_ids_have_googles_form(gcp: Gcp, token: str, inputs: Properties, object_id: str) -> None:
    assert create(gcp, token, inputs)[0] == object_id


def test_computed_values_are_plausible(gcp: Gcp) -> None:
    _, network = create(gcp, NETWORK, {"name": "vpc"})
    assert network["selfLink"] == "https://www.googleapis.com/compute/v1/projects/demo/global/networks/vpc"
    _, subnetwork = create(gcp, SUBNETWORK, {"name": "s", "network": "vpc", "ipCidrRange": "10.0.16.0/20"})
    assert subnetwork["gatewayAddress"] == "10.0.16.1"
    assert subnetwork["region"] == "us-central1"
    _, account = create(gcp, ACCOUNT, {"accountId": "nodes"})
    assert account["email"] == "nodes@demo.iam.gserviceaccount.com"
    assert account["member"] == "serviceAccount:nodes@demo.iam.gserviceaccount.com"
    assert account["uniqueId"].isdigit()
    _, address = create(gcp, "gcp:compute/address:Address", {"name": "a"})
    assert len(address["address"].split(".")) == 4


def test_a_service_account_key_is_secret(gcp: Gcp) -> None:
    _, key = create(gcp, "gcp:serviceaccount/key:Key", {"serviceAccountId": "nodes"})
    assert isinstance(key["privateKey"], Secret)


def test_a_preview_creates_nothing_and_returns_unknown_values(gcp: Gcp, cloud: Cloud, cluster: FakeCluster) -> None:
    inputs = {**checked(gcp, CLUSTER, PRIVATE_CLUSTER), "masterAuth": {"clientCertificateConfig": {}}}
    object_id, outputs = gcp.create(urn(CLUSTER), inputs, preview=True, timeout=0)
    assert object_id == ""
    assert outputs["endpoint"] is outputs["masterVersion"] is outputs["masterAuth"]["clusterCaCertificate"] is UNKNOWN
    assert outputs["name"] == "train"
    pool = {"cluster": UNKNOWN, "nodeCount": 3, "nodeConfig": {"serviceAccount": UNKNOWN}}
    _, previewed = gcp.create(urn(NODE_POOL), checked(gcp, NODE_POOL, pool), preview=True, timeout=0)
    assert previewed["instanceGroupUrls"] is UNKNOWN
    assert cloud.of_type(CLUSTER) == cloud.of_type(NODE_POOL) == []
    assert cluster.stored == {}


def test_creating_what_exists_is_refused_with_the_command_to_import_it(gcp: Gcp) -> None:
    create(gcp, NETWORK, {"name": "vpc"})
    with pytest.raises(
        ProviderError, match=r"networks/vpc.*409.*another name.*pulumi import gcp:compute/network:Network"
    ):
        create(gcp, NETWORK, {"name": "vpc"})


def test_the_same_grant_may_be_created_twice(gcp: Gcp) -> None:
    grant = {"role": "roles/x", "member": "user:a"}
    assert create(gcp, MEMBER, grant)[0] == create(gcp, MEMBER, grant)[0]


def test_all_providers_of_a_rehearsal_see_the_same_cloud(gcp: Gcp, cloud: Cloud) -> None:
    object_id, outputs = create(gcp, NETWORK, {"name": "vpc"})
    other = Gcp(cloud)
    read = other.read(urn(NETWORK), object_id, {}, {})
    assert read is not None
    assert read[0]["name"] == "vpc"
    assert read[1] == outputs
    assert cloud.of_type(NETWORK) == [object_id]
    other.delete(urn(NETWORK), object_id, {}, outputs, timeout=1)
    assert gcp.read(urn(NETWORK), object_id, {}, {}) is None
    gcp.delete(urn(NETWORK), object_id, {}, outputs, timeout=1)


def test_an_update_changes_what_was_asked_and_keeps_the_rest(gcp: Gcp) -> None:
    object_id, before = create(gcp, SUBNETWORK, {"name": "s", "network": "vpc", "ipCidrRange": "10.0.16.0/20"})
    after = update(gcp, SUBNETWORK, object_id, {"name": "s", "network": "vpc", "ipCidrRange": "10.0.0.0/16"})
    assert after["ipCidrRange"] == "10.0.0.0/16"
    assert after["selfLink"] == before["selfLink"]


def test_an_update_keeps_the_time_of_creation(gcp: Gcp) -> None:
    inputs = {"name": "s", "network": "vpc", "ipCidrRange": "10.0.16.0/20"}
    object_id, before = create(gcp, SUBNETWORK, inputs)
    outputs = {**before, "creationTimestamp": "2020-01-01T00:00:00Z"}
    after = gcp.update(urn(SUBNETWORK), object_id, inputs, outputs, inputs, preview=False, timeout=1)
    assert after["creationTimestamp"] == "2020-01-01T00:00:00Z"


def test_a_network_of_the_same_name_in_another_project_is_another_network(gcp: Gcp) -> None:
    def subnetwork(project: str) -> Properties:
        return {"name": "s", "ipCidrRange": "10.0.0.0/20", "network": f"projects/{project}/global/networks/vpc"}

    assert changes(gcp, SUBNETWORK, subnetwork("a"), subnetwork("b")) == {"network": "update-replace"}
    assert changes(gcp, SUBNETWORK, subnetwork("a"), {**subnetwork("a"), "network": "vpc"}) == {}


def test_an_update_of_a_deleted_resource_asks_for_a_refresh(gcp: Gcp) -> None:
    with pytest.raises(ProviderError, match=r"networks/gone.*404.*pulumi refresh"):
        gcp.update(
            urn(NETWORK), "projects/demo/global/networks/gone", {}, {}, {"name": "gone"}, preview=False, timeout=1
        )


def test_a_network_stays_while_it_has_a_subnetwork(gcp: Gcp) -> None:
    network, outputs = create(gcp, NETWORK, {"name": "vpc"})
    inside, _ = create(gcp, SUBNETWORK, {"name": "s", "network": outputs["selfLink"], "ipCidrRange": "10.0.0.0/20"})
    with pytest.raises(ProviderError, match=rf"networks/vpc.*in use by {inside}"):
        gcp.delete(urn(NETWORK), network, {}, outputs, timeout=1)
    gcp.delete(urn(SUBNETWORK), inside, {}, {}, timeout=1)
    gcp.delete(urn(NETWORK), network, {}, outputs, timeout=1)


@pytest.mark.parametrize(("policy", "stays"), [("ABANDON", True), ("DELETE", False)])
def test_deletion_policies(gcp: Gcp, policy: str, stays: bool) -> None:
    object_id, outputs = create(gcp, NETWORK, {"name": "vpc", "deletionPolicy": policy})
    gcp.delete(urn(NETWORK), object_id, {}, outputs, timeout=1)
    assert (gcp.read(urn(NETWORK), object_id, {}, {}) is not None) is stays


def test_a_prevented_deletion_is_refused_with_the_fix(gcp: Gcp) -> None:
    object_id, outputs = create(gcp, NETWORK, {"name": "vpc", "deletionPolicy": "PREVENT"})
    with pytest.raises(ProviderError, match=r"PREVENT: set it to DELETE"):
        gcp.delete(urn(NETWORK), object_id, {}, outputs, timeout=1)


# What replaces, what updates


@pytest.mark.parametrize(
    ("token", "old", "new", "expected"),
    [
        (NODE_POOL, {"nodeCount": 1}, {"nodeCount": 2}, {"nodeCount": "update"}),
        (NODE_POOL, {"initialNodeCount": 1}, {"initialNodeCount": 2}, {"initialNodeCount": "update-replace"}),
        (NODE_POOL, {"maxPodsPerNode": 32}, {}, {"maxPodsPerNode": "delete-replace"}),
        (NODE_POOL, {}, {"placementPolicy": {"type": "COMPACT"}}, {"placementPolicy.type": "add-replace"}),
        (
            NODE_POOL,
            {"nodeConfig": {"machineType": "e2-standard-4", "diskSizeGb": 100, "labels": {"a/b": "1"}}},
            {"nodeConfig": {"machineType": "e2-standard-8", "diskSizeGb": 200, "labels": {"a/b": "2"}}},
            {
                "nodeConfig.machineType": "update",
                "nodeConfig.diskSizeGb": "update",
                'nodeConfig.labels["a/b"]': "update",
            },
        ),
        (
            NODE_POOL,
            {"nodeConfig": {"guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]}},
            {"nodeConfig": {"guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 2}]}},
            {"nodeConfig.guestAccelerators[0].count": "update-replace"},
        ),
        (NODE_POOL, {"nodeConfig": {}}, {"nodeConfig": {"spot": True}}, {"nodeConfig.spot": "add-replace"}),
        (
            NODE_POOL,
            {"nodeConfig": {"taints": []}},
            {"nodeConfig": {"taints": [{"key": "k"}]}},
            {"nodeConfig.taints[0]": "add"},
        ),
        (CLUSTER, {"deletionProtection": True}, {"deletionProtection": False}, {"deletionProtection": "update"}),
        (CLUSTER, {"location": "us-central1"}, {"location": "us-east1"}, {"location": "update-replace"}),
        (
            CLUSTER,
            {"privateClusterConfig": {"enablePrivateNodes": True, "enablePrivateEndpoint": True}},
            {"privateClusterConfig": {"enablePrivateNodes": False, "enablePrivateEndpoint": False}},
            {
                "privateClusterConfig.enablePrivateNodes": "update-replace",
                "privateClusterConfig.enablePrivateEndpoint": "update",
            },
        ),
        (CLUSTER, {"network": "vpc"}, {"network": "projects/demo/global/networks/vpc"}, {}),
        (
            CLUSTER,
            {"network": "vpc"},
            {"network": "projects/demo/global/networks/other"},
            {"network": "update-replace"},
        ),
        (NETWORK, {"description": "a"}, {"description": None}, {"description": "delete"}),
        (SUBNETWORK, {"ipCidrRange": "10.0.0.0/20"}, {"ipCidrRange": "10.0.0.0/16"}, {"ipCidrRange": "update"}),
        (SUBNETWORK, {"ipCidrRange": "10.0.0.0/16"}, {"ipCidrRange": "10.0.0.0/20"}, {"ipCidrRange": "update-replace"}),
        (MEMBER, {"role": "roles/a"}, {"role": "roles/b"}, {"role": "update-replace"}),
        (NODE_POOL, {"cluster": "train"}, {"cluster": UNKNOWN}, {"cluster": "update-replace"}),
        (NETWORK, {"name": "vpc", "__defaults": []}, {"name": "vpc", "__defaults": ["project"]}, {}),
    ],
)
def test_changes_are_updates_or_replacements_as_in_pulumi_gcp(
    gcp: Gcp, token: str, old: Properties, new: Properties, expected: dict[str, str]
) -> None:
    assert changes(gcp, token, old, new) == expected


def test_equal_inputs_are_not_a_change(gcp: Gcp) -> None:
    inputs = checked(gcp, CLUSTER, PRIVATE_CLUSTER)
    assert changes(gcp, CLUSTER, inputs, checked(gcp, CLUSTER, PRIVATE_CLUSTER, olds=inputs)) == {}


def test_a_chosen_name_is_freed_before_the_replacement_is_created(gcp: Gcp) -> None:
    def first_deletes(inputs: Properties) -> bool:
        old = checked(gcp, NODE_POOL, {**inputs, "initialNodeCount": 1})
        new = checked(gcp, NODE_POOL, {**inputs, "initialNodeCount": 2}, olds=old)
        return gcp.diff(urn(NODE_POOL), "id", old, {}, new).delete_before_replace

    assert first_deletes({"cluster": "train", "name": "workers"})
    assert gcp.diff(urn(NETWORK), "id", {"name": "a"}, {}, {"name": "b"}).delete_before_replace is False


# Lookups


def test_common_lookups_are_answered(gcp: Gcp) -> None:
    versions = gcp.invoke("gcp:container/getEngineVersions:getEngineVersions", {"location": "us-central1"})
    assert versions["latestMasterVersion"] == versions["releaseChannelLatestVersion"]["STABLE"] == "1.36.3-gke.1000"
    project = gcp.invoke("gcp:organizations/getProject:getProject", {})
    assert project["projectId"] == "demo"
    assert len(project["number"]) == 12
    settings = gcp.invoke("gcp:organizations/getClientConfig:getClientConfig", {})
    assert (settings["project"], settings["region"]) == ("demo", "us-central1")
    zones = gcp.invoke("gcp:compute/getZones:getZones", {"region": "us-east1"})
    assert zones["names"] == ["us-east1-b", "us-east1-c", "us-east1-d"]


def test_other_lookups_are_refused_with_an_alternative(gcp: Gcp) -> None:
    with pytest.raises(ProviderError, match=r"gcp:compute/getImage:getImage: .*as configuration"):
        gcp.invoke("gcp:compute/getImage:getImage", {})
