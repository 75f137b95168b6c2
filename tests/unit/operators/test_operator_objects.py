"""The objects of operators: pods, rights, probes, webhooks and their order, as values."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.operators import (
    OPERATORS,
    MpiOperatorSpec,
    NatsOperatorSpec,
    OperatorSpec,
    PaddleOperatorSpec,
    PersiaOperatorSpec,
    VolcanoSpec,
)
from persia_infra.stack import parse_environment
from tests.support import kube_objects
from tests.support.kube_objects import Objects

DIGEST = f"sha256:{'0' * 64}"


def objects(spec: OperatorSpec, *, volcano: bool = False) -> Objects:
    return Objects(spec.objects(volcano_installed=volcano, placement=None))


def pod(operator: Objects, deployment: str) -> dict[str, Any]:
    return operator.body("Deployment", deployment)["spec"]["template"]["spec"]


def container(operator: Objects, deployment: str) -> dict[str, Any]:
    return kube_objects.container(pod(operator, deployment))


@pytest.fixture
def installed(description: dict[str, Any], operators: dict[str, Any]) -> Callable[..., dict[str, Objects]]:
    """The objects of all operators of an environment, by their key."""

    def build(**changes: Any) -> dict[str, Objects]:
        spec = parse_environment({**description, "operators": operators | changes, "jobs": {}})
        return {name: Objects(spec.operator_objects(each)) for name, each in spec.operators.installed.items()}

    return build


@pytest.mark.parametrize("volcano", [False, True])
def test_operators_make_gangs_only_where_volcano_is_installed(volcano: bool) -> None:
    mpi, paddle = objects(MpiOperatorSpec(), volcano=volcano), objects(PaddleOperatorSpec(), volcano=volcano)
    rules = mpi.body("ClusterRole", "mpi-operator")["rules"]

    assert ("--gang-scheduling=volcano" in container(mpi, "mpi-operator")["args"]) == volcano
    assert ("--scheduling=volcano" in container(paddle, "paddle-operator")["args"]) == volcano
    assert any(rule["apiGroups"] == ["scheduling.volcano.sh"] for rule in rules) == volcano


def test_every_operator_is_placed_on_a_pool_without_gpus_and_confined(
    installed: Callable[..., dict[str, Objects]],
) -> None:
    pods = [each for operator in installed().values() for each in operator.pods()]

    assert len(pods) == 7
    for each in pods:
        only = kube_objects.container(each)
        assert each["nodeSelector"] == {"persia-infra/pool": "cpu"}
        assert each["securityContext"]["runAsNonRoot"] is True
        assert only["securityContext"]["allowPrivilegeEscalation"] is False
        assert only["securityContext"]["readOnlyRootFilesystem"] is True
        assert only["resources"]["limits"]["memory"]


def test_every_image_is_pinned_to_a_version(installed: Callable[..., dict[str, Objects]]) -> None:
    """PERSIA's authors never published another tag than latest, so only a digest can pin it."""
    for operator in installed(persia={"digest": DIGEST}).values():
        for each in operator.pods():
            image = kube_objects.container(each)["image"]
            assert re.fullmatch(rf"[^:@]+:v?\d+\.\d+\.\d+|[^:@]+:latest@{DIGEST}", image), image


@pytest.mark.parametrize(
    ("persia", "policy"),
    [
        ({}, "Always"),
        ({"digest": DIGEST}, "IfNotPresent"),
        ({"version": "1.0"}, "IfNotPresent"),
    ],
)
def test_an_image_is_pulled_again_only_where_its_tag_may_have_moved(persia: dict[str, Any], policy: str) -> None:
    spec = PersiaOperatorSpec.model_validate(persia)

    assert container(objects(spec), "persia-operator")["imagePullPolicy"] == policy


def test_operators_tolerate_the_taints_of_the_pool_that_they_name(
    description: dict[str, Any], installed: Callable[..., dict[str, Objects]]
) -> None:
    description["pools"]["system"] = {
        "machineType": "e2-standard-4",
        "count": 1,
        "taints": [{"key": "dedicated", "value": "system", "effect": "NoSchedule"}],
    }

    (only,) = installed(mpi={"pool": "system"})["mpi"].pods()

    assert only["nodeSelector"] == {"persia-infra/pool": "system"}
    assert only["tolerations"] == [{"key": "dedicated", "operator": "Equal", "value": "system", "effect": "NoSchedule"}]


