"""The same job as native workloads and through PERSIA's own, unmodified operator, compared role by role."""

import json
from typing import Any

import pulumi
import pytest
from persia_components import Job, Operator

from persia_infra.jobs import PersiaJobSpec
from persia_infra.operators import PersiaOperatorSpec
from tests.support.operator_stack import OperatorStack, wait_for

NATIVE, OPERATOR = "persia-native", "persia-by-operator"
SYSTEM = "persia-system"
ROLES = {"embedding-ps": 2, "embedding-worker": 1, "nn-worker": 2, "dataloader": 1}
JOB: dict[str, Any] = {
    "persiaEnv": {
        "PERSIA_NN_WORKER_ENTRY": "/data/train.py",
        "PERSIA_DATALOADER_ENTRY": "/data/data_loader.py",
    },
    "globalConfig": {"common_config": {"metrics_config": {"job_name": "ads"}}},
    "embeddingConfig": "slots_config: {age: {dim: 8}}",
    "logLevel": "warn",
    "restartPolicy": "Always",
    "imagePullPolicy": "IfNotPresent",
    "env": [{"name": "SHARED", "value": "all"}],
    "volumes": [{"name": "data", "nfs": {"server": "10.1.0.2", "path": "/data"}}],
    "embeddingParameterServer": {"replicas": 2, "resources": {"limits": {"cpu": "1", "memory": "2Gi"}}},
    "embeddingWorker": {"replicas": 1, "env": [{"name": "OWN", "value": "role"}]},
    "nnWorker": {
        "replicas": 2,
        "nprocPerNode": 3,
        "image": "example.com/trainer:1",
        "sharedMemory": "1Gi",
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
    },
    "dataloader": {"replicas": 1, "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
    "nats": {"size": 1},
}


def declare() -> None:
    operator = Operator("persia", PersiaOperatorSpec())
    for mode, namespace in (("native", NATIVE), ("operator", OPERATOR)):
        Job(
            f"ads-{mode}",
            PersiaJobSpec.model_validate({**JOB, "mode": mode}),
            namespace=namespace,
            object_name="ads",
            opts=pulumi.ResourceOptions(depends_on=[operator]),
        )


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack) -> OperatorStack:
    for namespace in (NATIVE, OPERATOR):
        operator_stack.kubectl("create", "namespace", namespace)
    operator_stack.up(declare)
    operator_stack.processes.start(SYSTEM, "persia-operator")
    wanted = {f"ads-{role}-{index}" for role, count in ROLES.items() for index in range(count)}
    for namespace in (NATIVE, OPERATOR):
        wait_for(f"pods in {namespace}", lambda n=namespace: operator_stack.running(n), until=lambda s: s >= wanted)
    return operator_stack


def container(stack: OperatorStack, namespace: str, pod: str) -> dict[str, Any]:
    found = stack.get("pod", namespace, pod)
    only = found["spec"]["containers"][0]
    index = found["metadata"]["labels"].get("apps.kubernetes.io/pod-index")
    only["env"] = {
        entry["name"]: index if "valueFrom" in entry else entry.get("value", "") for entry in only.get("env", [])
    }
    only["volumeMounts"] = [
        mount for mount in only.get("volumeMounts", []) if not mount["mountPath"].startswith("/var/run/secrets")
    ]
    return only


@pytest.mark.parametrize(("role", "index"), [(role, index) for role, count in ROLES.items() for index in range(count)])
def test_pods_run_the_same(stack: OperatorStack, role: str, index: int) -> None:
    ours, theirs = (container(stack, namespace, f"ads-{role}-{index}") for namespace in (NATIVE, OPERATOR))

    for same in ("name", "image", "imagePullPolicy", "command", "args", "resources", "volumeMounts"):
        assert ours.get(same) == theirs.get(same), same
    added = {"MASTER_ADDR", "PET_MASTER_ADDR"} if role == "nn-worker" else set()
    assert ours["env"].keys() - theirs["env"].keys() == added
    assert [name for name in ours["env"] if name not in added] == list(theirs["env"]), "in the same order"
    assert {name: value for name, value in ours["env"].items() if name not in added} == theirs["env"]


def test_both_find_their_files_where_the_variables_say(stack: OperatorStack) -> None:
    for namespace in (NATIVE, OPERATOR):
        pod = stack.get("pod", namespace, "ads-embedding-ps-0")["spec"]
        (source,) = (one["configMap"]["name"] for one in pod["volumes"] if one["name"] == "persia-config")
        files = stack.get("configmap", namespace, source)["data"]
        assert json.loads(json.dumps(sorted(files))) == ["embedding_config.yaml", "global_config.yaml"]


def test_the_metrics_service_has_the_same_name_and_port(stack: OperatorStack) -> None:
    name = "ads-metrics-gateway-service"
    ports = [
        [port["port"] for port in stack.get("service", namespace, name)["spec"]["ports"]]
        for namespace in (NATIVE, OPERATOR)
    ]
    assert ports == [[9091], [9091]]


def test_a_second_up_changes_nothing(stack: OperatorStack) -> None:
    assert stack.up(declare) == {}


def test_a_change_replaces_the_operators_job_because_it_would_ignore_it(
    stack: OperatorStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stack.uids("pods", OPERATOR)
    monkeypatch.setitem(JOB, "dataloader", {**JOB["dataloader"], "replicas": 2})

    stack.up(declare)

    wait_for("the new pods", lambda: stack.running(OPERATOR), until=lambda seen: "ads-dataloader-1" in seen)
    after = stack.uids("pods", OPERATOR)
    assert after["ads-dataloader-0"] != before["ads-dataloader-0"]
    assert after["ads-nats-0"] == before["ads-nats-0"], "NATS is none of the operator's business"
