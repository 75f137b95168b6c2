"""NATS clusters, native and for the operator."""

from pathlib import Path
from typing import Any

import pytest

from persia_infra.kube.placement import Placement, Taint
from persia_infra.manifests.inputs import read_inputs
from persia_infra.nats.config import nats_conf
from persia_infra.nats.objects import nats_objects
from persia_infra.nats.spec import NatsSpec
from persia_infra.spec.errors import InputError
from tests.support import kube_objects
from tests.support.kube_objects import Objects

POOL = Placement("bus", {"persia-infra/pool": "bus"}, (Taint(key="k", value="v", effect="NoSchedule"),))


def cluster(placement: Placement | None = None, **fields: Any) -> Objects:
    return Objects(nats_objects(NatsSpec.model_validate(fields), "bus", "training", placement=placement))


def pod(servers: Objects) -> dict[str, Any]:
    return servers.body("StatefulSet", "bus")["spec"]["template"]["spec"]


def container(servers: Objects) -> dict[str, Any]:
    return kube_objects.container(pod(servers))


def test_configuration_of_three() -> None:
    assert nats_conf(NatsSpec(size=3), "bus", "bus-headless") == (
        "port: 4222\n"
        "http_port: 8222\n"
        'pid_file: "/var/run/nats/nats.pid"\n'
        "max_payload: 52428800\n"
        'lame_duck_grace_period: "10s"\n'
        'lame_duck_duration: "30s"\n'
        "cluster {\n"
        '  name: "bus"\n'
        "  port: 6222\n"
        "  no_advertise: true\n"
        "  routes: [\n"
        '    "nats://bus-0.bus-headless:6222"\n'
        '    "nats://bus-1.bus-headless:6222"\n'
        '    "nats://bus-2.bus-headless:6222"\n'
        "  ]\n"
        "}\n"
    )


def test_servers_run_on_the_pool_that_was_chosen_and_tolerate_its_taints() -> None:
    found = pod(cluster(POOL))

    assert found["nodeSelector"] == {"persia-infra/pool": "bus"}
    assert found["tolerations"] == [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}]


def test_tolerations_of_the_nats_spec_stay_beside_those_of_the_pool() -> None:
    own = {"key": "spot", "operator": "Exists"}
    found = pod(cluster(POOL, pod={"tolerations": [own]}))

    assert found["tolerations"] == [*POOL.tolerations, own]


def test_growing_a_cluster_changes_no_configuration() -> None:
    assert nats_conf(NatsSpec(size=60), "bus", "h") == nats_conf(NatsSpec(size=61), "bus", "h")


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("maxPayload", 1048576, "max_payload: 1048576"),
        ("maxConnections", 500, "max_connections: 500"),
        ("debug", True, "debug: true"),
        ("trace", True, "trace: true"),
    ],
)
def test_limits_reach_the_configuration(key: str, value: Any, line: str) -> None:
    spec = NatsSpec.model_validate({"natsConfig": {key: value}})

    assert line in nats_conf(spec, "bus", "h").splitlines()
    assert line not in nats_conf(NatsSpec(), "bus", "h").splitlines()


def test_clients_and_peers_have_a_service_each() -> None:
    servers = cluster()
    client, peers = (servers.body("Service", name) for name in ("bus", "bus-headless"))

    assert client["metadata"]["name"] == "bus"
    assert [port["port"] for port in client["spec"]["ports"]] == [4222]
    assert "clusterIP" not in client["spec"]
    assert peers["spec"]["clusterIP"] == "None"
    assert peers["spec"]["publishNotReadyAddresses"] is True
    assert servers.body("StatefulSet", "bus")["spec"]["serviceName"] == "bus-headless"
    assert servers.group.outputs == {"url": "nats://bus:4222"}


