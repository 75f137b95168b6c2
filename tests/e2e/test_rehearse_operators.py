"""`persia-infra rehearse --operators`: the jobs of a stack come to life, and go before their operators."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.operator_project import PROJECT, STACK, write_project

PODS = {
    # Its launcher, which has ended; its workers went with that.
    "training/resnet50-launcher": 1,
    "training/resnet50-single": 1,
    "paddle/wide-and-deep-ps": 2,
    "paddle/wide-and-deep-worker": 2,
    "paddle/paddle-resnet-worker": 2,
    "persia/adult-income-embedding-ps": 1,
    "persia/adult-income-embedding-worker": 1,
    "persia/adult-income-nn-worker": 1,
    "persia/adult-income-dataloader": 1,
    "persia/adult-income-metrics-gateway": 1,
    "persia/adult-income-nats": 1,
    "mpi-operator/mpi-operator": 1,
    "paddle-system/paddle-operator": 1,
    "persia-system/persia-operator": 1,
}
"""How many run, by namespace and what their names begin with."""


def rehearsed(stack: str, project: Path = PROJECT) -> dict[str, Any]:
    program = Path(sys.executable).parent / "persia-infra"
    command = [program, "rehearse", stack, "--operators", "--destroy", "--json", "-C", project]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def report(operator_tools: object) -> dict[str, Any]:  # noqa: ARG001
    return rehearsed("staging")


def test_the_jobs_come_to_life(report: dict[str, Any]) -> None:
    assert report["pending"] == []
    assert report["errors"] == []
    counted = Counter(next((begin for begin in PODS if pod.startswith(begin)), pod) for pod in report["running"])
    assert counted == PODS


def test_a_second_update_changes_nothing_and_a_destroy_leaves_nothing(report: dict[str, Any]) -> None:
    assert report["changed_by_second_up"] == []
    assert report["left_behind"] == []
    assert report["verdict"] == "pass"


def test_the_operators_ran(report: dict[str, Any]) -> None:
    assert set(report["operators"]) == {"mpi-operator", "paddle-operator", "persia-operator"}


GANG = {
    "kind": "PaddleJob",
    "queue": "research",
    "cleanPodPolicy": "Never",
    "worker": {
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "paddle", "image": "example/paddle:1"}]}},
    },
}


@pytest.mark.usefixtures("operator_tools")
def test_volcano_and_its_webhooks_come_up_and_start_a_gang(tmp_path: Path) -> None:
    operators = {"nats": {}, "paddle": {}, "volcano": {"queues": {"research": {}}}}
    write_project(tmp_path, operators, jobs={"together": GANG})

    report = rehearsed(STACK, tmp_path)

    assert report["errors"] == report["pending"] == report["left_behind"] == []
    assert {"volcano-scheduler", "volcano-controllers", "volcano-admission", "paddle-operator"} <= set(
        report["operators"]
    )
    assert {"training/together-worker-0", "training/together-worker-1"} <= set(report["running"])
    assert report["verdict"] == "pass"
