"""A PERSIA job as native workloads, held against what the PERSIA operator runs."""

from collections.abc import Callable
from typing import Any

import pytest
from persia_components import PersiaJob

from persia_infra.jobs import PersiaJobSpec
from persia_infra.stack import parse_environment

Record = Callable[..., Any]

CONFIGS = ["--embedding-config", "$(PERSIA_EMBEDDING_CONFIG)", "--global-config", "$(PERSIA_GLOBAL_CONFIG)"]
SHARED_MEMORY = "/dev/shm"  # noqa: S108
REPLICA = ["--replica-index", "$(REPLICA_INDEX)", "--replica-size", "$(REPLICA_SIZE)"]
COMMON = [
    "PERSIA_EMBEDDING_CONFIG",
    "PERSIA_GLOBAL_CONFIG",
    "LOG_LEVEL",
    "RUST_BACKTRACE",
    "PERSIA_METRICS_GATEWAY_ADDR",
    "PERSIA_NATS_URL",
]


@pytest.fixture
def run(description: dict[str, Any], record: Record) -> Callable[..., Any]:
    def build(**changes: Any) -> Any:
        described = {**description["jobs"]["ads"], **changes}
        spec = parse_environment({**description, "operators": {"persia": {}}, "jobs": {"ads": described}})
        job = spec.jobs["ads"]
        assert isinstance(job, PersiaJobSpec)
        return record(
            lambda: PersiaJob(
                "dev-ads", job, namespace="training", object_name="ads", placements=spec.placements("ads")
            )
        )

    return build


def pod(recording: Any, role: str) -> dict[str, Any]:
    return recording.one("StatefulSet", f"dev-ads-{role}").inputs["spec"]["template"]["spec"]


def container(recording: Any, role: str) -> dict[str, Any]:
    (only,) = pod(recording, role)["containers"]
    return only


def env(recording: Any, role: str) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(recording, role)["env"]}


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
    run: Callable[..., Any], role: str, name: str, image: str, args: list[str]
) -> None:
    found = container(run(), role)

    assert found["command"] == ["persia-launcher"]
    assert found["args"] == args
    assert found["name"] == name
    assert found["image"] == f"persiaml/persia-{image}-runtime:latest"


def test_variables_come_in_the_operators_order(run: Callable[..., Any]) -> None:
    given = [{"name": "SHARED", "value": "a"}]
    recording = run(env=given, enableMetrics=False)

    assert list(env(recording, "embedding-ps")) == [*COMMON, "SHARED", "REPLICA_INDEX", "REPLICA_SIZE"]
    assert list(env(recording, "nn-worker"))[-4:] == [
        "REPLICA_INDEX",
        "REPLICA_SIZE",
        "NPROC_PER_NODE",
        "PERSIA_NN_WORKER_ENTRY",
    ]
    assert list(env(recording, "dataloader"))[-1] == "PERSIA_DATALOADER_ENTRY"


def test_values_of_the_variables(run: Callable[..., Any]) -> None:
    found = env(run(logLevel="debug"), "embedding-worker")

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
    run: Callable[..., Any], description: dict[str, Any]
) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "env": [{"name": "A", "value": "role"}]}
    recording = run(env=[{"name": "A", "value": "job"}, {"name": "LOG_LEVEL", "value": "warn"}], nnWorker=worker)

    names = [entry["name"] for entry in container(recording, "nn-worker")["env"]]
    assert sorted(names) == sorted(set(names)), "server-side apply refuses a list with a name twice"
    assert env(recording, "nn-worker")["A"] == "role"
    assert env(recording, "dataloader")["A"] == "job"
    assert env(recording, "dataloader")["LOG_LEVEL"] == "warn"


def test_variables_from_secrets_stay_references(run: Callable[..., Any]) -> None:
    recording = run(env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}])

    assert env(recording, "dataloader")["TOKEN"] == {"secretKeyRef": {"name": "hub", "key": "token"}}


def test_pods_are_numbered_and_start_together(run: Callable[..., Any]) -> None:
    found = run().one("StatefulSet", "dev-ads-embedding-ps").inputs

    assert found["metadata"]["name"] == "ads-embedding-ps", "its pods are then called as the operator calls them"
    assert found["spec"]["podManagementPolicy"] == "Parallel"
    assert found["spec"]["replicas"] == 2
    assert found["spec"]["serviceName"] == "ads-embedding-ps"


