"""`persia-infra rehearse --operators` on the staging stack: its jobs come to life, and go before their operators."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]


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
    # Two operators, two MPI workers and their launcher, four pods of wide-and-deep, two of paddle-resnet, one single.
    assert report["pods"]["running"] >= 10


def test_a_second_update_changes_nothing_and_a_destroy_leaves_nothing(report: dict[str, Any]) -> None:
    assert report["changed_by_second_up"] == []
    assert report["left_behind"] == []
    assert report["verdict"] == "pass"


def test_the_operators_ran(report: dict[str, Any]) -> None:
    assert set(report["operators"]) == {"mpi-operator", "paddle-operator"}
