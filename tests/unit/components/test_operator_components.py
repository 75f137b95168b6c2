"""Operators as the engine is asked for them."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from persia_components import Environment, Operator

from persia_infra.operators import OPERATORS, VolcanoSpec
from persia_infra.stack import parse_environment

Record = Callable[..., Any]


@pytest.fixture
def environment(
    description: dict[str, Any], run_jobs: dict[str, Any], record: Record
) -> Callable[[dict[str, Any]], Any]:
    def run(operators: dict[str, Any]) -> Any:
        jobs = {name: run_jobs[name] for name in ("mpi", "paddle") if name in operators}
        spec = parse_environment({**description, "operators": operators, "jobs": jobs})
        return record(lambda: Environment("dev", spec))

    return run


def components(recording: Any) -> dict[str, Any]:
    """The components of operators by their key."""
    tokens = {f"persia-infra:index:{operator.COMPONENT}": operator.NAME for operator in OPERATORS}
    return {tokens[each.type]: each for each in recording.all if each.type in tokens}


def test_a_job_depends_on_its_operator(environment: Callable[..., Any], operators: dict[str, Any]) -> None:
    recording = environment(operators)

    for job, operator in (("PaddleJob", "paddle"), ("MpiJob", "mpi")):
        (made,) = [one for one in recording.all if one.type.endswith(f":{job}") and not one.custom]
        assert f"dev-{operator}-operator-{operator}-operator" in made.depends_on


def test_names_and_types_of_operators_stay_as_they_are(
    environment: Callable[..., Any], operators: dict[str, Any]
) -> None:
    """Other ones would make the engine replace operators that are deployed."""
    named = {name: (each.type, each.name, each.parent) for name, each in components(environment(operators)).items()}

    assert named == {
        "nats": ("persia-infra:index:NatsOperator", "dev-nats-operator", "dev"),
        "mpi": ("persia-infra:index:MpiOperator", "dev-mpi-operator", "dev"),
        "paddle": ("persia-infra:index:PaddleOperator", "dev-paddle-operator", "dev"),
        "persia": ("persia-infra:index:PersiaOperator", "dev-persia-operator", "dev"),
        "volcano": ("persia-infra:index:Volcano", "dev-volcano-operator", "dev"),
    }


def test_operators_that_make_gangs_are_installed_after_volcano(environment: Callable[..., Any]) -> None:
    found = components(environment({"volcano": {}, "nats": {}, "mpi": {}, "paddle": {}, "persia": {}}))
    after_volcano = {name for name, each in found.items() if any("volcano" in needed for needed in each.depends_on)}

    assert after_volcano == {"mpi", "paddle"}


def test_without_volcano_no_operator_waits_for_another(environment: Callable[..., Any]) -> None:
    recording = environment({"nats": {}, "mpi": {}, "paddle": {}, "persia": {}})
    found = components(recording)
    names = {each.name for each in recording.all if each.name.startswith(tuple(one.name for one in found.values()))}

    assert {name: each.depends_on & names for name, each in found.items()} == dict.fromkeys(found, frozenset())


def test_an_operator_waits_for_its_pool_and_the_namespaces(environment: Callable[..., Any]) -> None:
    mpi = components(environment({"mpi": {}}))["mpi"]

    assert {"dev-cpu", "dev-training"} <= mpi.depends_on
    assert "dev-gpu" not in mpi.depends_on


def test_what_is_asked_for_is_the_same_every_time_but_for_the_certificate(
    environment: Callable[..., Any], operators: dict[str, Any]
) -> None:
    def asked() -> dict[tuple[str, str], Any]:
        made = [one for one in environment(operators).all if one.custom and not one.ignored]
        return {(one.type, one.name): one.inputs for one in made if "WebhookConfiguration" not in one.type}

    assert asked() == asked()


def test_volcanos_certificate_is_kept_until_another_is_asked_for(record: Record) -> None:
    def secret(certificate: str) -> Any:
        recording = record(lambda: Operator("volcano", VolcanoSpec(webhook_certificate=certificate)))
        (found,) = [one for one in recording.all if one.type.endswith(":Secret")]
        return found

    first, second, rotated = secret("1"), secret("1"), secret("2")

    assert first.ignored == ("data",)
    assert first.inputs["data"] != second.inputs["data"], "made anew, so only the state keeps it"
    assert first.inputs["metadata"]["name"] == second.inputs["metadata"]["name"]
    assert rotated.inputs["metadata"]["name"] != first.inputs["metadata"]["name"]
    assert rotated.name != first.name


def test_webhooks_trust_the_certificate_that_is_deployed(record: Record) -> None:
    recording = record(lambda: Operator("volcano", VolcanoSpec()))
    (bundle,) = {
        webhook["clientConfig"]["caBundle"]
        for one in recording.all
        if one.custom and "WebhookConfiguration" in one.type
        for webhook in one.inputs["webhooks"]["value"]  # a secret on Pulumi's wire
    }

    assert base64.b64decode(bundle).startswith(b"-----BEGIN CERTIFICATE-----")
