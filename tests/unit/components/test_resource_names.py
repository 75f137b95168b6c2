"""Types, logical names and parents of resources, by which the engine knows what is deployed already.

A changed one means that the engine replaces a running job or operator, unless an alias covers it.
"""

from collections.abc import Callable
from typing import Any

import pytest
from persia_components import Environment

from persia_infra.stack import parse_environment
from tests.support.golden import assert_recorded
from tests.support.project import PROJECT

SHARE = {"volume_type": "nfs", "name": "share", "mount_path": "/s", "spec": {"server": "10.0.0.2", "path": "/x"}}
INSTALLED = {
    "machineType": "a2-highgpu-1g",
    "autoscaling": {"min": 0, "max": 1},
    "image": "UBUNTU_CONTAINERD",
    "driver": {"install": "INSTALLER"},
}


def native(description: dict[str, Any]) -> None:
    description["pools"]["installed"] = INSTALLED
    description["jobs"]["ads"]["nnWorker"]["pool"] = "gpu"
    description["jobs"]["ads"]["dataloader"]["settings"] = {"volumes": [SHARE]}


def by_operators(description: dict[str, Any]) -> None:
    description["jobs"]["ads"] |= {"mode": "operator", "nats": {"mode": "operator"}}


def gangs(description: dict[str, Any]) -> None:
    for job in description["jobs"].values():
        job["gang"] = True
    description["jobs"]["training"]["nodes"] = 1


@pytest.mark.parametrize("change", [native, by_operators, gangs], ids=lambda change: change.__name__)
def test_names_of_resources_are_as_recorded(
    description: dict[str, Any],
    run_jobs: dict[str, Any],
    operators: dict[str, Any],
    record: Callable[..., Any],
    change: Callable[[dict[str, Any]], None],
) -> None:
    description["jobs"] |= run_jobs
    description["operators"] = operators
    change(description)
    spec = parse_environment(description)

    recording = record(lambda: Environment("dev", spec))

    lines = sorted(f"{each.type} {each.name} below {each.parent}\n" for each in recording.all)
    assert_recorded(PROJECT / "tests" / "golden" / "resource_names" / f"{change.__name__}.txt", "".join(lines))
