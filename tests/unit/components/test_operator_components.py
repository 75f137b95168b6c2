"""Operators as the engine is asked for them."""

from collections.abc import Callable
from typing import Any

import pytest
from persia_components import Environment, MpiOperator, NatsOperator, Volcano

from persia_infra.operators.specs import MpiOperatorSpec, NatsOperatorSpec, VolcanoSpec
from persia_infra.stack import parse_environment

Record = Callable[..., Any]


@pytest.fixture
def environment(
    description: dict[str, Any], run_jobs: dict[str, Any], record: Record
) -> Callable[[dict[str, Any]], Any]:
    def run(operators: dict[str, Any]) -> Any:
        jobs = {"mpi": run_jobs["mpi"], "paddle": run_jobs["paddle"]}
        spec = parse_environment({**description, "operators": operators, "jobs": jobs})
        return record(lambda: Environment("dev", spec))

    return run


def container(recording: Any, name: str) -> dict[str, Any]:
    return recording.one("Deployment", name).inputs["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("volcano", [False, True])
def test_gangs_follow_from_volcano_being_there(environment: Callable[..., Any], volcano: bool) -> None:
    recording = environment({"mpi": {}, "paddle": {}, **({"volcano": {}} if volcano else {})})

    mpi = container(recording, "dev-mpi-operator-mpi-operator")
    paddle = container(recording, "dev-paddle-operator-paddle-operator")
    rules = recording.one("ClusterRole", "dev-mpi-operator-mpi-operator").inputs["rules"]

    assert ("--gang-scheduling=volcano" in mpi["args"]) == volcano
    assert ("--scheduling=volcano" in paddle["args"]) == volcano
    assert any(rule["apiGroups"] == ["scheduling.volcano.sh"] for rule in rules) == volcano


def test_every_operator_is_placed_confined_and_pinned(
    environment: Callable[..., Any], operators: dict[str, Any]
) -> None:
    recording = environment(operators)
    deployments = [one for one in recording.all if one.type.endswith(":Deployment")]

    assert len(deployments) == 7
    for deployment in deployments:
        pod = deployment.inputs["spec"]["template"]["spec"]
        (only,) = pod["containers"]
        assert pod["nodeSelector"] == {"persia-infra/pool": "cpu"}, deployment.name
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert only["securityContext"]["allowPrivilegeEscalation"] is False
        assert only["resources"]["limits"]["memory"]
        assert ":" in only["image"]


def test_a_job_depends_on_its_operator(environment: Callable[..., Any], operators: dict[str, Any]) -> None:
    recording = environment(operators)

    for job, operator in (("PaddleJob", "paddle"), ("MpiJob", "mpi")):
        (made,) = [one for one in recording.all if one.type.endswith(f":{job}") and not one.custom]
        assert f"dev-{operator}-operator-{operator}-operator" in made.depends_on


def test_an_operator_of_one_namespace_has_rights_there_only(record: Record) -> None:
    recording = record(lambda: MpiOperator("mpi", MpiOperatorSpec(watched_namespace="training")))

    everywhere = recording.one("ClusterRole", "mpi-mpi-operator").inputs["rules"]
    (watched,) = [one for one in recording.all if one.type.endswith(":Role") and one.name == "mpi-mpi-operator"]

    assert [rule["resources"] for rule in everywhere] == [["priorityclasses"]]
    assert watched.inputs["metadata"]["namespace"] == "training"
    assert "--namespace=training" in container(recording, "mpi-mpi-operator")["args"]


def test_operators_live_under_the_strictest_pod_security(
    environment: Callable[..., Any], operators: dict[str, Any]
) -> None:
    recording = environment(operators)
    namespaces = {one.inputs["metadata"]["name"]: one for one in recording.all if one.type.endswith(":Namespace")}

    for name in ("nats-io", "mpi-operator", "paddle-system", "persia-system", "volcano-system"):
        assert namespaces[name].inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("part", ["volcano-scheduler", "volcano-controllers", "volcano-admission"])
def test_a_part_of_volcano_that_hangs_is_started_again(record: Record, part: str) -> None:
    recording = record(lambda: Volcano("volcano", VolcanoSpec()))

    only = container(recording, f"volcano-{part}")
    (health,) = [port["containerPort"] for port in only["ports"] if port["name"] == "health"]

    assert only["livenessProbe"]["httpGet"]["port"] == "health"
    assert health == 11251
    assert "--enable-healthz=true" in only["args"]
    assert only["livenessProbe"]["httpGet"].get("scheme") == ("HTTPS" if part == "volcano-admission" else None)


def test_what_is_asked_for_is_the_same_every_time_but_for_the_certificate(
    environment: Callable[..., Any], operators: dict[str, Any]
) -> None:
    def asked() -> dict[tuple[str, str], Any]:
        made = [one for one in environment(operators).all if one.custom and not one.ignored]
        return {(one.type, one.name): one.inputs for one in made if "WebhookConfiguration" not in one.type}

    assert asked() == asked()


def test_the_nats_operator_runs_where_it_watches(record: Record) -> None:
    recording = record(lambda: NatsOperator("nats", NatsOperatorSpec(watched_namespace="training")))

    deployment = recording.one("Deployment", "nats-nats-operator").inputs
    assert deployment["metadata"]["namespace"] == "training"
    assert recording.names("Namespace") == set()
    assert "--feature-gates=ClusterScoped=true" not in container(recording, "nats-nats-operator").get("args", [])


def test_volcanos_certificate_is_kept_until_another_is_asked_for(record: Record) -> None:
    def secret(certificate: str) -> Any:
        recording = record(lambda: Volcano("volcano", VolcanoSpec(webhook_certificate=certificate)))
        (found,) = [one for one in recording.all if one.type.endswith(":Secret")]
        return found

    first, second, rotated = secret("1"), secret("1"), secret("2")

    assert first.ignored == ("data",)
    assert first.inputs["data"] != second.inputs["data"], "made anew, so only the state keeps it"
    assert first.inputs["metadata"]["name"] == second.inputs["metadata"]["name"]
    assert rotated.inputs["metadata"]["name"] != first.inputs["metadata"]["name"]
    assert rotated.name != first.name