def test_an_operator_of_one_namespace_has_rights_there_only() -> None:
    mpi = objects(MpiOperatorSpec(watched_namespace="training"))

    everywhere = mpi.body("ClusterRole", "mpi-operator")["rules"]
    watched = mpi.body("Role", "mpi-operator")

    assert [rule["resources"] for rule in everywhere] == [["priorityclasses"]]
    assert watched["metadata"]["namespace"] == "training"
    assert "--namespace=training" in container(mpi, "mpi-operator")["args"]


def test_operators_live_under_the_strictest_pod_security(installed: Callable[..., dict[str, Objects]]) -> None:
    namespaces = {body["metadata"]["name"]: body for each in installed().values() for body in each.of_kind("Namespace")}

    assert set(namespaces) == {"nats-io", "mpi-operator", "paddle-system", "persia-system", "volcano-system"}
    for body in namespaces.values():
        assert body["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize(
    ("spec", "deployment", "port"),
    [
        (MpiOperatorSpec(), "mpi-operator", 8080),
        (NatsOperatorSpec(), "nats-operator", 8080),
        (PaddleOperatorSpec(), "paddle-operator", 8081),
        (VolcanoSpec(), "volcano-scheduler", 11251),
        (VolcanoSpec(), "volcano-controllers", 11251),
        (VolcanoSpec(), "volcano-admission", 11251),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_health_is_asked_on_the_port_that_the_program_serves_it_on(
    spec: OperatorSpec, deployment: str, port: int
) -> None:
    """The programs' own defaults, which the tests with the real programs confirm."""
    only = container(objects(spec), deployment)
    ports = {each["name"]: each["containerPort"] for each in only["ports"]}

    assert ports[only["livenessProbe"]["httpGet"]["port"]] == port


@pytest.mark.parametrize("part", ["volcano-scheduler", "volcano-controllers", "volcano-admission"])
def test_a_part_of_volcano_that_hangs_is_started_again(part: str) -> None:
    only = container(objects(VolcanoSpec()), part)

    assert only["livenessProbe"]["httpGet"]["port"] == "health"
    assert "--enable-healthz=true" in only["args"]
    assert only["livenessProbe"]["httpGet"].get("scheme") == ("HTTPS" if part == "volcano-admission" else None)


def test_the_nats_operator_runs_where_it_watches() -> None:
    nats = objects(NatsOperatorSpec(watched_namespace="training"))

    assert nats.body("Deployment", "nats-operator")["metadata"]["namespace"] == "training"
    assert nats.names("Namespace") == set()
    assert "--feature-gates=ClusterScoped=true" not in container(nats, "nats-operator").get("args", [])


def test_the_persia_operator_never_runs_twice_while_it_is_updated() -> None:
    """It elects no leader, so two of them would create every pod twice."""
    deployment = objects(PersiaOperatorSpec()).body("Deployment", "persia-operator")

    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}


class TestVolcanoWebhooks:
    @pytest.fixture
    def volcano(self) -> Objects:
        return objects(VolcanoSpec.model_validate({"namespace": "gangs", "queues": {"ads": {}, "news": {}}}))

    @staticmethod
    def webhooks(volcano: Objects) -> list[dict[str, Any]]:
        kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        return [webhook for kind in kinds for body in volcano.of_kind(kind) for webhook in body["webhooks"]]

    def test_pods_of_volcano_and_the_system_start_without_them(self, volcano: Objects) -> None:
        """Otherwise Volcano could not start again once it has ended."""
        assert self.webhooks(volcano)
        for webhook in self.webhooks(volcano):
            (expression,) = webhook["namespaceSelector"]["matchExpressions"]
            assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
            assert set(expression["values"]) == {"gangs", "kube-system"}

    def test_they_come_after_the_queues_and_the_program_that_answers(self, volcano: Objects) -> None:
        """A queue that is created while the webhooks are on, but do not answer, is refused."""
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            for name in volcano.names(kind):
                needs = volcano.needs(kind, name)
                assert {("Queue", "ads"), ("Queue", "news"), ("Service", "volcano-admission-service")} <= needs

    def test_queues_come_after_their_kind(self, volcano: Objects) -> None:
        assert ("CustomResourceDefinition", "queues.scheduling.volcano.sh") in volcano.needs("Queue", "ads")


def test_a_deployment_comes_after_its_kinds_its_account_and_its_rights() -> None:
    mpi = objects(MpiOperatorSpec())

    kinds = {kind for kind, _ in mpi.needs("Deployment", "mpi-operator")}

    assert kinds >= {"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


def test_programs_of_a_rehearsal_belong_to_deployments_of_their_operator() -> None:
    for operator in OPERATORS:
        deployments = objects(operator.model_validate({})).names("Deployment")
        assert {program.deployment for program in operator.PROGRAMS} == deployments, operator.NAME
