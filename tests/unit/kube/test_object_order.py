"""Objects of every kind of job, NATS mode, operator and driver installer come after everything that they need."""

from collections.abc import Iterator
from typing import Any

import pytest

from persia_infra.gke.driver_objects import installer_objects
from persia_infra.gke.drivers import Installer
from persia_infra.jobs import JOB_KINDS
from persia_infra.kube.objects import KubeObject, ObjectGroup
from persia_infra.nats.objects import nats_objects
from persia_infra.nats.spec import NatsSpec
from persia_infra.operators import OPERATORS
from persia_infra.stack import parse_environment

SHARE = {"volume_type": "nfs", "name": "share", "mount_path": "/s", "spec": {"server": "10.0.0.2", "path": "/x"}}


def misplaced(group: ObjectGroup, before: tuple[object, ...] = ()) -> Iterator[str]:
    """What needs something that is not declared before it in the same group."""
    declared: list[object] = [*before]
    for member in group.members:
        if isinstance(member, ObjectGroup):
            yield from misplaced(member)
        else:
            yield from (f"{member.suffix} needs {needed.suffix}" for needed in member.needs if needed not in declared)
        declared.append(member)


def doubled(group: ObjectGroup) -> list[tuple[str, str]]:
    """Types and logical names that two objects share, which the engine refuses."""
    named = [(member.type_token, name) for name, member in group.named_objects("x")]
    return sorted({each for each in named if named.count(each) > 1})


def is_right(group: ObjectGroup) -> bool:
    assert list(misplaced(group)) == []
    assert doubled(group) == []
    return any(True for _ in group.named_objects("x"))


def test_an_object_before_what_it_needs_would_be_noticed() -> None:
    first = KubeObject("-a", {"apiVersion": "v1", "kind": "Secret"})
    second = KubeObject("-b", {"apiVersion": "v1", "kind": "Service"}, (first,))

    assert list(misplaced(ObjectGroup("X", (first, second)))) == []
    assert list(misplaced(ObjectGroup("X", (second, first)))) == ["-b needs -a"]


JOBS = ("ads", "mpi", "paddle", "single", "training", "one-node")


@pytest.mark.parametrize(
    ("name", "gang"),
    # The PERSIA operator makes no gangs.
    [*((name, gang) for name in JOBS for gang in (False, True)), ("by-operators", False)],
)
def test_objects_of_jobs_come_after_what_they_need(
    description: dict[str, Any], run_jobs: dict[str, Any], operators: dict[str, Any], name: str, gang: bool
) -> None:
    ads = description["jobs"]["ads"]
    jobs = {
        **run_jobs,
        "ads": {**ads, "dataloader": {**ads["dataloader"], "settings": {"volumes": [SHARE]}}},
        "by-operators": {**ads, "mode": "operator", "nats": {"mode": "operator"}},
        "one-node": {**run_jobs["training"], "nodes": 1},
    }
    kinds = {job["kind"] for job in jobs.values()}
    assert kinds == {kind.model_fields["kind"].default for kind in JOB_KINDS}, "a kind of job is missing here"
    spec = parse_environment(
        {**description, "operators": operators, "jobs": {name: {**jobs[name], **({"gang": True} if gang else {})}}}
    )

    assert is_right(spec.job_objects(name))


@pytest.mark.parametrize("mode", ["native", "operator"])
@pytest.mark.parametrize("more", [{}, {"tls": {"serverSecret": "t"}, "auth": {"clientsAuthSecret": "a"}}])
def test_objects_of_nats_come_after_what_they_need(mode: str, more: dict[str, Any]) -> None:
    assert is_right(nats_objects(NatsSpec.model_validate({"mode": mode, **more}), "bus", "training"))


@pytest.mark.parametrize("volcano", [False, True])
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.NAME)
def test_objects_of_operators_come_after_what_they_need(operator: Any, volcano: bool) -> None:
    queues = {"queues": {"ads": {}}} if operator.NAME == "volcano" else {}
    spec = operator.model_validate(queues)

    assert is_right(spec.objects(volcano_installed=volcano, placement=None))


@pytest.mark.parametrize("distribution", ["cos", "ubuntu"])
def test_objects_of_driver_installers_come_after_what_they_need(distribution: Any) -> None:
    assert is_right(installer_objects(Installer(distribution, None, ("gpu",))))
