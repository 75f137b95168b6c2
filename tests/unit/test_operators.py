"""Operators of an environment: images, versions that can't work, and what jobs need of them."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.errors import InputError
from persia_infra.operators import OperatorsSpec
from persia_infra.stack import parse_environment

DIGEST = f"sha256:{'0' * 64}"
Environment = dict[str, Any]


@pytest.fixture
def lines(description: Environment) -> Callable[..., list[str]]:
    def said(operators: dict[str, Any], **jobs: Any) -> list[str]:
        try:
            parse_environment({**description, "operators": operators, "jobs": jobs})
        except InputError as error:
            return str(error).splitlines()
        return []

    return said


@pytest.mark.parametrize(
    ("operators", "image"),
    [
        ({"nats": {}}, "natsio/nats-operator:0.8.3"),
        ({"mpi": {"digest": DIGEST}}, f"mpioperator/mpi-operator:0.8.2@{DIGEST}"),
        ({"paddle": {"registryMirror": "eu.pkg.dev/p/mirror"}}, "eu.pkg.dev/p/mirror/paddlecloud/controller:v0.3.1"),
        ({"registryMirror": "eu.pkg.dev", "mpi": {}}, "eu.pkg.dev/mpioperator/mpi-operator:0.8.2"),
        ({"mpi": {"image": "ghcr.io/example/mpi", "version": "0.8.2-1"}}, "ghcr.io/example/mpi:0.8.2-1"),
    ],
)
def test_an_image_is_pinned_and_can_come_from_a_mirror(operators: dict[str, Any], image: str) -> None:
    (installed,) = OperatorsSpec.model_validate(operators).installed.values()

    assert installed.image_reference() == image


@pytest.mark.parametrize(
    ("operators", "place", "said"),
    [
        ({"nats": {"version": "0.8.2"}}, "nats.version", "0.8.2 does not work: it registers its kinds through"),
        ({"mpi": {"version": "0.2.3"}}, "mpi.version", "v1alpha2"),
        ({"paddle": {"version": "0.2.0"}}, "paddle.version", "v1beta1"),
        ({"volcano": {"version": "1.10.0"}}, "volcano.version", "write 1.14.0 or newer"),
        ({"paddle": {"version": "v0.3.1"}}, "paddle.version", "leave it out"),
        ({"persia": {"replicas": 2}}, "persia.replicas", "less than or equal to 1"),
        ({"nats": {"namespace": "messaging"}}, "nats.namespace", "only from nats-io"),
        ({"volcano": {"queues": {"default": {}}}}, "volcano.queues.default", "made by Volcano itself"),
        ({"volcano": {"digest": DIGEST}}, "volcano.digest", "three images"),
        ({"mpi": {"image": "mpioperator/mpi-operator:0.8.2"}}, "mpi.image", "write the repository alone"),
        ({"mpi": {"pool": "none"}}, "mpi.pool", "no pool 'none' is described"),
        ({"mpi": {"watchedNamespace": "other"}}, "mpi.watchedNamespace", "not among the environment's namespaces"),
    ],
)
def test_what_can_not_work_is_refused_with_the_reason(
    lines: Callable[..., list[str]], operators: dict[str, Any], place: str, said: str
) -> None:
    (line,) = lines(operators)

    assert line.startswith(f"environment.operators.{place}: ")
    assert said in line


@pytest.mark.parametrize(("job", "operator"), [("mpi", "mpi"), ("paddle", "paddle"), ("training", "mpi")])
def test_a_job_without_its_operator_says_what_to_write(
    lines: Callable[..., list[str]], run_jobs: dict[str, Any], job: str, operator: str
) -> None:
    (line,) = lines({}, **{job: run_jobs[job]})

    assert line.startswith(f"environment.jobs.{job}: ")
    assert f"write operators: {{{operator}: {{}}}}" in line
    assert lines({operator: {}}, **{job: run_jobs[job]}) == []


def test_a_gang_needs_volcano_and_a_queue_that_exists(
    lines: Callable[..., list[str]], run_jobs: dict[str, Any]
) -> None:
    job = {**run_jobs["mpi"], "queue": "research"}

    (without,) = lines({"mpi": {}}, mpi=job)
    (wrong,) = lines({"mpi": {}, "volcano": {"queues": {"ads": {}}}}, mpi=job)

    assert "write operators: {volcano: {}}" in without
    assert "no queue 'research' is described" in wrong
    assert lines({"mpi": {}, "volcano": {"queues": {"research": {}}}}, mpi=job) == []


def test_an_operator_of_one_namespace_does_not_see_jobs_of_another(
    description: Environment, run_jobs: dict[str, Any]
) -> None:
    described = {
        **description,
        "namespaces": ["training", "other"],
        "operators": {"mpi": {"watchedNamespace": "other"}},
    }

    with pytest.raises(InputError, match="watches other alone"):
        parse_environment({**described, "jobs": {"mpi": {**run_jobs["mpi"], "namespace": "training"}}})


def test_volcano_tells_the_network_which_port_the_control_plane_calls(description: Environment) -> None:
    described = {**description, "network": {"webhookPorts": [9443]}}

    assert parse_environment({**described, "operators": {"volcano": {}}}).webhook_ports == [8443, 9443]
    assert parse_environment(described).webhook_ports == [9443]


def test_notes_say_what_a_choice_costs(description: Environment) -> None:
    spec = parse_environment({**description, "operators": {"nats": {}, "persia": {}}})

    notes = {place: said for place, said in spec.notes() if place[0] == "operators"}

    assert "advise against" in notes["operators", "nats"]
    assert "write digest" in notes["operators", "persia", "version"]
