"""Operators confined to one namespace: they run their jobs there, with rights there and almost nowhere else."""

from typing import Any

import pytest
from persia_components import Operator

from persia_infra.operators import MpiOperatorSpec, NatsOperatorSpec, PaddleOperatorSpec, mpi, nats, paddle
from persia_infra.operators.rights import Rights
from tests.support.operator_stack import OperatorStack, wait_for

TRAINING = "confined-training"
OPERATORS: dict[str, tuple[str, Rights, frozenset[tuple[str, str]]]] = {
    "mpi-operator": ("mpi-operator", mpi.RIGHTS, frozenset()),
    "paddle-operator": ("paddle-system", paddle.RIGHTS, frozenset()),
    # It looks for accounts in every namespace, and passes over those that it may not look into.
    "nats-operator": (TRAINING, nats.RIGHTS, frozenset({("serviceaccounts", "get")})),
}
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "registry.example/train:1"}]}}
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "MPIJob": (
        "kubeflow.org/v2beta1",
        {
            "runPolicy": {"cleanPodPolicy": "None"},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": TEMPLATE},
                "Worker": {"replicas": 1, "template": TEMPLATE},
            },
        },
    ),
    "PaddleJob": ("batch.paddlepaddle.org/v1", {"worker": {"replicas": 2, "template": TEMPLATE}}),
    "NatsCluster": ("nats.io/v1alpha2", {"size": 1, "version": "2.10.26", "auth": {"enableServiceAccounts": True}}),
}
PODS = {
    "MPIJob": "training.kubeflow.org/job-role=worker",
    "PaddleJob": "paddle-res-type=worker",
    "NatsCluster": "nats_cluster=confined",
}


def declare() -> None:
    Operator("mpi", MpiOperatorSpec(watched_namespace=TRAINING))
    Operator("paddle", PaddleOperatorSpec(watched_namespace=TRAINING))
    Operator("nats", NatsOperatorSpec(watched_namespace=TRAINING))


def job(kind: str, namespace: str) -> dict[str, Any]:
    version, spec = JOBS[kind]
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "confined", "namespace": namespace},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack) -> OperatorStack:
    for namespace in (TRAINING, "elsewhere"):
        operator_stack.kubectl("create", "namespace", namespace)
    operator_stack.up(declare)
    for name, (namespace, _, _) in OPERATORS.items():
        operator_stack.processes.start(namespace, name)
    return operator_stack


@pytest.mark.parametrize("kind", JOBS)
def test_it_runs_jobs_of_its_namespace_and_no_others(stack: OperatorStack, kind: str) -> None:
    stack.apply(job(kind, "elsewhere"), job(kind, TRAINING))

    wait_for("pods of the job", lambda: stack.running(TRAINING, PODS[kind]))
    assert stack.names("pods", "elsewhere") == set()
    for namespace in (TRAINING, "elsewhere"):
        stack.kubectl("delete", kind, "--namespace", namespace, "confined")
    wait_for("they go", lambda: stack.names("pods", TRAINING, PODS[kind]), until=lambda seen: not seen)


@pytest.mark.parametrize("name", OPERATORS)
def test_it_has_the_rights_that_it_uses_and_no_others(stack: OperatorStack, name: str) -> None:
    namespace, rights, tries = OPERATORS[name]

    stack.check_rights(namespace, name, rights, watched=TRAINING, partly=True, tries=tries)
