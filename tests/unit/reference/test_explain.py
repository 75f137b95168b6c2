"""Fields are found by the paths that users read in their files and in messages."""

import pytest

from persia_infra.reference.explain import explain
from persia_infra.spec.errors import InputError


def test_the_top_lists_the_parts_of_an_environment() -> None:
    keys = [field.key for field in explain("").fields]

    assert keys[:2] == ["project", "region"]
    assert {"pools", "jobs", "operators"} <= set(keys)


@pytest.mark.parametrize("path", ["pools.gpu.spot", "environment.pools.any-name.spot"])
def test_a_field_says_its_type_and_default(path: str) -> None:
    explanation = explain(path)

    assert explanation.path.endswith(".spot")
    assert explanation.shape.words == "true or false"
    assert explanation.field is not None
    assert explanation.field.default is False
    assert not explanation.field.required


@pytest.mark.parametrize(
    "path", ["jobs.PersiaJob.nnWorker", "jobs.adult-income.nnWorker", "jobs.adult-income.nn_worker"]
)
def test_a_kind_of_job_can_stand_for_its_name(path: str) -> None:
    explanation = explain(path)

    assert explanation.field is not None
    assert explanation.field.description.startswith("The workers that train the dense part")
    assert "nprocPerNode" in [field.key for field in explanation.fields]


def test_a_job_lists_the_kinds_it_can_have() -> None:
    assert explain("jobs").kinds == explain("jobs.adult-income").kinds
    assert "PersiaJob" in explain("jobs").kinds


def test_a_field_of_several_kinds_names_them() -> None:
    assert explain("jobs.resnet.settings").found_in == ["MPIJob", "PaddleJob", "Job", "TrainingJob"]
    assert explain("jobs.MPIJob.settings").found_in == []


@pytest.mark.parametrize("path", ["pools.gpu.taints[0].key", "pools.gpu.taints.key"])
def test_entries_of_lists_need_no_index(path: str) -> None:
    assert explain(path).shape.words == "text"


def test_keys_of_a_mapping_may_contain_dots() -> None:
    path = "jobs.PersiaJob.nnWorker.resources.limits.nvidia.com/gpu"

    assert explain(path).path == path


def test_types_of_kubernetes_point_to_kubectl() -> None:
    explanation = explain("jobs.MPIJob.mpiReplicaSpecs.Worker.template.spec.containers")

    assert explanation.field is not None
    assert explanation.field.description == "As in Kubernetes: kubectl explain pod.spec.containers."


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("pools.gpu.spott", "pools.gpu.spott: there is no such field; did you mean 'spot'?"),
        ("jobs.ads.nnWorkers.image", "jobs.ads.nnWorkers: there is no such field; did you mean 'nnWorker'?"),
        ("region.zone", "region.zone: there is no such field"),
    ],
)
def test_a_misspelt_field_is_corrected(path: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        explain(path)

    assert str(error.value).startswith(message)
