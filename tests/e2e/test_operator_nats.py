"""Our NatsCluster in operator mode under the real NATS operator 0.8.3, with the rights that its component declares."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest
from persia_components import Job, NatsCluster, Operator

from persia_infra.gke.pools import NodePoolSpec
from persia_infra.jobs import PersiaJobSpec
from persia_infra.nats.spec import NatsSpec
from persia_infra.operators import NatsOperatorSpec, nats
from tests.support.operator_stack import OperatorStack, Program, wait_for

TRAINING = "nats-training"
USERS = {"users": [{"username": "persia", "password": "open sesame"}]}
SPEC: dict[str, Any] = {
    "mode": "operator",
    "version": "2.10.26",
    "serverImage": "registry.example/nats",
    "natsConfig": {"maxPayload": 33554432, "maxPending": 67108864, "write_deadline": "10s", "disableLogtime": True},
    "resources": {"requests": {"cpu": "250m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
    "pod": {
        "labels": {"team": "ads"},
        "annotations": {"example.com/owner": "ads"},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "antiAffinity": True,
    },
    "tls": {"serverSecret": "bus-tls", "serverSecretKeyFileName": "tls.key", "routesSecret": "routes-tls"},
    "auth": {"clientsAuthSecret": "bus-users", "clientsAuthTimeout": 5},
}
POOL: dict[str, Any] = {
    "machineType": "n2-standard-8",
    "count": 5,
    "taints": [{"key": "bus", "value": "only", "effect": "NoSchedule"}],
}
JOB: dict[str, Any] = {
    "persiaEnv": {"PERSIA_NN_WORKER_ENTRY": "/data/train.py", "PERSIA_DATALOADER_ENTRY": "/data/loader.py"},
    "globalConfig": "common_config: {}",
    "embeddingConfig": "slots_config: {age: {dim: 8}}",
    "embeddingWorker": {"replicas": 1},
    "embeddingParameterServer": {"replicas": 1},
    "nnWorker": {"replicas": 1, "nprocPerNode": 1},
    "dataloader": {"replicas": 1},
    "nats": {"mode": "operator", "size": 1, "version": "2.10.26"},
}


def program(size: int | None, *, job: bool = False, **changed: Any) -> Program:
    def declare() -> None:
        operator = Operator("nats", NatsOperatorSpec())
        after = pulumi.ResourceOptions(depends_on=[operator])
        if size is not None:
            spec = NatsSpec.model_validate({**SPEC, **changed, "size": size})
            placement = NodePoolSpec.model_validate(POOL).placement("bus")
            NatsCluster("bus", spec, namespace=TRAINING, placement=placement, opts=after)
        if job:
            Job("ads", PersiaJobSpec.model_validate(JOB), namespace=TRAINING, opts=after)

    return declare


def node(index: int) -> dict[str, Any]:
    """One of the pool: its own servers and nobody else's go there."""
    size = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    labels = {**NodePoolSpec.model_validate(POOL).placement("bus").node_selector, "disk": "fast"}
    name = f"nats-probe-{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}},
        "spec": {"taints": POOL["taints"]},
        "status": {"allocatable": size, "capacity": size},
    }


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack) -> Iterator[OperatorStack]:
    """Kinds, operator and a cluster of three in the very first preview and update."""
    nodes = [node(index) for index in range(5)]
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    operator_stack.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TRAINING, "labels": restricted}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bus-users", "namespace": TRAINING},
            "stringData": {"clients-auth.json": json.dumps(USERS)},
        },
        *nodes,
    )
    assert operator_stack.preview(program(3))["create"]
    operator_stack.up(program(3))
    operator_stack.processes.start("nats-io", "nats-operator")
    yield operator_stack
    operator_stack.kubectl("delete", "node", *(one["metadata"]["name"] for one in nodes))


def servers(stack: OperatorStack) -> set[str]:
    return stack.running(TRAINING, "nats_cluster=bus")


def grown_to(stack: OperatorStack, size: int) -> set[str]:
    return wait_for(f"{size} servers", lambda: servers(stack), until=lambda seen: len(seen) == size)


def configuration(stack: OperatorStack, name: str = "bus") -> dict[str, Any]:
    """The file that the operator wrote for the servers."""
    return json.loads(base64.b64decode(stack.get("secret", TRAINING, name)["data"]["nats.conf"]))


def routes_to(pods: set[str]) -> set[str]:
    return {f"nats://{pod}.bus-mgmt.{TRAINING}.svc:6222" for pod in pods}


