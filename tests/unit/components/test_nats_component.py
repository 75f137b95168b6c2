"""NATS clusters, native and for the operator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from persia_components import NatsCluster
from persia_components._nats_conf import nats_conf
from persia_components.render import declared_for

from persia_infra.gke.pools import NodePoolSpec
from persia_infra.manifests.inputs import read_inputs
from persia_infra.nats.spec import NatsSpec
from persia_infra.spec.errors import InputError

Record = Callable[..., Any]


def cluster(record: Record, **fields: Any) -> Any:
    spec = NatsSpec.model_validate(fields)
    return record(lambda: NatsCluster("bus", spec, namespace="training"))


def container(recording: Any) -> dict[str, Any]:
    (only,) = recording.one("StatefulSet", "bus-servers").inputs["spec"]["template"]["spec"]["containers"]
    return only


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


def test_clients_and_peers_have_a_service_each(record: Record) -> None:
    recording = cluster(record)
    client, peers = (recording.one("Service", name).inputs for name in ("bus", "bus-headless"))

    assert client["metadata"]["name"] == "bus"
    assert [port["port"] for port in client["spec"]["ports"]] == [4222]
    assert "clusterIP" not in client["spec"]
    assert peers["spec"]["clusterIP"] == "None"
    assert peers["spec"]["publishNotReadyAddresses"] is True
    assert recording.one("StatefulSet", "bus-servers").inputs["spec"]["serviceName"] == "bus-headless"
    assert recording.outputs["bus"] == {"url": "nats://bus:4222"}


def test_servers_leave_without_dropping_clients(record: Record) -> None:
    recording = cluster(record)
    pod = recording.one("StatefulSet", "bus-servers").inputs["spec"]["template"]["spec"]

    assert container(recording)["lifecycle"]["preStop"]["exec"]["command"] == [
        "nats-server",
        "-sl=ldm=/var/run/nats/nats.pid",
    ]
    assert pod["terminationGracePeriodSeconds"] == 60
    assert recording.one("PodDisruptionBudget", "bus-budget").inputs["spec"]["maxUnavailable"] == 1


def test_servers_run_as_somebody(record: Record) -> None:
    recording = cluster(record)
    pod = recording.one("StatefulSet", "bus-servers").inputs["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 1000
    assert container(recording)["securityContext"]["readOnlyRootFilesystem"] is True
    mounted = {mount["mountPath"]: mount.get("readOnly") for mount in container(recording)["volumeMounts"]}
    assert mounted == {"/etc/nats": True, "/var/run/nats": None}, "the pid file needs a place to be written"


def test_health_is_asked_of_the_server(record: Record) -> None:
    found = container(cluster(record))

    assert {kind: found[kind]["httpGet"]["path"] for kind in ("startupProbe", "readinessProbe", "livenessProbe")} == {
        "startupProbe": "/healthz",
        "readinessProbe": "/healthz?js-server-only=true",
        "livenessProbe": "/healthz?js-enabled-only=true",
    }


def test_the_configuration_is_the_one_that_is_mounted(record: Record) -> None:
    recording = cluster(record)
    config = recording.one("ConfigMap", "bus-config").inputs
    pod = recording.one("StatefulSet", "bus-servers").inputs["spec"]["template"]["spec"]

    assert config["immutable"] is True
    assert {"name": "config", "configMap": {"name": config["metadata"]["name"]}} in pod["volumes"]
    assert config["data"]["nats.conf"] == nats_conf(NatsSpec(), "bus", "bus-headless")


@pytest.mark.parametrize("place", ["resources", "pod"])
def test_resources_take_effect_wherever_they_are_written(record: Record, place: str) -> None:
    asked = {"limits": {"cpu": "4", "memory": "32Gi"}}

    found = container(cluster(record, **{place: asked if place == "resources" else {"resources": asked}}))

    assert found["resources"] == asked


def test_image_and_size(record: Record) -> None:
    recording = cluster(record, size=5, version="2.11.0", serverImage="registry.example/nats")

    assert container(recording)["image"] == "registry.example/nats:2.11.0"
    assert recording.one("StatefulSet", "bus-servers").inputs["spec"]["replicas"] == 5


def test_secrets_are_mounted_where_the_file_looks_for_them(record: Record) -> None:
    spec = NatsSpec.model_validate(
        {
            "tls": {"serverSecret": "bus-tls", "routesSecret": "bus-routes", "verify": True},
            "auth": {"clientsAuthSecret": "bus-users"},
        }
    )
    pod = record(lambda: NatsCluster("bus", spec, namespace="n")).one("StatefulSet", "bus-servers").inputs
    pod = pod["spec"]["template"]["spec"]
    sources = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    folders = {
        sources[mount["name"]]: mount["mountPath"]
        for mount in pod["containers"][0]["volumeMounts"]
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


def test_jetstream_gives_each_server_a_disk(record: Record) -> None:
    spec = NatsSpec.model_validate({"jetstream": {"storage": "20Gi", "storageClassName": "premium-rwo"}})
    (claim,) = (
        record(lambda: NatsCluster("bus", spec, namespace="n"))
        .one("StatefulSet", "bus-servers")
        .inputs["spec"]["volumeClaimTemplates"]
    )

    assert claim["spec"]["resources"]["requests"] == {"storage": "20Gi"}
    assert claim["spec"]["storageClassName"] == "premium-rwo"
    assert f"max_file_store: {20 * 2**30}" in nats_conf(spec, "bus", "h")


def test_for_the_operator_everything_is_where_it_takes_effect(record: Record) -> None:
    spec = NatsSpec.model_validate(
        {"mode": "operator", "size": 5, "resources": {"limits": {"memory": "2Gi"}}, "natsConfig": {"maxPending": 2**26}}
    )
    placement = NodePoolSpec.model_validate(
        {"machineType": "n2-standard-8", "count": 1, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
    ).placement("bus")
    recording = record(lambda: NatsCluster("bus", spec, namespace="n", placement=placement))

    made = recording.one("nats.io/v1alpha2:NatsCluster", "bus").inputs
    assert made["spec"]["size"] == 5
    assert made["spec"]["version"] == "2.14.2", "the operator cannot start an Alpine image"
    assert made["spec"]["natsConfig"] == {"maxPayload": 52428800, "maxPending": 67108864}
    assert made["spec"]["pod"]["resources"] == {"limits": {"memory": "2Gi"}}
    assert made["spec"]["pod"]["nodeSelector"] == {"persia-infra/pool": "bus"}
    assert {"key": "k", "value": "v", "effect": "NoSchedule"} in made["spec"]["pod"]["tolerations"]
    assert not recording.names("StatefulSet")
    assert recording.outputs["bus"] == {"url": "nats://bus:4222"}
    policy = recording.one("NetworkPolicy", "bus-network").inputs["spec"]
    assert policy["podSelector"]["matchLabels"] == {"app": "nats", "nats_cluster": "bus"}


def test_for_the_operator_the_servers_are_confined_and_spread_as_native_ones_are(record: Record) -> None:
    native, operator = (
        record(lambda mode=mode: NatsCluster("bus", NatsSpec.model_validate({"mode": mode}), namespace="n"))
        for mode in ("native", "operator")
    )
    ours = native.one("StatefulSet", "bus-servers").inputs["spec"]["template"]["spec"]
    theirs = operator.one("nats.io/v1alpha2:NatsCluster", "bus").inputs["spec"]["template"]["spec"]

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

    made = declared_for(described.name, described.spec)

    assert {one.inputs["metadata"]["namespace"] for one in made} == {"training"}


def test_a_namespace_that_can_not_be_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bus.yaml"
    file.write_text(
        "apiVersion: nats.io/v1alpha2\nkind: NatsCluster\nmetadata: {name: bus, namespace: Train_ing}\nspec: {}\n"
    )

    with pytest.raises(InputError) as error:
        read_inputs([str(file)])

    assert [problem.path for problem in error.value.problems] == ["metadata.namespace"]


def test_images_without_a_shell_start_the_server_at_their_root(record: Record) -> None:
    def command(version: str) -> list[str]:
        spec = NatsSpec.model_validate({"version": version})
        servers = record(lambda: NatsCluster("bus", spec, namespace="n")).one("StatefulSet", "bus-servers").inputs
        return servers["spec"]["template"]["spec"]["containers"][0]["command"]

    assert command("2.6.6") == ["/nats-server"]
    assert command("2.14.2-alpine") == ["nats-server"]
