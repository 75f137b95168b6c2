"""A PERSIA job as native workloads, held against what the PERSIA operator runs."""

from collections.abc import Callable
from typing import Any

import pytest

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
    run_ads: Callable[..., Any], role: str, name: str, image: str, args: list[str]
) -> None:
    found = container(run_ads(), role)

    assert found["command"] == ["persia-launcher"]
    assert found["args"] == args
    assert found["name"] == name
    assert found["image"] == f"persiaml/persia-{image}-runtime:latest"


def test_variables_come_in_the_operators_order(run_ads: Callable[..., Any]) -> None:
    given = [{"name": "SHARED", "value": "a"}]
    recording = run_ads(env=given, enableMetrics=False)

    assert list(env(recording, "embedding-ps")) == [*COMMON, "SHARED", "REPLICA_INDEX", "REPLICA_SIZE"]
    assert list(env(recording, "nn-worker"))[-4:] == [
        "REPLICA_INDEX",
        "REPLICA_SIZE",
        "NPROC_PER_NODE",
        "PERSIA_NN_WORKER_ENTRY",
    ]
    assert list(env(recording, "dataloader"))[-1] == "PERSIA_DATALOADER_ENTRY"


def test_values_of_the_variables(run_ads: Callable[..., Any]) -> None:
    found = env(run_ads(logLevel="debug"), "embedding-worker")

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
    run_ads: Callable[..., Any], description: dict[str, Any]
) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "env": [{"name": "A", "value": "role"}]}
    recording = run_ads(env=[{"name": "A", "value": "job"}, {"name": "LOG_LEVEL", "value": "warn"}], nnWorker=worker)

    names = [entry["name"] for entry in container(recording, "nn-worker")["env"]]
    assert sorted(names) == sorted(set(names)), "server-side apply refuses a list with a name twice"
    assert env(recording, "nn-worker")["A"] == "role"
    assert env(recording, "dataloader")["A"] == "job"
    assert env(recording, "dataloader")["LOG_LEVEL"] == "warn"


def test_variables_from_secrets_stay_references(run_ads: Callable[..., Any]) -> None:
    recording = run_ads(env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}])

    assert env(recording, "dataloader")["TOKEN"] == {"secretKeyRef": {"name": "hub", "key": "token"}}


def test_pods_are_numbered_and_start_together(run_ads: Callable[..., Any]) -> None:
    found = run_ads().one("StatefulSet", "dev-ads-embedding-ps").inputs

    assert found["metadata"]["name"] == "ads-embedding-ps", "its pods are then called as the operator calls them"
    assert found["spec"]["podManagementPolicy"] == "Parallel"
    assert found["spec"]["replicas"] == 2
    assert found["spec"]["serviceName"] == "ads-embedding-ps"


@pytest.mark.parametrize(
    ("role", "port"), [("embedding-ps", 8888), ("embedding-worker", 8887), ("nn-worker", 23456), ("dataloader", None)]
)
def test_each_role_has_a_headless_service_on_its_port(run_ads: Callable[..., Any], role: str, port: int | None) -> None:
    recording = run_ads()
    service = recording.one("Service", f"dev-ads-{role}").inputs

    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert [entry["port"] for entry in service["spec"].get("ports", [])] == ([port] if port else [])
    assert recording.one("PodDisruptionBudget", f"dev-ads-{role}").inputs["spec"]["maxUnavailable"] == 1


def test_servers_are_probed_on_their_port(run_ads: Callable[..., Any]) -> None:
    recording = run_ads()

    assert container(recording, "embedding-ps")["readinessProbe"]["tcpSocket"] == {"port": "persia"}
    assert "readinessProbe" not in container(recording, "nn-worker"), "it listens on rank 0 alone"


def test_several_nn_workers_know_the_first_one(run_ads: Callable[..., Any], description: dict[str, Any]) -> None:
    worker = description["jobs"]["ads"]["nnWorker"]

    assert "MASTER_ADDR" not in env(run_ads(), "nn-worker")
    found = env(run_ads(nnWorker={**worker, "replicas": 2}), "nn-worker")
    assert found["MASTER_ADDR"] == found["PET_MASTER_ADDR"] == "ads-nn-worker-0.ads-nn-worker"


def test_roles_wait_for_nats_and_nothing_slower(run_ads: Callable[..., Any]) -> None:
    needed = run_ads().one("StatefulSet", "dev-ads-nn-worker").depends_on

    assert {"dev-ads-nats", "dev-ads-nats-servers", "dev-ads-nn-worker"} <= needed
    assert not any("metrics" in name or "embedding" in name for name in needed)


def test_another_nats_is_used_as_it_is(run_ads: Callable[..., Any]) -> None:
    recording = run_ads(env=[{"name": "PERSIA_NATS_URL", "value": "nats://elsewhere:4222"}])

    assert not recording.names("NatsCluster")
    assert env(recording, "dataloader")["PERSIA_NATS_URL"] == "nats://elsewhere:4222"
    assert recording.outputs["dev-ads"] == {"natsUrl": "nats://elsewhere:4222"}


def test_metrics_gateway(run_ads: Callable[..., Any]) -> None:
    recording = run_ads()
    spec = recording.one("Deployment", "dev-ads-metrics-gateway").inputs["spec"]["template"]["spec"]

    service = recording.one("Service", "dev-ads-metrics-gateway").inputs
    assert service["metadata"]["name"] == "ads-metrics-gateway-service"
    assert service["spec"]["ports"][0]["port"] == 9091
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_metrics_can_be_turned_off(run_ads: Callable[..., Any]) -> None:
    recording = run_ads(enableMetrics=False)

    assert not recording.names("Deployment")
    assert "dev-ads-metrics-gateway" not in recording.names("Service")


def test_absent_roles_are_not_run(run_ads: Callable[..., Any]) -> None:
    recording = run_ads(dataloader=None, embeddingWorker=None)

    assert recording.names("StatefulSet") == {"dev-ads-embedding-ps", "dev-ads-nn-worker", "dev-ads-nats-servers"}


def test_pull_policy_and_images_can_be_chosen(run_ads: Callable[..., Any], description: dict[str, Any]) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "image": "registry.example/persia:1"}
    recording = run_ads(imagePullPolicy="IfNotPresent", nnWorker=worker)

    assert container(recording, "nn-worker")["image"] == "registry.example/persia:1"
    assert container(recording, "nn-worker")["imagePullPolicy"] == "IfNotPresent"
    assert "imagePullPolicy" not in container(run_ads(), "nn-worker")
