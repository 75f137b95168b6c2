"""Paddle jobs: what they refuse, put right, derive and pass on."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.jobs import PaddleJobSpec
from persia_infra.kube.pod_templates import SHARED_MEMORY
from tests.support.environments import JOBS, assert_refused, problems
from tests.support.run_jobs import object_spec, places, read, without_added_labels

EVERY_FIELD: dict[str, Any] = {
    "cleanPodPolicy": "OnCompletion",
    "schedulingPolicy": {
        "minAvailable": 3,
        "queue": "training",
        "priorityClass": "high",
        "minResources": {"cpu": "4"},
    },
    "intranet": "Service",
    "withGloo": 1,
    "elastic": 0,
    **{
        role: {"replicas": 1, "template": {"spec": {"containers": [{"name": "paddle", "image": "i"}]}}}
        for role in ("ps", "worker", "heter")
    },
}


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("paddle/cleanPodPolicy", "Sometimes", "paddle.cleanPodPolicy: not one of the values it can have"),
        ("paddle/intranet", "Pod", "paddle.intranet: not one of the values it can have"),
        ("paddle/withGloo", 3, "paddle.withGloo: not one of the values it can have"),
        ("paddle/worker/replicas", 0, "paddle.worker.replicas: must be greater than or equal to 1"),
        ("paddle/worker", None, "paddle.worker: is missing, so nothing would train"),
        ("paddle/elastic", 2, "paddle.elastic: works only for collective jobs"),
        ("paddle/schedulingPolicy", {"minAvailable": 5}, "paddle.schedulingPolicy.minAvailable: 5 is more than"),
        ("paddle/worker/template/spec/restartPolicy", "Always", "paddle.worker.template.spec.restartPolicy: is Always"),
        (
            "paddle/worker/template/spec/initContainers",
            [{"name": "coord-paddle"}],
            "paddle.worker.template.spec.initContainers: coord-paddle is the name of the operator's own",
        ),
        (
            "paddle/worker/template/spec/initContainers",
            [{"name": "logs", "restartPolicy": "Always"}],
            "paddle.worker.template.spec.initContainers[0].restartPolicy: is newer than the Paddle operator",
        ),
        (
            "paddle/ps/template/spec/containers/0/resources",
            {"limits": {"nvidia.com/gpu": 99}},
            "paddle.ps.template.spec.containers: asks for 99 nvidia.com/gpu, "
            "but a g2-standard-8 node of pool gpu offers pods 1",
        ),
    ],
)
def test_a_wrong_value_in_a_paddle_job_is_refused_with_exactly_one_line(
    spoiled_job: Callable[..., list[str]], place: str, value: Any, line: str | tuple[str, ...]
) -> None:
    assert_refused(spoiled_job(place, value), line, prefix=f"{JOBS}.")


def test_every_field_of_the_crd_arrives_unchanged() -> None:
    assert without_added_labels(object_spec(PaddleJobSpec.model_validate(EVERY_FIELD))) == EVERY_FIELD


def test_no_field_of_the_crd_is_forgotten() -> None:
    known = {info.alias for info in PaddleJobSpec.model_fields.values() if not info.exclude}

    assert known == set(EVERY_FIELD)


@pytest.mark.parametrize(("ps", "workers", "mode"), [(True, 2, "PS"), (False, 2, "Collective"), (False, 1, "Single")])
def test_the_mode_of_a_paddle_job_follows_from_its_roles(
    environment: dict[str, Any], ps: bool, workers: int, mode: str
) -> None:
    if not ps:
        del environment["jobs"]["paddle"]["ps"]
    environment["jobs"]["paddle"]["worker"]["replicas"] = workers

    assert read(environment, "paddle").mode == mode


def test_well_known_mistakes_in_paddle_jobs_are_corrected_with_notes(environment: dict[str, Any]) -> None:
    del environment["jobs"]["paddle"]["cleanPodPolicy"]
    environment["jobs"]["paddle"]["worker"]["template"]["spec"]["schedulerName"] = "volcano"
    environment["jobs"]["paddle"]["worker"]["limits"] = 2
    job = read(environment, "paddle", cleanPolicy="OnFailed")

    spec = object_spec(job)
    assert spec["cleanPodPolicy"] == "OnFailure"
    assert spec["schedulingPolicy"] == {"minAvailable": 4}
    assert "schedulerName" not in spec["worker"]["template"]["spec"]
    assert "limits" not in spec["worker"]
    assert places(job) == ["cleanPolicy", "cleanPodPolicy", "worker.template.spec.schedulerName", "worker.limits"]


def test_gpu_workers_get_shared_memory(environment: dict[str, Any]) -> None:
    spec = object_spec(read(environment, "paddle"))

    mounts = spec["worker"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts] == [SHARED_MEMORY]
    assert "volumes" not in spec["ps"]["template"]["spec"]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"withGloo": 1, "intranet": "PodIP"}, "withGloo"),
        ({"elastic": 1, "ps": None}, "elastic"),
        ({"withGloo": 2, "ps": None}, "withGloo"),
    ],
)
def test_what_has_no_effect_is_reported(environment: dict[str, Any], changes: Any, place: str) -> None:
    assert place in places(read(environment, "paddle", **changes))


@pytest.mark.parametrize(
    ("elastic", "expected"),
    [(2, ()), (3, "paddle.elastic: 3 is more than the job's 2 workers")],
)
def test_an_elastic_job_may_shrink_to_all_of_its_workers_but_not_to_more(
    environment: dict[str, Any], elastic: int, expected: str | tuple[str, ...]
) -> None:
    del environment["jobs"]["paddle"]["ps"]
    environment["jobs"]["paddle"]["elastic"] = elastic

    assert_refused(problems(environment), expected, prefix=f"{JOBS}.")
