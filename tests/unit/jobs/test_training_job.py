"""Training jobs with shared folders: what they refuse and become."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.jobs import MPIJobSpec, SingleNodeJobSpec, TrainingJobSpec
from persia_infra.kube.pod_templates import SHARED_MEMORY
from tests.support.environments import JOBS, VOLUME, assert_refused
from tests.support.run_jobs import object_spec, places, read


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("training/dataset/claim", "x", "training.dataset: needs exactly one of nfs, claim and gcsFuse"),
        ("training/dataset/nfs/path", "x", "training.dataset.nfs.path: is not a valid absolute path"),
        ("training/outputDir", "/elsewhere/out", "training.outputDir: is outside the workspace (/workspace)"),
        ("training/modelDir", "/models", "training.modelDir: is outside the workspace (/workspace)"),
        (
            "training/workspace/mountPath",
            "/tf_dataset",
            "training.workspace.mountPath: is also the path of the dataset",
        ),
        ("training/nodes", 0, "training.nodes: must be greater than or equal to 1"),
        ("training/command", [], "training.command: is missing, so the launcher would have nothing to run"),
        ("training/registry", "docker.io/x", "training.registry: must be only the registry's host"),
        ("training/image", "", "training.image: "),
        (
            "training/settings/volumes",
            [{**VOLUME, "name": "dataset"}],
            "training.settings.volumes[0].name: 'dataset' is the name of a volume that every TrainingJob has",
        ),
        (
            "training/settings/volumes",
            [VOLUME, {**VOLUME, "name": "w", "mount_path": "/tf_dataset/"}],
            "training.settings.volumes[1].mount_path: /tf_dataset is mounted twice (also by dataset)",
        ),
        ("training/sshAuthMountPath", "/root/.ssh", "training.sshAuthMountPath: is /root/.ssh, which user 1000"),
    ],
)
def test_a_wrong_value_in_a_training_job_is_refused_with_exactly_one_line(
    spoiled_job: Callable[..., list[str]], place: str, value: Any, line: str | tuple[str, ...]
) -> None:
    assert_refused(spoiled_job(place, value), line, prefix=f"{JOBS}.")


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_a_profile_overrides_is_reported_at_the_places_of_the_training_job(
    environment: dict[str, Any], nodes: int
) -> None:
    volumes = [{**VOLUME, "mount_path": path, "name": name} for name, path in (("a", "/tf_dataset"), ("b", "/extra"))]
    environment["profiles"] = {"p": {"volumes": volumes, "shared_memory": "1Gi", "run_as_user": 2000}}
    environment["profiles"]["p"]["envs"] = [{"name": "OUTPUT_DIR", "value": "/out"}]
    environment["jobs"]["training"]["settings"]["volumes"] = [{**VOLUME, "mount_path": "/extra"}]
    job = read(environment, "training", profile="p", nodes=nodes)

    assert {place for place in places(job) if place != "sshAuthMountPath"} == {
        "dataset",
        "settings.volumes.0",
        "settings.runAsUser",
        "outputDir",
    }


def test_several_nodes_are_an_mpi_job(environment: dict[str, Any]) -> None:
    job = read(environment, "training")
    assert isinstance(job, TrainingJobSpec)
    assert isinstance(job.runs_as, MPIJobSpec)

    roles = object_spec(job)["mpiReplicaSpecs"]

    assert roles["Launcher"]["template"]["spec"]["containers"][0]["command"] == [
        *("mpirun", "-n", "2"),
        "/workspace/train.sh",
    ]
    assert roles["Worker"]["replicas"] == 2
    assert [share.name for share in job.shares("training")] == ["training-dataset"]


def test_one_node_is_one_pod_with_the_same_folders(environment: dict[str, Any]) -> None:
    job = read(environment, "training", nodes=1, outputDir="/workspace/results")
    assert isinstance(job.runs_as, SingleNodeJobSpec)

    (container,) = object_spec(job)["template"]["spec"]["containers"]

    assert container["image"] == "docker.io/example/resnet50:1.5"
    assert container["command"] == ["/workspace/train.sh"]
    assert {one["name"]: one["value"] for one in container["env"]} == {
        "DATASET_DIR": "/tf_dataset",
        "MODEL_DIR": "/workspace",
        "OUTPUT_DIR": "/workspace/results",
    }
    assert {one["mountPath"]: one.get("readOnly") for one in container["volumeMounts"]} == {
        "/tf_dataset": True,
        "/workspace": False,
        SHARED_MEMORY: None,
    }