def test_servers_leave_without_dropping_clients() -> None:
    servers = cluster()
    found = pod(servers)

    assert container(servers)["lifecycle"]["preStop"]["exec"]["command"] == [
        "nats-server",
        "-sl=ldm=/var/run/nats/nats.pid",
    ]
    assert found["terminationGracePeriodSeconds"] == 60
    assert servers.body("PodDisruptionBudget", "bus")["spec"]["maxUnavailable"] == 1


def test_nats_servers_do_not_run_as_root() -> None:
    servers = cluster()
    found = pod(servers)

    assert found["securityContext"]["runAsNonRoot"] is True
    assert found["securityContext"]["runAsUser"] == 1000
    assert container(servers)["securityContext"]["readOnlyRootFilesystem"] is True
    mounted = {mount["mountPath"]: mount.get("readOnly") for mount in container(servers)["volumeMounts"]}
    assert mounted == {"/etc/nats": True, "/var/run/nats": None}, "the pid file needs a place to be written"


def test_health_is_asked_of_the_server() -> None:
    found = container(cluster())

    assert {kind: found[kind]["httpGet"]["path"] for kind in ("startupProbe", "readinessProbe", "livenessProbe")} == {
        "startupProbe": "/healthz",
        "readinessProbe": "/healthz?js-server-only=true",
        "livenessProbe": "/healthz?js-enabled-only=true",
    }


def test_the_configuration_is_the_one_that_is_mounted() -> None:
    servers = cluster()
    config = servers.hashed("ConfigMap", "bus-config")
    found = pod(servers)

    assert config["immutable"] is True
    assert {"name": "config", "configMap": {"name": config["metadata"]["name"]}} in found["volumes"]
    assert config["data"]["nats.conf"] == nats_conf(NatsSpec(), "bus", "bus-headless")


@pytest.mark.parametrize("place", ["resources", "pod"])
def test_resources_take_effect_wherever_they_are_written(place: str) -> None:
    asked = {"limits": {"cpu": "4", "memory": "32Gi"}}

    found = container(cluster(None, **{place: asked if place == "resources" else {"resources": asked}}))

    assert found["resources"] == asked


def test_image_and_size_of_a_nats_cluster_can_be_chosen() -> None:
    servers = cluster(size=5, version="2.11.0", serverImage="registry.example/nats")

    assert container(servers)["image"] == "registry.example/nats:2.11.0"
    assert servers.body("StatefulSet", "bus")["spec"]["replicas"] == 5


def test_secrets_are_mounted_where_the_file_looks_for_them() -> None:
    spec = NatsSpec.model_validate(
        {
            "tls": {"serverSecret": "bus-tls", "routesSecret": "bus-routes", "verify": True},
            "auth": {"clientsAuthSecret": "bus-users"},
        }
    )
    found = pod(Objects(nats_objects(spec, "bus", "n")))
    sources = {volume["name"]: volume["secret"]["secretName"] for volume in found["volumes"] if "secret" in volume}
    folders = {
        sources[mount["name"]]: mount["mountPath"]
        for mount in found["containers"][0]["volumeMounts"]
        if mount["name"] in sources
    }

    assert folders == {
        "bus-tls": "/etc/nats-server-tls",
        "bus-routes": "/etc/nats-routes-tls",
        "bus-users": "/etc/nats-clients-auth",
    }
    conf = nats_conf(spec, "bus", "h")
    assert 'cert_file: "/etc/nats-server-tls/server.pem"' in conf
    assert '    key_file: "/etc/nats-routes-tls/route-key.pem"' in conf
    assert "verify: true" in conf


def test_jetstream_gives_each_server_a_disk() -> None:
    spec = NatsSpec.model_validate({"jetstream": {"storage": "20Gi", "storageClassName": "premium-rwo"}})
    servers = Objects(nats_objects(spec, "bus", "n"))
    (claim,) = servers.body("StatefulSet", "bus")["spec"]["volumeClaimTemplates"]

    assert claim["spec"]["resources"]["requests"] == {"storage": "20Gi"}
    assert {"name": claim["metadata"]["name"], "mountPath": "/var/lib/nats"} in container(servers)["volumeMounts"]
    assert claim["spec"]["storageClassName"] == "premium-rwo"
    assert f"max_file_store: {20 * 2**30}" in nats_conf(spec, "bus", "h")