@pytest.mark.parametrize(
    ("role", "port"), [("embedding-ps", 8888), ("embedding-worker", 8887), ("nn-worker", 23456), ("dataloader", None)]
)
def test_each_role_has_a_headless_service_on_its_port(run: Callable[..., Any], role: str, port: int | None) -> None:
    recording = run()
    service = recording.one("Service", f"dev-ads-{role}").inputs

    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert [entry["port"] for entry in service["spec"].get("ports", [])] == ([port] if port else [])
    assert recording.one("PodDisruptionBudget", f"dev-ads-{role}").inputs["spec"]["maxUnavailable"] == 1


def test_servers_are_probed_on_their_port(run: Callable[..., Any]) -> None:
    recording = run()

    assert container(recording, "embedding-ps")["readinessProbe"]["tcpSocket"] == {"port": "persia"}
    assert "readinessProbe" not in container(recording, "nn-worker"), "it listens on rank 0 alone"


def test_nn_workers_are_placed_and_get_shared_memory(run: Callable[..., Any], description: dict[str, Any]) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "sharedMemory": "8Gi"}
    found = pod(run(nnWorker=worker), "nn-worker")

    assert found["nodeSelector"] == {"persia-infra/pool": "gpu"}
    assert found["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    ]
    assert {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in found["volumes"]
    assert {"name": "shared-memory", "mountPath": SHARED_MEMORY} in found["containers"][0]["volumeMounts"]
    assert found["containers"][0]["resources"] == {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}}


def test_shared_memory_of_ones_own_is_left_alone(run: Callable[..., Any], description: dict[str, Any]) -> None:
    mounts = [{"name": "data", "mountPath": SHARED_MEMORY}]
    found = pod(run(nnWorker={**description["jobs"]["ads"]["nnWorker"], "volumeMounts": mounts}), "nn-worker")

    assert [mount["mountPath"] for mount in found["containers"][0]["volumeMounts"]] == [SHARED_MEMORY]


def test_roles_without_gpus_neither_tolerate_nor_share(run: Callable[..., Any]) -> None:
    found = pod(run(), "dataloader")

    assert "tolerations" not in found
    assert found["nodeSelector"] == {"persia-infra/pool": "cpu"}
    assert [volume["name"] for volume in found["volumes"]] == ["data"]


def test_volumes_reach_every_role(run: Callable[..., Any]) -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "features", "readOnly": True}},
        {"name": "bucket", "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "b"}}},
        {"name": "scratch", "hostPath": {"path": "/mnt", "type": "Directory"}},
    ]

    assert pod(run(volumes=volumes), "embedding-ps")["volumes"] == volumes
    assert container(run(volumes=volumes), "embedding-ps")["volumeMounts"] == [
        {"name": "data", "mountPath": "/data", "readOnly": True}
    ]


class TestInlineConfiguration:
    @pytest.fixture
    def inline(self, run: Callable[..., Any], description: dict[str, Any]) -> Callable[[str], Any]:
        paths = description["jobs"]["ads"]["persiaEnv"]
        entries = {key: path for key, path in paths.items() if key.endswith("_ENTRY")}
        return lambda text: run(persiaEnv=entries, globalConfig={"common_config": {}}, embeddingConfig=text)

    def test_files_are_mounted_where_the_variables_say(self, inline: Callable[[str], Any]) -> None:
        recording = inline("slots_config: {a: {dim: 8}}\n")
        config = recording.one("ConfigMap", "dev-ads-config").inputs

        assert set(config["data"]) == {"global_config.yaml", "embedding_config.yaml"}
        assert env(recording, "embedding-ps")["PERSIA_GLOBAL_CONFIG"] == "/etc/persia/global_config.yaml"
        assert {"name": "persia-config", "configMap": {"name": config["metadata"]["name"]}} in pod(
            recording, "embedding-ps"
        )["volumes"]
        assert {"name": "persia-config", "mountPath": "/etc/persia", "readOnly": True} in container(
            recording, "embedding-ps"
        )["volumeMounts"]
        assert "dev-ads-config" in recording.one("StatefulSet", "dev-ads-embedding-ps").depends_on

    def test_a_changed_file_rolls_the_pods(self, inline: Callable[[str], Any]) -> None:
        before, again, after = (
            inline(text).one("ConfigMap", "dev-ads-config").inputs["metadata"]["name"]
            for text in (
                "slots_config: {a: {dim: 4}}\n",
                "slots_config: {a: {dim: 4}}\n",
                "slots_config: {a: {dim: 8}}\n",
            )
        )

        assert before == again
        assert before != after

    def test_only_the_roles_that_read_the_files_have_them(self, inline: Callable[[str], Any]) -> None:
        before, after = (inline(f"slots_config: {{a: {{dim: {dim}}}}}\n") for dim in (4, 8))

        for role, rolls in (("embedding-ps", True), ("embedding-worker", True), ("nn-worker", False)):
            assert (pod(before, role) != pod(after, role)) is rolls, role


