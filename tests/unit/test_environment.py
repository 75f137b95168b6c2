"""What an environment refuses, and the line that says so."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.environment import EnvironmentSpec
from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment

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

    with pytest.raises(InputError, match=r"jobs\.news\.env: PERSIA_NATS_URL names the NATS of the job ads too"):
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
        ("project", "My Project", "environment.project: is no project id; write the id"),
        ("region", "us-central1-a", "environment.region: is no Google Cloud region"),
        ("regoin", "x", "environment.regoin: unknown key, which would have no effect; did you mean 'region'?"),
        ("cluster/zones", [], "environment.cluster.zones: is empty; give at least one"),
        ("cluster/zones/0", "us-central1", "environment.cluster.zones[0]: is no Google Cloud zone"),
        ("cluster/zones/0", "europe-west4-a", "environment.cluster.zones[0]: europe-west4-a is not in the region us-"),
        ("cluster/zones", ["us-central1-a"] * 2, "environment.cluster.zones[1]: us-central1-a is given twice"),
        ("cluster/authorizedNetworks", [], "environment.cluster.authorizedNetworks: is empty, so the whole internet"),
        (
            "cluster/authorizedNetworks/0/cidr",
            "0.0.0.0/0",
            "environment.cluster.authorizedNetworks[0].cidr: 0.0.0.0/0 lets the whole internet",
        ),
        (
            "cluster/authorizedNetworks/0/cidr",
            "10.0.0.1/8",
            "environment.cluster.authorizedNetworks[0].cidr: not an IPv4 range",
        ),
        ("cluster/controlPlaneCidr", "172.16.0.0/24", "environment.cluster.controlPlaneCidr: GKE takes a /28"),
        ("cluster/releaseChannel", "FAST", "environment.cluster.releaseChannel: not one of the values it can have"),
        ("cluster/regional", "perhaps", "environment.cluster.regional: must be true or false"),
        ("network/podsCidr", "10.0.0.0/14", "environment.network.podsCidr: overlaps nodesCidr"),
        (
            "network/podsCidr",
            "10.4.0.0/23",
            "environment.network.podsCidr: has 512 addresses, but the pools' 4 nodes take 1024",
        ),
        ("pools", {}, "environment.pools: is empty; give at least one"),
        ("pools/Big_One", {"machineType": "n2-standard-8", "count": 1}, "environment.pools.Big_One: 'Big_One' is no"),
        ("pools/cpu/machineType", "n2-standard-9", "environment.pools.cpu.machineType: machine type 'n2-standard-9'"),
        ("pools/cpu/machine_type", "x", "environment.pools.cpu.machine_type: is 'machineType' in its other spelling"),
        ("pools/cpu/count", -1, "environment.pools.cpu.count: must be greater than or equal to 0"),
        ("pools/cpu/count", 0, "environment.jobs.ads.embeddingParameterServer.pool: pool cpu has no nodes"),
        ("pools/cpu/count", None, "environment.pools.cpu.count: is missing and so is autoscaling"),
        ("pools/gpu/count", 1, "environment.pools.gpu.count: is given besides autoscaling"),
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
            "environment.pools.cpu.labels.persia-infra/pool: is set by others",
        ),
        ("pools/cpu/labels", {"cloud.google.com/x": "y"}, None),
        ("namespaces", [], "environment.namespaces: is empty"),
        ("namespaces", ["a", "b"], f"{JOB}.namespace: is needed, because the environment has several"),
        ("namespaces", ["a", "a"], "environment.namespaces[1]: 'a' is given twice"),
        ("namespaces", ["kube-system"], "environment.namespaces[0]: 'kube-system' belongs to Kubernetes or GKE"),
        ("jobs/ads/namespace", "elsewhere", f"{JOB}.namespace: 'elsewhere' is not among the environment's namespaces"),
        ("jobs/ads/kind", "MpiJob", f"{JOB}: is of an unknown 'kind'; known: 'PersiaJob'"),
        ("jobs/ads", {}, f"{JOB}: says no 'kind'"),
        ("jobs/ads", "x", f"{JOB}: must be a mapping"),
        ("jobs/ads/embeddingWorker/pool", "cpus", f"{JOB}.embeddingWorker.pool: no pool 'cpus' is described"),
        ("jobs/ads/nats", {"pool": "cpus"}, f"{JOB}.nats.pool: no pool 'cpus' is described; write one of cpu, gpu"),
        (
            "jobs/ads/embeddingParameterServer/resources/limits/memory",
            "32Gi",
            f"{JOB}.embeddingParameterServer.resources: asks for 32.00Gi memory, but a n2-standard-8 node of pool cpu",
        ),
        (
            "jobs/ads/embeddingParameterServer/resources/limits/cpu",
            "8",
            f"{JOB}.embeddingParameterServer.resources: asks for 8 cpu, but a n2-standard-8 node of pool cpu gives "
            "pods 7910m, so it would stay Pending for ever",
        ),
        (
            "jobs/ads/nnWorker/pool",
            "cpu",
            f"{JOB}.nnWorker.resources: asks for 1 nvidia.com/gpu, but a n2-standard-8 node of pool cpu gives pods",
        ),
    ],
)
def test_refused(spoiled: Spoil, place: str, value: Any, line: str | None) -> None:
    said = spoiled(place, value)

    if line is None:
        assert said == []
    else:
        assert any(one.startswith(f"f.yaml: {line}") for one in said), said


def test_a_missing_key_is_named(spoiled: Spoil) -> None:
    assert spoiled("cluster") == ["f.yaml: environment.cluster: is required and missing"]


def test_an_open_cluster_has_to_be_said(description: dict[str, Any]) -> None:
    description["cluster"] = {"zones": ["us-central1-a"], "openToInternet": True}

    assert parse_environment(description).cluster.open_to_internet


def test_open_and_private_exclude_each_other(spoiled: Spoil, description: dict[str, Any]) -> None:
    description["cluster"]["openToInternet"] = True

    (said,) = spoiled("cluster/privateEndpoint", True)

    assert said.startswith("f.yaml: environment.cluster.openToInternet: cannot hold together with privateEndpoint")


def test_a_private_endpoint_needs_no_authorized_networks(spoiled: Spoil, description: dict[str, Any]) -> None:
    del description["cluster"]["authorizedNetworks"]

    assert spoiled("cluster/privateEndpoint", True) == []


def test_the_choice_between_pools_is_asked_for(spoiled: Spoil) -> None:
    said = spoiled("pools/memory", {"machineType": "n2-highmem-8", "count": 1})

    assert (
        f"f.yaml: {JOB}.embeddingWorker.pool: is needed, because several pools without GPUs could take it; "
        in "".join(said)
    )
    assert any(f"{JOB}.nats.pool" in one for one in said)
    assert not any("nnWorker" in one or "enableMetrics" in one for one in said), "one GPU pool leaves no choice"


def test_a_missing_gpu_pool_is_said(spoiled: Spoil) -> None:
    (said,) = spoiled("pools/gpu")

    assert said == (
        f"f.yaml: {JOB}.nnWorker.pool: no pool with GPUs is there for it, so its pods would stay Pending; "
        "add one to pools"
    )


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


def test_every_problem_is_said_at_once(description: dict[str, Any]) -> None:
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
