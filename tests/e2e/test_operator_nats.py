"""The NATS operator 0.8.3 with the rights that its component declares, from the first server to the last."""

import json
from typing import Any

import pulumi
import pytest
from operator_stack import OperatorStack, Program, wait_for
from persia_components.operators import nats
from pulumi_kubernetes import apiextensions

from persia_infra.operators import NatsOperatorSpec

TRAINING = "nats-training"


def cluster(size: int) -> dict[str, Any]:
    return {"size": size, "version": "2.10.26", "natsConfig": {"maxPayload": 52428800}}


def program(size: int | None) -> Program:
    def declare() -> None:
        operator = nats.NatsOperator("nats", NatsOperatorSpec())
        if size is not None:
            apiextensions.CustomResource(
                "probe",
                api_version="nats.io/v1alpha2",
                kind="NatsCluster",
                metadata={"name": "probe", "namespace": TRAINING},
                spec=cluster(size),
                opts=pulumi.ResourceOptions(depends_on=[operator]),
            )

    return declare


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack) -> OperatorStack:
    """Kinds, operator and a cluster of three in the very first preview and update."""
    operator_stack.kubectl("create", "namespace", TRAINING)
    assert operator_stack.preview(program(3))["create"]
    operator_stack.up(program(3))
    operator_stack.processes.start("nats-io", "nats-operator")
    return operator_stack


def servers(stack: OperatorStack) -> set[str]:
    return stack.running(TRAINING, "nats_cluster=probe")


def test_a_cluster_of_three_gets_pods_services_and_its_configuration(stack: OperatorStack) -> None:
    assert wait_for("three servers", lambda: servers(stack), until=lambda seen: len(seen) == 3) == {
        "probe-1",
        "probe-2",
        "probe-3",
    }
    assert stack.names("services", TRAINING) == {"probe", "probe-mgmt"}
    assert stack.names("secrets", TRAINING) == {"probe"}


def test_the_operator_rewrites_its_kinds_and_pulumi_sees_no_difference(stack: OperatorStack) -> None:
    rewritten = json.dumps(stack.get("crd", "default", "natsclusters.nats.io")["metadata"])
    wait_for("its start", lambda: stack.processes.requests("nats-io", "nats-operator"))
    assert "resourceVersion" in rewritten
    assert stack.refresh() == {}
    assert stack.up(program(3)) == {}


def test_it_grows_to_five_and_goes(stack: OperatorStack) -> None:
    stack.up(program(5))
    wait_for("five servers", lambda: servers(stack), until=lambda seen: len(seen) == 5)
    stack.up(program(2))
    wait_for("two servers", lambda: servers(stack), until=lambda seen: len(seen) == 2)
    stack.up(program(None))
    wait_for("no pods", lambda: stack.names("pods,services,secrets", TRAINING), until=lambda seen: not seen)


def test_it_has_the_rights_that_it_uses_and_no_others(stack: OperatorStack) -> None:
    stack.check_rights("nats-io", "nats-operator", nats.RIGHTS)
