"""A PERSIA job as native workloads, held against what the PERSIA operator runs."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.kube_objects import Objects
from tests.support.persia_pods import container, env

CONFIGS = ["--embedding-config", "$(PERSIA_EMBEDDING_CONFIG)", "--global-config", "$(PERSIA_GLOBAL_CONFIG)"]
REPLICA = ["--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)"]
COMMON = [
    "PERSIA_EMBEDDING_CONFIG",
    "PERSIA_GLOBAL_CONFIG",
    "LOG_LEVEL",
    "RUST_BACKTRACE",
    "PERSIA_METRICS_GATEWAY_ADDR",
    "PERSIA_NATS_URL",
]


@pytest.mark.parametrize(
    ("role", "name", "image", "args"),
    [
        ("embedding-ps", "emb-server", "cpu", ["embedding-parameter-server", *CONFIGS, *REPLICA]),
        ("embedding-worker", "embedding-worker", "cpu", ["embedding-worker", *CONFIGS, *REPLICA]),
        (
            "nn-worker",
            "nn-worker",
            "cuda",
            [
                "nn-worker",
                "$(PERSIA_NN_WORKER_ENTRY)",
                "--nproc-per-node",
                "$(NPROC_PER_NODE)",
                "--nnodes",
                "$(REPLICA_SIZE)",
                "--node-rank",
                "$(REPLICA_INDEX)",
            ],
        ),
        ("dataloader", "data-loader", "cpu", ["data-loader", "$(PERSIA_DATALOADER_ENTRY)", *REPLICA]),
    ],
)
def test_roles_are_launched_as_the_operator_does(
    ads: Callable[..., Objects], role: str, name: str, image: str, args: list[str]
) -> None:
    found = container(ads(), role)

    assert found["command"] == ["persia-launcher"]
    assert found["args"] == args
    assert found["name"] == name
    assert found["image"] == f"persiaml/persia-{image}-runtime:latest"


def test_variables_come_in_the_operators_order(ads: Callable[..., Objects]) -> None:
    given = [{"name": "SHARED", "value": "a"}]
    job = ads(env=given, enableMetrics=False)

    assert list(env(job, "embedding-ps")) == [*COMMON, "SHARED", "REPLICA_INDEX", "REPLICA_SIZE"]
    assert list(env(job, "nn-worker"))[-4:] == [
        "REPLICA_INDEX",
        "REPLICA_SIZE",
        "NPROC_PER_NODE",
        "PERSIA_NN_WORKER_ENTRY",
    ]
    assert list(env(job, "dataloader"))[-1] == "PERSIA_DATALOADER_ENTRY"


def test_values_of_the_variables(ads: Callable[..., Objects]) -> None:
    found = env(ads(logLevel="debug"), "embedding-worker")

    assert found == {
        "PERSIA_EMBEDDING_CONFIG": "/data/embedding_config.yaml",
        "PERSIA_GLOBAL_CONFIG": "/data/global_config.yaml",
        "LOG_LEVEL": "debug",
        "RUST_BACKTRACE": "full",
        "PERSIA_METRICS_GATEWAY_ADDR": "ads-metrics-gateway-service:9091",
        "PERSIA_NATS_URL": "nats://ads-nats:4222",
        "REPLICA_INDEX": {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}},
        "REPLICA_SIZE": "3",
    }


def test_a_roles_variable_overrides_the_jobs_and_appears_once(
    ads: Callable[..., Objects], description: dict[str, Any]
) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "env": [{"name": "A", "value": "role"}]}
    job = ads(env=[{"name": "A", "value": "job"}, {"name": "LOG_LEVEL", "value": "warn"}], nnWorker=worker)

    names = [entry["name"] for entry in container(job, "nn-worker")["env"]]
    assert sorted(names) == sorted(set(names)), "server-side apply refuses a list with a name twice"
    assert env(job, "nn-worker")["A"] == "role"
    assert env(job, "dataloader")["A"] == "job"
    assert env(job, "dataloader")["LOG_LEVEL"] == "warn"


def test_variables_from_secrets_stay_references(ads: Callable[..., Objects]) -> None:
    job = ads(env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}])

    assert env(job, "dataloader")["TOKEN"] == {"secretKeyRef": {"name": "hub", "key": "token"}}


def test_pods_are_numbered_and_start_together(ads: Callable[..., Objects]) -> None:
    found = ads().body("StatefulSet", "ads-embedding-ps")

    assert found["metadata"]["name"] == "ads-embedding-ps", "its pods are then called as the operator calls them"
    assert found["spec"]["podManagementPolicy"] == "Parallel"
    assert found["spec"]["replicas"] == 2
    assert found["spec"]["serviceName"] == "ads-embedding-ps"


@pytest.mark.parametrize(
    ("role", "port"), [("embedding-ps", 8888), ("embedding-worker", 8887), ("nn-worker", 23456), ("dataloader", None)]
)
def test_each_role_has_a_headless_service_on_its_port(ads: Callable[..., Objects], role: str, port: int | None) -> None:
    job = ads()
    service = job.body("Service", f"ads-{role}")

    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert [entry["port"] for entry in service["spec"].get("ports", [])] == ([port] if port else [])
    assert job.body("PodDisruptionBudget", f"ads-{role}")["spec"]["maxUnavailable"] == 1


def test_servers_are_probed_on_their_port(ads: Callable[..., Objects]) -> None:
    job = ads()

    assert container(job, "embedding-ps")["readinessProbe"]["tcpSocket"] == {"port": "persia"}
    assert "readinessProbe" not in container(job, "nn-worker"), "it listens on rank 0 alone"


def test_several_nn_workers_know_the_first_one(ads: Callable[..., Objects], description: dict[str, Any]) -> None:
    worker = description["jobs"]["ads"]["nnWorker"]

    assert "MASTER_ADDR" not in env(ads(), "nn-worker")
    found = env(ads(nnWorker={**worker, "replicas": 2}), "nn-worker")
    assert found["MASTER_ADDR"] == found["PET_MASTER_ADDR"] == "ads-nn-worker-0.ads-nn-worker"


def test_roles_wait_for_nats_and_nothing_slower(ads: Callable[..., Objects]) -> None:
    needed = ads().needs("StatefulSet", "ads-nn-worker")

    assert {("Service", "ads-nats"), ("StatefulSet", "ads-nats"), ("Service", "ads-nn-worker")} <= needed
    assert not any("metrics" in name or "embedding" in name for _, name in needed)


def test_another_nats_is_used_as_it_is(ads: Callable[..., Objects]) -> None:
    job = ads(env=[{"name": "PERSIA_NATS_URL", "value": "nats://elsewhere:4222"}])

    assert not any("nats" in each.body["metadata"]["name"] for each in job.all)
    assert env(job, "dataloader")["PERSIA_NATS_URL"] == "nats://elsewhere:4222"
    assert job.group.outputs == {"natsUrl": "nats://elsewhere:4222"}


def test_metrics_gateway(ads: Callable[..., Objects]) -> None:
    job = ads()
    spec = job.body("Deployment", "ads-metrics-gateway")["spec"]["template"]["spec"]

    service = job.body("Service", "ads-metrics-gateway-service")
    assert service["metadata"]["name"] == "ads-metrics-gateway-service"
    assert service["spec"]["ports"][0]["port"] == 9091
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_metrics_can_be_turned_off(ads: Callable[..., Objects]) -> None:
    job = ads(enableMetrics=False)

    assert not job.names("Deployment")
    assert "ads-metrics-gateway-service" not in job.names("Service")


def test_absent_roles_are_not_run(ads: Callable[..., Objects]) -> None:
    job = ads(dataloader=None, embeddingWorker=None)

    assert job.names("StatefulSet") == {"ads-embedding-ps", "ads-nn-worker", "ads-nats"}


def test_pull_policy_and_images_can_be_chosen(ads: Callable[..., Objects], description: dict[str, Any]) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "image": "registry.example/persia:1"}
    job = ads(imagePullPolicy="IfNotPresent", nnWorker=worker)

    assert container(job, "nn-worker")["image"] == "registry.example/persia:1"
    assert container(job, "nn-worker")["imagePullPolicy"] == "IfNotPresent"
    assert "imagePullPolicy" not in container(ads(), "nn-worker")
