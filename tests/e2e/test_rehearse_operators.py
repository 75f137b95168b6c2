"""`persia-infra rehearse --operators` on the staging stack: its jobs come to life, and go before their operators."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
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


@pytest.fixture(scope="module")
def report(mpi_port: None, operator_tools: object) -> dict[str, Any]:  # noqa: ARG001
    command = [
        Path(sys.executable).parent / "persia-infra",
        "rehearse",
        "staging",
        "--operators",
        "--destroy",
        "--json",
    ]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


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
