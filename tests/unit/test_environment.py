"""What an environment refuses, and the line that says so."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.environment import EnvironmentSpec
from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment
from tests.support.environments import assert_refused

Spoil = Callable[..., list[str]]
JOB = "environment.jobs.ads"


def test_the_example_is_right(description: dict[str, Any]) -> None:
    spec = parse_environment(description)

    assert {role: place.pool for role, place in spec.placements("ads").items()} == {
        "embeddingParameterServer": "cpu",
        "embeddingWorker": "cpu",
        "nnWorker": "gpu",
        "dataloader": "cpu",
        "metricsGateway": "cpu",
        "nats": "cpu",
    }
    assert spec.namespace_of(spec.jobs["ads"]) == "training"


def test_secure_defaults(description: dict[str, Any]) -> None:
    cluster = parse_environment(description).cluster

    assert cluster.deletion_protection
    assert not cluster.open_to_internet
    assert cluster.regional


def test_both_spellings_mean_the_same(description: dict[str, Any]) -> None:
    camel = parse_environment(description)
    pools = description["pools"]
    pools["cpu"] = {"machine_type": "n2-standard-8", "count": 1}
    description["jobs"]["ads"]["nn_worker"] = description["jobs"]["ads"].pop("nnWorker")

    assert parse_environment(description) == camel


@pytest.mark.parametrize(
    "url", ["nats://ads-nats:4222", "ads-nats.training", "nats://ads-nats.training.svc.cluster.local:4222/"]
)
def test_two_persia_jobs_on_one_nats_are_refused(description: dict[str, Any], url: str) -> None:
    jobs = description["jobs"]
    jobs["news"] = jobs["ads"] | {"env": [{"name": "PERSIA_NATS_URL", "value": url}]}

    with pytest.raises(InputError, match=r"jobs\.news\.env: PERSIA_NATS_URL is also the NATS of the job ads"):
        parse_environment(description)


def test_two_persia_jobs_on_two_nats_are_fine(description: dict[str, Any]) -> None:
    jobs = description["jobs"]
    for name in ("news", "feed"):
        jobs[name] = jobs["ads"] | {"env": [{"name": "PERSIA_NATS_URL", "value": f"nats://{name}-bus:4222"}]}

    assert set(parse_environment(description).jobs) == {"ads", "news", "feed"}


def test_descriptions_cannot_be_changed(description: dict[str, Any]) -> None:
    spec = parse_environment(description)

    with pytest.raises(ValueError, match="frozen"):
        spec.region = "europe-west4"


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("project", "My Project", "environment.project: is not a valid project id; write the id"),
        ("region", "us-central1-a", "environment.region: is not a valid Google Cloud region"),
        ("regoin", "x", "environment.regoin: unknown key, which would have no effect; did you mean 'region'?"),
        ("cluster/zones", [], "environment.cluster.zones: is empty; give at least one"),
        ("cluster/zones/0", "us-central1", "environment.cluster.zones[0]: is not a valid Google Cloud zone"),
        ("cluster/zones/0", "europe-west4-a", "environment.cluster.zones[0]: europe-west4-a is not in the region us-"),
        ("cluster/zones", ["us-central1-a"] * 2, "environment.cluster.zones[1]: us-central1-a is listed twice"),
        ("cluster/authorizedNetworks", [], "environment.cluster.authorizedNetworks: is empty, so the whole internet"),
        (
            "cluster/authorizedNetworks/0/cidr",
            "0.0.0.0/0",
            "environment.cluster.authorizedNetworks[0].cidr: 0.0.0.0/0 lets the whole internet",
        ),
        (
            "cluster/authorizedNetworks/0/cidr",
            "10.0.0.1/8",
            "environment.cluster.authorizedNetworks[0].cidr: is not an IPv4 range",
        ),
        ("cluster/controlPlaneCidr", "172.16.0.0/24", "environment.cluster.controlPlaneCidr: must be a /28"),
        ("cluster/releaseChannel", "FAST", "environment.cluster.releaseChannel: not one of the values it can have"),
        ("cluster/regional", "perhaps", "environment.cluster.regional: must be true or false"),
        ("network/podsCidr", "10.0.0.0/14", "environment.network.podsCidr: overlaps nodesCidr"),
        (
            "network/podsCidr",
            "10.4.0.0/23",
            "environment.network.podsCidr: has 512 addresses, but the pools' 4 nodes need 1024",
        ),
        ("pools", {}, "environment.pools: is empty; give at least one"),
        ("pools/Big_One", {"machineType": "n2-standard-8", "count": 1}, "environment.pools.Big_One: 'Big_One' is no"),
        ("pools/cpu/machineType", "n2-standard-9", "environment.pools.cpu.machineType: machine type 'n2-standard-9'"),
        ("pools/cpu/machine_type", "x", "environment.pools.cpu.machine_type: is another spelling of 'machineType'"),
        ("pools/cpu/count", -1, "environment.pools.cpu.count: must be greater than or equal to 0"),
        (
            "pools/cpu/count",
            0,
            (
                "environment.pools: no pool with nodes is free of taints, so GKE's own pods",
                *(
                    f"{JOB}.{role}.pool: pool cpu has no nodes"
                    for role in ("embeddingParameterServer", "embeddingWorker", "dataloader", "enableMetrics", "nats")
                ),
            ),
        ),
        ("pools/cpu/count", None, "environment.pools.cpu.count: is missing and so is autoscaling"),
        ("pools/gpu/count", 1, "environment.pools.gpu.count: cannot be combined with autoscaling"),
        ("pools/gpu/autoscaling/min", 3, "environment.pools.gpu.autoscaling: min 3 is above max 2"),
        (
            "pools/cpu/zones",
            ["us-central1-a", "us-central1-b"],
            "environment.pools.cpu.count: 1 nodes cannot be spread",
        ),
        ("pools/cpu/zones", ["asia-east1-a"], "environment.pools.cpu.zones[0]: asia-east1-a is not in the region"),
        (
            "pools/cpu/labels",
            {"persia-infra/pool": "x"},
            "environment.pools.cpu.labels.persia-infra/pool: is set by Kubernetes, GKE or this library",
        ),
        ("pools/cpu/labels", {"cloud.google.com/x": "y"}, ()),
        ("namespaces", [], "environment.namespaces: is empty"),
        ("namespaces", ["a", "b"], f"{JOB}.namespace: is required, because the environment has several"),
        ("namespaces", ["a", "a"], "environment.namespaces[1]: 'a' is given twice"),
        ("namespaces", ["kube-system"], "environment.namespaces[0]: 'kube-system' belongs to Kubernetes or GKE"),
        ("jobs/ads/namespace", "elsewhere", f"{JOB}.namespace: 'elsewhere' is not among the environment's namespaces"),
        ("jobs/ads/kind", "MpiJob", f"{JOB}: has an unknown 'kind'; known: 'PersiaJob'"),
        ("jobs/ads", {}, f"{JOB}: has no 'kind'"),
        ("jobs/ads", "x", f"{JOB}: must be a mapping"),
        ("jobs/ads/embeddingWorker/pool", "cpus", f"{JOB}.embeddingWorker.pool: there is no pool 'cpus'"),
        ("jobs/ads/nats", {"pool": "cpus"}, f"{JOB}.nats.pool: there is no pool 'cpus'; write one of cpu, gpu"),
        (
            "jobs/ads/embeddingParameterServer/resources/limits/memory",
            "32Gi",
            f"{JOB}.embeddingParameterServer.resources: asks for 32.00Gi memory, but a n2-standard-8 node of pool cpu",
        ),
        (
            "jobs/ads/embeddingParameterServer/resources/limits/cpu",
            "8",
            f"{JOB}.embeddingParameterServer.resources: asks for 8 cpu, but a n2-standard-8 node of pool cpu offers "
            "pods 7910m, so it would stay Pending forever",
        ),
        (
            "jobs/ads/nnWorker/pool",
            "cpu",
            f"{JOB}.nnWorker.resources: asks for 1 nvidia.com/gpu, but a n2-standard-8 node of pool cpu offers pods",
        ),
    ],
)
def test_a_wrong_value_in_an_environment_is_refused_with_exactly_the_expected_lines(
    spoiled: Spoil, place: str, value: Any, line: str | tuple[str, ...]
) -> None:
    assert_refused(spoiled(place, value), line, prefix="f.yaml: ")


def test_a_missing_key_is_named(spoiled: Spoil) -> None:
    assert spoiled("cluster") == ["f.yaml: environment.cluster: is required and missing"]


def test_a_cluster_is_open_to_the_internet_only_on_request(description: dict[str, Any]) -> None:
    description["cluster"] = {"zones": ["us-central1-a"], "openToInternet": True}

    assert parse_environment(description).cluster.open_to_internet


def test_open_and_private_exclude_each_other(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["cluster"]["openToInternet"] = True

    (said,) = spoiled("cluster/privateEndpoint", True)

    assert said.startswith("f.yaml: environment.cluster.openToInternet: cannot be combined with privateEndpoint")


def test_a_private_endpoint_needs_no_authorized_networks(spoiled: Spoil, description: dict[str, Any]) -> None:
    del description["cluster"]["authorizedNetworks"]

    assert spoiled("cluster/privateEndpoint", True) == []


def test_a_role_that_several_pools_could_take_must_name_one(spoiled: Spoil) -> None:
    said = spoiled("pools/memory", {"machineType": "n2-highmem-8", "count": 1})

    assert (
        f"f.yaml: {JOB}.embeddingWorker.pool: is required, because there are several pools without GPUs; "
        in "".join(said)
    )
    assert any(f"{JOB}.nats.pool" in one for one in said)
    assert not any("nnWorker" in one or "enableMetrics" in one for one in said), "one GPU pool leaves no choice"


def test_a_role_with_gpus_without_a_gpu_pool_is_refused(spoiled: Spoil) -> None:
    (said,) = spoiled("pools/gpu")

    assert said == (
        f"f.yaml: {JOB}.nnWorker.pool: there is no pool with GPUs, so its pods would stay Pending; add one to pools"
    )


def test_a_role_needs_node_labels_with_the_values_that_it_selects(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["jobs"]["ads"]["embeddingWorker"]["nodeSelector"] = {"disk": "fast"}

    assert spoiled("pools/cpu/labels", {"disk": "fast"}) == []
    (message,) = spoiled("pools/cpu/labels", {"disk": "slow"})
    assert message.startswith(f"f.yaml: {JOB}.embeddingWorker.pool: ")
    assert "disk=fast" in message
    assert len(spoiled("pools/cpu/labels", {})) == 1


def test_a_role_without_replicas_may_be_on_a_pool_without_nodes(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["pools"]["idle"] = {"machineType": "n2-standard-8", "count": 0}
    for role in ("embeddingParameterServer", "embeddingWorker", "dataloader", "nats"):
        description["jobs"]["ads"].setdefault(role, {})["pool"] = "cpu"
    description["jobs"]["ads"]["embeddingWorker"]["pool"] = "idle"

    assert spoiled("jobs/ads/embeddingWorker/replicas", 0) == []
    (message,) = spoiled("jobs/ads/embeddingWorker/replicas", 1)
    assert message.startswith(f"f.yaml: {JOB}.embeddingWorker.pool: pool idle has no nodes")


def test_a_long_job_name_is_refused(spoiled: Spoil, description: dict[str, Any]) -> None:
    name = "a" * 36

    said = spoiled(f"jobs/{name}", description["jobs"]["ads"])

    assert any("the name has 36 characters" in one for one in said)


def test_pods_tolerate_the_taints_of_their_pool(description: dict[str, Any]) -> None:
    description["pools"]["cpu"]["taints"] = [{"key": "team", "value": "ads", "effect": "PreferNoSchedule"}]
    spec = parse_environment(description)

    placed = spec.placements("ads")

    assert [(taint.key, taint.effect) for taint in placed["embeddingWorker"].taints] == [("team", "PreferNoSchedule")]
    assert [(taint.key, taint.value) for taint in placed["nnWorker"].taints] == [("nvidia.com/gpu", "present")]
    assert placed["nnWorker"].node_selector == {"persia-infra/pool": "gpu"}


def test_all_problems_of_an_environment_are_reported_at_once(description: dict[str, Any]) -> None:
    description["pools"]["cpu"]["machineTyp"] = "x"
    description["jobs"]["ads"]["nnWorker"]["replicas"] = "many"
    description["cluster"]["authorizedNetworks"] = []

    with pytest.raises(InputError) as caught:
        parse_environment(description)

    assert [problem.path for problem in caught.value.problems] == [
        "environment.cluster.authorizedNetworks",
        "environment.pools.cpu.machineTyp",
        "environment.jobs.ads.nnWorker.replicas",
    ]


def test_no_value_of_the_input_is_repeated(description: dict[str, Any]) -> None:
    secret = "hunter2-hunter2"
    role = description["jobs"]["ads"]["nnWorker"]
    role["env"] = [{"name": "TOKEN", "value": {"hidden": secret}}, {"name": "TOKEN", "value": [secret]}]
    role["replicas"] = secret
    description["jobs"]["ads"]["globalConfig"] = [secret]
    description["jobs"]["ads"]["password"] = secret

    with pytest.raises(InputError) as caught:
        parse_environment(description)

    assert len(caught.value.problems) >= 5
    assert secret not in str(caught.value)
    assert "pydantic" not in str(caught.value)


def test_the_schema_can_be_written_as_json() -> None:
    assert "pools" in EnvironmentSpec.model_json_schema()["properties"]


def pod_job(**pod: Any) -> dict[str, Any]:
    """A job of one pod that meets the strictest Pod Security level, unless the given keys of its pod do not."""
    template = {"spec": {"containers": [{"name": "main", "image": "example/train:1"}], **pod}}
    return {"kind": "Job", "settings": {"run_as_user": 1000}, "template": template, "pool": "cpu"}


STRICT = pod_job()
BASELINE = pod_job(volumes=[{"name": "v", "nfs": {"server": "10.0.0.2", "path": "/x"}}])
PRIVILEGED = pod_job(volumes=[{"name": "v", "hostPath": {"path": "/x"}}])


@pytest.mark.parametrize(
    ("jobs", "level"),
    [
        ({}, "restricted"),
        ({"a": STRICT}, "restricted"),
        ({"a": STRICT, "b": BASELINE}, "baseline"),
        ({"a": BASELINE, "b": STRICT}, "baseline"),
        ({"a": PRIVILEGED, "b": BASELINE, "c": STRICT}, "privileged"),
        ({"a": STRICT, "b": BASELINE, "c": PRIVILEGED}, "privileged"),
    ],
)
def test_a_namespace_is_as_strict_as_all_of_its_jobs_allow(
    description: dict[str, Any], jobs: dict[str, Any], level: str
) -> None:
    assert parse_environment({**description, "jobs": jobs}).pod_security("training") == level


def test_a_job_does_not_loosen_the_namespaces_of_others(description: dict[str, Any]) -> None:
    description["namespaces"] = ["training", "research"]
    jobs = {"a": {**STRICT, "namespace": "training"}, "b": {**PRIVILEGED, "namespace": "research"}}

    spec = parse_environment({**description, "jobs": jobs})

    assert [spec.pod_security(namespace) for namespace in spec.namespaces] == ["restricted", "privileged"]
    assert [place for place, _ in spec.notes() if place[0] == "namespaces"] == [("namespaces", 1)]