class TestInlineScripts:
    @pytest.fixture
    def scripted(self, run: Callable[..., Any], description: dict[str, Any]) -> Callable[[str], Any]:
        found = description["jobs"]["ads"]
        paths = {key: path for key, path in found["persiaEnv"].items() if key.endswith("_CONFIG")}

        def build(text: str) -> Any:
            worker = {**found["nnWorker"], "script": text}
            return run(persiaEnv=paths, nnWorker=worker, dataloader={**found["dataloader"], "script": "load()"})

        return build

    def test_it_is_where_the_launcher_looks(self, scripted: Callable[[str], Any]) -> None:
        recording = scripted("train()\n")
        config = recording.one("ConfigMap", "dev-ads-nn-worker-script").inputs

        assert config["data"] == {"train.py": "train()\n"}
        assert env(recording, "nn-worker")["PERSIA_NN_WORKER_ENTRY"] == "/etc/persia-script/train.py"
        mount = {"name": "nn-worker-script", "mountPath": "/etc/persia-script", "readOnly": True}
        assert mount in container(recording, "nn-worker")["volumeMounts"]

    def test_a_changed_script_rolls_its_own_role_alone(self, scripted: Callable[[str], Any]) -> None:
        before, after = scripted("train()\n"), scripted("train(2)\n")

        assert pod(before, "nn-worker") != pod(after, "nn-worker")
        assert pod(before, "dataloader") == pod(after, "dataloader")


def test_a_role_is_placed_as_described(run: Callable[..., Any], description: dict[str, Any]) -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    description["pools"]["gpu"]["labels"] = {"disk": "ssd"}
    worker = {
        **description["jobs"]["ads"]["nnWorker"],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": affinity,
        "serviceAccountName": "trainer",
        "priorityClassName": "high",
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
    }

    found = pod(run(nnWorker=worker), "nn-worker")

    assert found["nodeSelector"] == {"disk": "ssd", "persia-infra/pool": "gpu"}
    assert {"key": "dedicated", "operator": "Exists"} in found["tolerations"]
    assert "nvidia.com/gpu" in [toleration["key"] for toleration in found["tolerations"]]
    assert found["affinity"] == affinity
    assert (found["serviceAccountName"], found["priorityClassName"]) == ("trainer", "high")
    assert found["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "fsGroup": 1000,
    }


def test_several_nn_workers_know_the_first_one(run: Callable[..., Any], description: dict[str, Any]) -> None:
    worker = description["jobs"]["ads"]["nnWorker"]

    assert "MASTER_ADDR" not in env(run(), "nn-worker")
    found = env(run(nnWorker={**worker, "replicas": 2}), "nn-worker")
    assert found["MASTER_ADDR"] == found["PET_MASTER_ADDR"] == "ads-nn-worker-0.ads-nn-worker"


def test_only_pods_that_mount_a_bucket_get_the_sidecar(run: Callable[..., Any], description: dict[str, Any]) -> None:
    bucket = {
        "name": "bucket",
        "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "criteo"}},
    }
    found = description["jobs"]["ads"]
    loader = {**found["dataloader"], "volumeMounts": [{"name": "bucket", "mountPath": "/data"}]}

    recording = run(volumes=[*found["volumes"], bucket], dataloader=loader)

    annotated = {
        role: recording.one("StatefulSet", f"dev-ads-{role}").inputs["spec"]["template"]["metadata"].get("annotations")
        for role in ("dataloader", "nn-worker")
    }
    assert annotated == {"dataloader": {"gke-gcsfuse/volumes": "true"}, "nn-worker": None}


def test_only_the_jobs_own_pods_reach_it(run: Callable[..., Any]) -> None:
    recording = run()
    policy = recording.one("NetworkPolicy", "dev-ads-network").inputs["spec"]

    assert policy["podSelector"] == {"matchLabels": {"persia_job": "ads"}}
    assert policy["ingress"][0] == {"from": [{"podSelector": {"matchLabels": {"persia_job": "ads"}}}]}
    assert [rule["ports"][0]["port"] for rule in policy["ingress"][1:]] == [9091]
    servers = recording.one("NetworkPolicy", "dev-ads-nats-network").inputs["spec"]["ingress"]
    assert servers[0]["from"] == [{"podSelector": {"matchLabels": {"persia_job": "ads"}}}]
    assert [port["port"] for port in servers[0]["ports"]] == [4222]