def routes(stack: OperatorStack) -> set[str]:
    return set(configuration(stack)["cluster"]["routes"])


def test_a_cluster_of_three_gets_its_pods_and_services(stack: OperatorStack) -> None:
    assert grown_to(stack, 3) == {"bus-1", "bus-2", "bus-3"}
    assert stack.names("services", TRAINING) == {"bus", "bus-mgmt"}
    assert [port["port"] for port in stack.get("service", TRAINING, "bus")["spec"]["ports"]] == [4222]


def test_the_servers_are_configured_as_described(stack: OperatorStack) -> None:
    wait_for("the last route", lambda: routes(stack), until=lambda seen: seen == routes_to(servers(stack)))
    found = configuration(stack)

    assert {key: value for key, value in found.items() if key not in ("cluster", "tls", "authorization")} == {
        "port": 4222,
        "http_port": 8222,
        "max_payload": 33554432,
        "max_pending": 67108864,
        "write_deadline": "10s",
        "logtime": False,
    }
    assert found["tls"] == {
        "ca_file": "/etc/nats-server-tls-certs/ca.pem",
        "cert_file": "/etc/nats-server-tls-certs/server.pem",
        "key_file": "/etc/nats-server-tls-certs/tls.key",
    }
    assert found["cluster"]["tls"]["key_file"] == "/etc/nats-routes-tls-certs/route-key.pem"
    assert found["authorization"] == {**USERS, "timeout": 5}


def test_the_pods_have_what_was_described(stack: OperatorStack) -> None:
    pods = [stack.get("pod", TRAINING, name) for name in servers(stack)]

    for pod in pods:
        (container,) = pod["spec"]["containers"]
        secrets = {volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume}
        tolerated = {one["key"] for one in pod["spec"]["tolerations"]}
        assert container["image"] == "registry.example/nats:2.10.26"
        assert container["resources"] == SPEC["resources"]
        assert secrets == {"bus", "bus-tls", "routes-tls"}, "the operator copies the users into its own"
        assert pod["spec"]["nodeSelector"] == {"persia-infra/pool": "bus", "disk": "fast"}
        assert tolerated >= {"bus", "spot"}
        assert pod["metadata"]["labels"]["team"] == "ads"
        assert pod["metadata"]["annotations"]["example.com/owner"] == "ads"
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 3, "each is on a node of its own"


def test_the_pods_are_confined_as_the_native_ones_are(stack: OperatorStack) -> None:
    pod = stack.get("pod", TRAINING, "bus-1")["spec"]
    (container,) = pod["containers"]

    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsUser"] == 1000
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": {"app": "nats", "nats_cluster": "bus"}}
    policy = stack.get("networkpolicy", TRAINING, "bus")["spec"]["podSelector"]["matchLabels"]
    assert stack.running(TRAINING, ",".join(f"{key}={value}" for key, value in policy.items())) == servers(stack)


def is_definition(event: dict[str, Any]) -> bool:
    return event.get("objectRef", {}).get("resource") == "customresourcedefinitions"


def test_the_operator_rewrites_its_kinds_and_pulumi_sees_no_difference(stack: OperatorStack) -> None:
    asked = stack.processes.requests("nats-io", "nats-operator")
    written = {event["objectRef"]["name"] for event in asked if event["verb"] == "update" and is_definition(event)}
    assert written == {"natsclusters.nats.io", "natsserviceroles.nats.io"}
    assert stack.refresh() == {}
    assert stack.up(program(3)) == {}


def test_it_grows_to_five_and_shrinks_to_two_with_the_same_servers(stack: OperatorStack) -> None:
    before = stack.uids("pods", TRAINING, "nats_cluster=bus")
    for size in (5, 2):
        assert stack.up(program(size)) == {"update": 1}
        there = grown_to(stack, size)
        wait_for("the routes", lambda: routes(stack), until=lambda seen, there=there: seen == routes_to(there))
    after = stack.uids("pods", TRAINING, "nats_cluster=bus")
    assert after == {name: before[name] for name in ("bus-1", "bus-2")}


def test_a_change_reaches_the_file_at_once_and_each_server_when_its_pod_is_deleted(stack: OperatorStack) -> None:
    before = stack.uids("pods", TRAINING, "nats_cluster=bus")
    larger = {"limits": {"memory": "3Gi"}, "requests": {"memory": "3Gi"}}

    assert stack.up(program(2, natsConfig={"maxPayload": 16777216}, resources=larger)) == {"update": 1}

    wait_for("the file", lambda: configuration(stack), until=lambda seen: seen["max_payload"] == 16777216)
    assert stack.uids("pods", TRAINING, "nats_cluster=bus") == before
    stack.kubectl("delete", "pod", "--namespace", TRAINING, "bus-1")
    grown_to(stack, 2)
    memory = {
        name: stack.get("pod", TRAINING, name)["spec"]["containers"][0]["resources"]["limits"]["memory"]
        for name in servers(stack)
    }
    assert memory == {"bus-1": "3Gi", "bus-2": "2Gi"}