def test_for_the_operator_everything_is_where_it_takes_effect() -> None:
    servers = cluster(
        POOL,
        mode="operator",
        size=5,
        resources={"limits": {"memory": "2Gi"}},
        natsConfig={"maxPending": 2**26},
    )

    made = servers.body("NatsCluster", "bus")
    assert made["apiVersion"] == "nats.io/v1alpha2"
    assert made["spec"]["size"] == 5
    assert made["spec"]["version"] == "2.14.2", "the operator cannot start an Alpine image"
    assert made["spec"]["natsConfig"] == {"maxPayload": 52428800, "maxPending": 67108864}
    assert made["spec"]["pod"]["resources"] == {"limits": {"memory": "2Gi"}}
    assert made["spec"]["pod"]["nodeSelector"] == {"persia-infra/pool": "bus"}
    assert [{"operator": "Equal", **each} for each in made["spec"]["pod"]["tolerations"]] == POOL.tolerations
    assert not servers.names("StatefulSet")
    assert servers.group.outputs == {"url": "nats://bus:4222"}
    policy = servers.body("NetworkPolicy", "bus")["spec"]
    assert policy["podSelector"]["matchLabels"] == {"app": "nats", "nats_cluster": "bus"}


def test_for_the_operator_the_servers_are_confined_and_spread_as_native_ones_are() -> None:
    native, operator = (cluster(mode=mode) for mode in ("native", "operator"))
    ours = pod(native)
    theirs = operator.body("NatsCluster", "bus")["spec"]["template"]["spec"]

    assert theirs["securityContext"] == ours["securityContext"]
    assert theirs["containers"][0]["securityContext"] == ours["containers"][0]["securityContext"]
    assert theirs["automountServiceAccountToken"] is False
    (spread,) = theirs["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == {"app": "nats", "nats_cluster": "bus"}


@pytest.mark.parametrize("mode", ["native", "operator"])
def test_a_cluster_by_itself_is_where_its_manifest_says(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "bus.yaml"
    file.write_text(
        "apiVersion: nats.io/v1alpha2\nkind: NatsCluster\nmetadata: {name: bus, namespace: training}\n"
        f"spec: {{size: 3, mode: {mode}}}\n"
    )
    (described,) = read_inputs([str(file)])

    made = Objects(described.objects()).all

    assert len(made) == (6 if mode == "native" else 2)
    assert {each.body["metadata"]["namespace"] for each in made} == {"training"}


def test_an_invalid_namespace_of_a_nats_cluster_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bus.yaml"
    file.write_text(
        "apiVersion: nats.io/v1alpha2\nkind: NatsCluster\nmetadata: {name: bus, namespace: Train_ing}\nspec: {}\n"
    )

    with pytest.raises(InputError) as error:
        read_inputs([str(file)])

    assert [problem.path for problem in error.value.problems] == ["metadata.namespace"]


def test_images_without_a_shell_start_the_server_at_their_root() -> None:
    def command(version: str) -> list[str]:
        return container(cluster(version=version))["command"]

    assert command("2.6.6") == ["/nats-server"]
    assert command("2.14.2-alpine") == ["nats-server"]


def test_secrets_and_configuration_are_mounted_read_only() -> None:
    servers = cluster(tls={"serverSecret": "tls", "routesSecret": "routes"}, auth={"clientsAuthSecret": "users"})

    mounts = {mount["name"]: mount.get("readOnly") for mount in container(servers)["volumeMounts"]}

    assert mounts == {"config": True, "pid": None, "server-tls": True, "routes-tls": True, "clients-auth": True}
