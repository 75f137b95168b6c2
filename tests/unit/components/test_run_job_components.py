"""What jobs made of pod templates declare besides themselves, and gangs for every kind."""

from collections.abc import Callable
from typing import Any

import pytest
from persia_components import Environment

from persia_infra.stack import parse_environment

Record = Callable[..., Any]


@pytest.fixture
def recorded(
    description: dict[str, Any], run_jobs: dict[str, Any], operators: dict[str, Any], record: Record
) -> Callable[..., Any]:
    def run(name: str, **changes: Any) -> Any:
        jobs = {**description["jobs"], **run_jobs}
        spec = parse_environment({**description, "operators": operators, "jobs": {name: {**jobs[name], **changes}}})
        return record(lambda: Environment("dev", spec))

    return run


def pod_groups(recording: Any) -> list[dict[str, Any]]:
    return [r.inputs for r in recording.all if r.type == "kubernetes:scheduling.volcano.sh/v1beta1:PodGroup"]


def test_a_share_is_claimed_before_the_job_that_mounts_it(recorded: Callable[..., Any]) -> None:
    recording = recorded("training")

    volume = recording.one("PersistentVolume", "dev-training-dataset").inputs
    claim = recording.one("PersistentVolumeClaim", "dev-training-dataset").inputs
    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == "training-training-dataset"
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert "dev-training-dataset" in recording.one("MPIJob", "dev-training").depends_on


def test_one_node_is_a_job_that_no_update_waits_for(recorded: Callable[..., Any]) -> None:
    job = recorded("training", nodes=1).one("Job", "dev-training").inputs

    assert job["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert job["spec"]["template"]["spec"]["nodeSelector"] == {"persia-infra/pool": "gpu"}


@pytest.mark.parametrize("name", ["mpi", "paddle", "training", "single", "ads"])
def test_without_a_queue_no_job_needs_volcano(recorded: Callable[..., Any], name: str) -> None:
    recording = recorded(name)

    assert not pod_groups(recording)
    assert "'schedulerName': 'volcano'" not in str([r.inputs for r in recording.all])


@pytest.mark.parametrize(
    ("name", "policy"), [("mpi", ("runPolicy", "schedulingPolicy")), ("paddle", ("schedulingPolicy",))]
)
def test_operators_make_the_gang_of_their_jobs(recorded: Callable[..., Any], name: str, policy: tuple[str]) -> None:
    recording = recorded(name, queue="training")
    (job,) = [r.inputs for r in recording.all if r.custom and r.type.endswith((":MPIJob", ":PaddleJob"))]

    found = job["spec"]
    for key in policy:
        found = found[key]
    assert found == {"minAvailable": 3 if name == "mpi" else 4, "queue": "training"}
    assert not pod_groups(recording), "the operator makes it"


def test_a_single_pod_waits_in_its_queue(recorded: Callable[..., Any]) -> None:
    recording = recorded("single", queue="training")

    (group,) = pod_groups(recording)
    assert group["spec"] == {"minMember": 1, "queue": "training"}
    template = recording.one("Job", "dev-single").inputs["spec"]["template"]
    assert template["spec"]["schedulerName"] == "volcano"
    assert template["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "single"}
    assert "dev-single-gang" in recording.one("Job", "dev-single").depends_on


def test_the_roles_of_a_persia_job_are_one_gang(recorded: Callable[..., Any]) -> None:
    recording = recorded("ads", gang=True)

    (group,) = pod_groups(recording)
    assert group["spec"] == {"minMember": 8, "queue": "default"}
    sets = [r.inputs for r in recording.all if r.type.endswith(":StatefulSet")]
    in_gang = [
        one["metadata"]["name"]
        for one in sets
        if one["spec"]["template"]["spec"].get("schedulerName") == "volcano"
        and one["spec"]["template"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "ads"
    ]
    assert sorted(in_gang) == ["ads-dataloader", "ads-embedding-ps", "ads-embedding-worker", "ads-nn-worker"]


def test_namespaces_say_how_strict_they_are(recorded: Callable[..., Any]) -> None:
    labels = recorded("training").one("Namespace", "dev-training").inputs["metadata"]["labels"]

    assert {labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "audit", "warn")} == {"restricted"}