def test_it_goes(stack: OperatorStack) -> None:
    stack.up(program(None))
    mine = {"bus-users"}
    wait_for("no pods", lambda: stack.names("pods,services,secrets", TRAINING), until=lambda seen: seen == mine)


def test_a_native_job_finds_the_nats_that_the_operator_runs(stack: OperatorStack) -> None:
    stack.kubectl("label", "namespace", TRAINING, "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
    stack.up(program(None, job=True))
    wait_for("its server", lambda: stack.running(TRAINING, "nats_cluster=ads-nats"))
    service = wait_for("its service", lambda: stack.names("services", TRAINING, "nats_cluster=ads-nats"))
    name = "ads-embedding-worker-0"
    wait_for("a worker", lambda: name in stack.running(TRAINING))
    (worker,) = stack.get("pod", TRAINING, name)["spec"]["containers"]
    variables = {entry["name"]: entry.get("value") for entry in worker["env"]}

    assert variables["PERSIA_NATS_URL"] == "nats://ads-nats:4222"
    assert "ads-nats" in service
    assert configuration(stack, "ads-nats")["max_payload"] == 52428800
    stack.up(program(None))
    wait_for("it goes", lambda: stack.names("pods,services", TRAINING), until=lambda seen: not seen)


def test_service_accounts_get_tokens_for_a_cluster_that_asks_for_them(stack: OperatorStack) -> None:
    """Not ours to describe, but the operator's to act on when somebody applies such a cluster."""
    kind = {"apiVersion": "nats.io/v1alpha2", "kind": "NatsServiceRole"}
    client = {"name": "client", "namespace": TRAINING}
    roles = {**client, "name": "roles"}
    permissions = {"publish": ["out.>"], "subscribe": ["in.>"]}
    stack.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": client},
        {**kind, "metadata": {**client, "labels": {"nats_cluster": "roles"}}, "spec": {"permissions": permissions}},
        {
            **kind,
            "kind": "NatsCluster",
            "metadata": roles,
            "spec": {"size": 1, "version": "2.10.26", "auth": {"enableServiceAccounts": True}},
        },
    )
    token = "client-roles-bound-token"

    wait_for("its server", lambda: stack.running(TRAINING, "nats_cluster=roles"))
    wait_for("the token", lambda: token in stack.names("secrets", TRAINING))
    (user,) = configuration(stack, "roles")["authorization"]["users"]
    assert (user["username"], user["permissions"]) == ("client", permissions)
    stack.kubectl("delete", "natscluster,natsservicerole", "--all", "--namespace", TRAINING)


def test_a_cluster_takes_tokens_of_service_accounts(stack: OperatorStack) -> None:
    api = {"apiVersion": "nats.io/v1alpha2"}
    mine = {"namespace": TRAINING, "name": "trainer"}
    permissions = {"publish": ["batches"], "subscribe": ["gradients"]}
    stack.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": mine},
        {
            **api,
            "kind": "NatsServiceRole",
            "metadata": {**mine, "labels": {"nats_cluster": "accounts"}},
            "spec": {"permissions": permissions},
        },
        {
            **api,
            "kind": "NatsCluster",
            "metadata": {"namespace": TRAINING, "name": "accounts"},
            "spec": {"size": 1, "version": "2.10.26", "auth": {"enableServiceAccounts": True}},
        },
    )
    wait_for("its server", lambda: stack.running(TRAINING, "nats_cluster=accounts"))
    (user,) = configuration(stack, "accounts")["authorization"]["users"]
    token = stack.get("secret", TRAINING, "trainer-accounts-bound-token")["data"]["token"]

    assert user == {"username": "trainer", "password": base64.b64decode(token).decode(), "permissions": permissions}
    stack.kubectl("delete", "--namespace", TRAINING, "natscluster/accounts", "natsservicerole/trainer")
    wait_for("it goes", lambda: stack.names("pods,services", TRAINING), until=lambda seen: not seen)


def test_it_has_the_rights_that_it_uses_and_no_others(stack: OperatorStack) -> None:
    stack.check_rights("nats-io", "nats-operator", nats.RIGHTS)