class TestThroughTheOperator:
    def test_the_job_is_one_object_in_persias_own_words(
        self, run: Callable[..., Any], description: dict[str, Any]
    ) -> None:
        recording = run(mode="operator", enableMetrics=False)
        made = recording.one("persia.com/v1:PersiaJob", "dev-ads")

        assert recording.names("StatefulSet") == {"dev-ads-nats-servers"}
        described = description["jobs"]["ads"]
        spec = made.inputs["spec"]
        assert spec["persiaEnv"] == described["persiaEnv"]
        assert spec["enableMetrics"] is False
        assert spec["env"] == [{"name": "PERSIA_NATS_URL", "value": "nats://ads-nats:4222"}]
        assert spec["embeddingParameterServer"] == described["embeddingParameterServer"]
        assert spec["nnWorker"]["resources"]["limits"]["nvidia.com/gpu"] == "1", "its definition takes text only"
        assert {"name": "shared-memory", "mountPath": "/dev/shm"} in spec["nnWorker"]["volumeMounts"]  # noqa: S108
        assert "dev-ads-nats" in made.depends_on

    def test_inline_files_are_volumes_of_the_object(self, run: Callable[..., Any], description: dict[str, Any]) -> None:
        paths = description["jobs"]["ads"]["persiaEnv"]
        entries = {key: path for key, path in paths.items() if key.endswith("_ENTRY")}
        recording = run(
            mode="operator", persiaEnv=entries, globalConfig={}, embeddingConfig="slots_config: {a: {dim: 8}}"
        )
        spec = recording.one("persia.com/v1:PersiaJob", "dev-ads").inputs["spec"]
        config = recording.one("ConfigMap", "dev-ads-config").inputs["metadata"]["name"]

        assert {"name": "persia-config", "configMap": {"name": config}} in spec["volumes"]
        assert spec["persiaEnv"]["PERSIA_GLOBAL_CONFIG"] == "/etc/persia/global_config.yaml"
        mounted = {
            role: [mount["name"] for mount in spec[role]["volumeMounts"]]
            for role in ("embeddingWorker", "embeddingParameterServer", "dataloader")
        }
        assert mounted == {
            "embeddingWorker": ["data", "persia-config"],
            "embeddingParameterServer": ["data", "persia-config"],
            "dataloader": ["data"],
        }


def test_roles_wait_for_nats_and_nothing_slower(run: Callable[..., Any]) -> None:
    needed = run().one("StatefulSet", "dev-ads-nn-worker").depends_on

    assert {"dev-ads-nats", "dev-ads-nats-servers", "dev-ads-nn-worker"} <= needed
    assert not any("metrics" in name or "embedding" in name for name in needed)


def test_another_nats_is_used_as_it_is(run: Callable[..., Any]) -> None:
    recording = run(env=[{"name": "PERSIA_NATS_URL", "value": "nats://elsewhere:4222"}])

    assert not recording.names("NatsCluster")
    assert env(recording, "dataloader")["PERSIA_NATS_URL"] == "nats://elsewhere:4222"
    assert recording.outputs["dev-ads"] == {"natsUrl": "nats://elsewhere:4222"}


def test_metrics_gateway(run: Callable[..., Any]) -> None:
    recording = run()
    spec = recording.one("Deployment", "dev-ads-metrics-gateway").inputs["spec"]["template"]["spec"]

    service = recording.one("Service", "dev-ads-metrics-gateway").inputs
    assert service["metadata"]["name"] == "ads-metrics-gateway-service"
    assert service["spec"]["ports"][0]["port"] == 9091
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_metrics_can_be_turned_off(run: Callable[..., Any]) -> None:
    recording = run(enableMetrics=False)

    assert not recording.names("Deployment")
    assert "dev-ads-metrics-gateway" not in recording.names("Service")


def test_absent_roles_are_not_run(run: Callable[..., Any]) -> None:
    recording = run(dataloader=None, embeddingWorker=None)

    assert recording.names("StatefulSet") == {"dev-ads-embedding-ps", "dev-ads-nn-worker", "dev-ads-nats-servers"}


def test_every_container_is_confined(run: Callable[..., Any]) -> None:
    templates = [r.inputs["spec"]["template"]["spec"] for r in run().all if r.type.startswith("kubernetes:apps/")]

    assert len(templates) == 6
    for template in templates:
        assert template["automountServiceAccountToken"] is False
        assert template["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for found in template["containers"]:
            assert found["securityContext"]["allowPrivilegeEscalation"] is False
            assert found["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_pull_policy_and_images_can_be_chosen(run: Callable[..., Any], description: dict[str, Any]) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "image": "registry.example/persia:1"}
    recording = run(imagePullPolicy="IfNotPresent", nnWorker=worker)

    assert container(recording, "nn-worker")["image"] == "registry.example/persia:1"
    assert container(recording, "nn-worker")["imagePullPolicy"] == "IfNotPresent"
    assert "imagePullPolicy" not in container(run(), "nn-worker")
