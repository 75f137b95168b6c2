"""Operators of an environment: images, versions that can't work, and what jobs need of them."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.jobs import MPIJobSpec
from persia_infra.operators import operators_model
from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment
from tests.support.run_jobs import object_spec

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
    (installed,) = operators_model().model_validate(operators).installed.values()

    assert installed.image_reference() == image


@pytest.mark.parametrize(
    ("operators", "place", "said"),
    [
        ({"nats": {"version": "0.8.2"}}, "nats.version", "0.8.2 does not work: it registers its kinds through"),
        ({"mpi": {"version": "0.2.3"}}, "mpi.version", "does not support kubeflow.org/v2beta1"),
        ({"mpi": {"version": "0.5.0"}}, "mpi.version", "runPolicy.managedBy"),
        ({"mpi": {"version": "0.9.0"}}, "mpi.version", "may need other kinds and rights; write 0.8.2"),
        ({"volcano": {"version": "1.15.1"}}, "volcano.version", "write 1.14.1"),
        ({"mpi": {"version": "v0.8.2"}}, "mpi.version", "'v0.8.2' is not a valid version"),
        ({"mpi": {"version": "latest"}}, "mpi.version", "'latest' is not a valid version"),
        ({"nats": {"version": ""}}, "nats.version", "is not a valid image tag"),
        ({"persia": {"version": "a b"}}, "persia.version", "is not a valid image tag"),
        ({"mpi": {"namespace": "kube-system"}}, "mpi.namespace", "belongs to Kubernetes or GKE"),
        ({"paddle": {"namespace": "default"}}, "paddle.namespace", "belongs to Kubernetes or GKE"),
        (
            {"mpi": {}, "paddle": {"namespace": "mpi-operator"}},
            "paddle.namespace",
            "is also the namespace of the mpi",
        ),
        ({"mpi": {}, "registryMirror": "https://x"}, "registryMirror", "is not a valid registry"),
        ({"mpi": {"registryMirror": "https://x"}}, "mpi.registryMirror", "is not a valid registry"),
        ({"mpi": {"image": "my image"}}, "mpi.image", "is not a valid repository"),
        ({"mpi": {"resources": {"requests": {"cpu": "100"}}}}, "mpi.resources", "node of pool cpu offers pods"),
        (
            {"volcano": {"queues": {"a": {"parent": "a"}}}},
            "volcano.queues.a.parent",
            "either weights or a tree of queues",
        ),
        (
            {"volcano": {"queues": {"a": {"reclaimable": True}}}},
            "volcano.queues.a.reclaimable",
            "does not reclaim resources from a running gang",
        ),
        ({"paddle": {"version": "0.2.0"}}, "paddle.version", "v1beta1"),
        ({"volcano": {"version": "1.10.0"}}, "volcano.version", "write 1.14.0 or newer"),
        ({"paddle": {"version": "v0.3.1"}}, "paddle.version", "without 'v', which is added automatically"),
        ({"persia": {"replicas": 2}}, "persia.replicas", "less than or equal to 1"),
        ({"nats": {"namespace": "messaging"}}, "nats.namespace", "only from nats-io"),
        ({"volcano": {"queues": {"default": {}}}}, "volcano.queues.default", "created by Volcano itself"),
        ({"volcano": {"digest": DIGEST}}, "volcano.digest", "three images"),
        ({"mpi": {"image": "mpioperator/mpi-operator:0.8.2"}}, "mpi.image", "without a scheme, tag or digest"),
        ({"mpi": {"pool": "none"}}, "mpi.pool", "there is no pool 'none'"),
        ({"mpi": {"watchedNamespace": "other"}}, "mpi.watchedNamespace", "not among the environment's namespaces"),
    ],
)
def test_operators_that_cannot_work_are_refused_with_the_reason(
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
    assert "there is no queue 'research'" in wrong
    assert lines({"mpi": {}, "volcano": {"queues": {"research": {}}}}, mpi=job) == []


def in_its_own_words(job: dict[str, Any], kind: str, queue: str) -> dict[str, Any]:
    policy = {"schedulingPolicy": {"queue": queue}}
    return {**job, **({"runPolicy": policy} if kind == "mpi" else policy)}


@pytest.mark.parametrize(
    ("kind", "place"), [("mpi", "runPolicy.schedulingPolicy.queue"), ("paddle", "schedulingPolicy.queue")]
)
def test_a_queue_in_the_manifests_own_words_is_held_to_the_same(
    lines: Callable[..., list[str]], run_jobs: dict[str, Any], kind: str, place: str
) -> None:
    job = in_its_own_words(run_jobs[kind], kind, "nope")

    (without,) = lines({kind: {}}, job=job)
    (wrong,) = lines({kind: {}, "volcano": {}}, job=job)

    assert without.startswith(f"environment.jobs.job.{place}: ")
    assert "write operators: {volcano: {}}" in without
    assert wrong.startswith(f"environment.jobs.job.{place}: there is no queue 'nope'")
    assert lines({kind: {}, "volcano": {"queues": {"nope": {}}}}, job=job) == []


def with_scheduler(job: dict[str, Any], kind: str, scheduler: str) -> tuple[dict[str, Any], str]:
    """The job with a schedulerName in its first role, and where that is."""
    changed = copy.deepcopy(job)
    roles = {"mpi": ("mpiReplicaSpecs", "Launcher"), "paddle": ("worker",), "single": ()}
    role = changed
    for key in roles[kind]:
        role = role[key]
    role["template"]["spec"]["schedulerName"] = scheduler
    return changed, ".".join((*roles[kind], "template", "spec", "schedulerName"))


@pytest.mark.parametrize("kind", ["mpi", "single"])
def test_a_pod_for_volcano_needs_it(lines: Callable[..., list[str]], run_jobs: dict[str, Any], kind: str) -> None:
    job, place = with_scheduler(run_jobs[kind], kind, "volcano")

    (without,) = lines({"mpi": {}}, job=job)

    assert without.startswith(f"environment.jobs.job.{place}: ")
    assert "write operators: {volcano: {}}" in without
    assert lines({"mpi": {}, "volcano": {}}, job=job) == []


@pytest.mark.parametrize("kind", ["mpi", "paddle", "single"])
def test_a_gang_is_for_volcano_and_no_other_scheduler(
    lines: Callable[..., list[str]], run_jobs: dict[str, Any], kind: str
) -> None:
    job, place = with_scheduler(run_jobs[kind], kind, "other")

    (line,) = lines({"mpi": {}, "paddle": {}, "volcano": {}}, job={**job, "gang": True})

    assert line.startswith(f"environment.jobs.job.{place}: is not Volcano")


def test_beside_volcano_an_mpi_job_has_no_other_scheduler(
    lines: Callable[..., list[str]], run_jobs: dict[str, Any]
) -> None:
    job, place = with_scheduler(run_jobs["mpi"], "mpi", "other")

    (line,) = lines({"mpi": {}, "volcano": {}}, job=job)

    assert line.startswith(f"environment.jobs.job.{place}: has no effect")
    assert lines({"mpi": {}}, job=job) == []


def test_an_mpi_gang_names_its_queue(description: Environment, run_jobs: dict[str, Any]) -> None:
    jobs = {"plain": {**run_jobs["mpi"], "gang": True}, "queued": {**run_jobs["mpi"], "queue": "research"}}
    operators = {"mpi": {}, "volcano": {"queues": {"research": {}}}}

    spec = parse_environment({**description, "operators": operators, "jobs": jobs})
    made = {name: object_spec(job, name) for name, job in spec.jobs.items() if isinstance(job, MPIJobSpec)}

    queues = {name: one["runPolicy"]["schedulingPolicy"]["queue"] for name, one in made.items()}
    assert queues == {"plain": "default", "queued": "research"}


def test_an_operator_of_one_namespace_does_not_see_jobs_of_another(
    description: Environment, run_jobs: dict[str, Any]
) -> None:
    described = {
        **description,
        "namespaces": ["training", "other"],
        "operators": {"mpi": {"watchedNamespace": "other"}},
    }

    with pytest.raises(InputError, match="watches only other"):
        parse_environment({**described, "jobs": {"mpi": {**run_jobs["mpi"], "namespace": "training"}}})


def test_a_job_that_names_no_namespace_must_be_in_the_one_that_its_operator_watches(
    description: Environment, run_jobs: dict[str, Any]
) -> None:
    described = {**description, "jobs": {"mpi": run_jobs["mpi"]}}

    parse_environment({**described, "operators": {"mpi": {"watchedNamespace": "training"}}})
    elsewhere = {**described, "namespaces": ["elsewhere"], "operators": {"mpi": {"watchedNamespace": "training"}}}
    with pytest.raises(InputError) as caught:
        parse_environment(elsewhere)

    assert [problem.path for problem in caught.value.problems] == [
        "environment.jobs.mpi.namespace",
        "environment.operators.mpi.watchedNamespace",
    ]


@pytest.mark.parametrize("namespaces", [["mpi-operator"], ["training", "mpi-operator"]])
def test_an_operator_and_the_environment_cannot_both_own_a_namespace(
    description: Environment, namespaces: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        parse_environment({**description, "namespaces": namespaces, "operators": {"mpi": {}}, "jobs": {}})

    (problem,) = caught.value.problems
    assert problem.path == "environment.operators.mpi.namespace"
    assert "both would declare it" in problem.message


def test_volcano_tells_the_network_which_port_the_control_plane_calls(description: Environment) -> None:
    described = {**description, "network": {"webhookPorts": [9443]}}

    assert parse_environment({**described, "operators": {"volcano": {}}}).webhook_ports == [8443, 9443]
    assert parse_environment(described).webhook_ports == [9443]


def test_notes_say_what_a_choice_costs(description: Environment) -> None:
    operators = {"nats": {}, "persia": {}, "paddle": {"version": "0.3.5"}, "mpi": {"version": "0.7.0"}}
    spec = parse_environment({**description, "operators": operators})

    notes = {place: said for place, said in spec.notes() if place[0] == "operators"}

    assert "advise against" in notes["operators", "nats"]
    assert "add digest" in notes["operators", "persia", "version"]
    assert "tested only with 0.3.1" in notes["operators", "paddle", "version"]
    assert ("operators", "mpi", "version") not in notes
