"""Jobs of one pod: what they refuse and derive."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.jobs import SingleNodeJobSpec
from tests.support.environments import JOBS, assert_refused, problems
from tests.support.run_jobs import object_spec, places, read


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("single/template/spec/restartPolicy", "Always", "single.template.spec.restartPolicy: is Always"),
        ("single/parallelism", 4, "single.parallelism: must be less than or equal to 1"),
        (
            "single/template/spec/containers/0/name",
            "Main",
            "single.template.spec.containers[0].name: 'Main' is not a valid name",
        ),
    ],
)
def test_a_wrong_value_in_a_single_node_job_is_refused_with_exactly_one_line(
    spoiled_job: Callable[..., list[str]], place: str, value: Any, line: str | tuple[str, ...]
) -> None:
    assert_refused(spoiled_job(place, value), line, prefix=f"{JOBS}.")


def test_a_job_that_ends_is_not_started_again(environment: dict[str, Any]) -> None:
    assert object_spec(read(environment, "single"))["template"]["spec"]["restartPolicy"] == "Never"


def test_a_pod_is_run_as_a_job() -> None:
    job = SingleNodeJobSpec.model_validate({"containers": [{"name": "a"}], "nodeSelector": {"x": "y"}})

    assert job.template.spec.node_selector == {"x": "y"}
    assert places(job) == [""]


def test_errors_and_notes_of_a_pod_name_the_places_of_the_pod(environment: dict[str, Any]) -> None:
    pod = environment["jobs"]["single"]["template"]["spec"]
    environment["profiles"] = {"large": {"envs": [{"name": "A", "value": "1"}]}}
    wrong = {"restartPolicy": "Always", "hostNetwork": True}
    for spoil, at in (
        (wrong, ["hostNetwork", "restartPolicy"]),
        ({"containers": [{"image": "i"}]}, ["containers[0].name"]),
    ):
        environment["jobs"] = {"single": {"kind": "Job", "pool": "gpu", **pod, **spoil}}
        assert [line.split(": ")[1] for line in problems(environment)] == [
            f"environment.jobs.single.{one}" for one in at
        ]

    pod["containers"][0]["env"] = [{"name": "A", "value": "2"}]
    environment["jobs"] = {"single": {"kind": "Job", "pool": "gpu", "profile": "large", **pod}}
    assert places(read(environment, "single")) == ["", "containers.0.env.0"]
    pod["containers"][0]["resources"]["limits"]["memory"] = "900Gi"
    assert problems(environment)[0].startswith(f"{JOBS}.single.containers: asks for 900.00Gi memory")
