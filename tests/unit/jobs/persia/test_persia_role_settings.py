"""The settings and profiles of run jobs, for the roles of a PERSIA job."""

from typing import Any

import pytest

from persia_infra.jobs.persia.pods import overridden_places, role_template
from persia_infra.kube.pod_templates import SHARED_MEMORY
from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment
from tests.support import kube_objects
from tests.support.environments import JOBS, VOLUME, assert_refused
from tests.support.kube_objects import Objects
from tests.support.persia_pods import pod


def test_a_role_takes_settings_and_a_profile(description: dict[str, Any]) -> None:
    description["profiles"] = {"large": {"resources": {"mem": {"limits": "20Gi"}}}}
    description["jobs"]["ads"]["nnWorker"] |= {
        "profile": "large",
        "settings": {"run_as_user": 1000, "secrets": ["hub"], "volumes": [VOLUME]},
    }
    spec = parse_environment(description)
    job: Any = spec.jobs["ads"]

    found = pod(Objects(spec.job_objects("ads")), "nn-worker")

    main = kube_objects.container(found)
    assert main["resources"]["limits"] == {"cpu": "4", "memory": "20Gi", "nvidia.com/gpu": "1"}
    assert found["securityContext"]["runAsUser"] == 1000
    assert main["envFrom"] == [{"secretRef": {"name": "hub"}}]
    assert {volume["name"] for volume in found["volumes"]} == {"data", "v", "shared-memory"}
    assert {mount["mountPath"] for mount in main["volumeMounts"]} == {"/data", "/v", SHARED_MEMORY}
    messages = [message for place, message in job.notes() if place == ("nnWorker", "resources", "limits", "memory")]
    assert messages == ["is overridden by the profile 'large' or the role's settings"]


def test_every_value_of_a_persia_job_that_a_profile_overrides_is_reported(description: dict[str, Any]) -> None:
    shared = {**VOLUME, "name": "data", "mount_path": "/data"}
    values = [{"name": name, "value": "profile"} for name in ("A", "LOG_LEVEL", "PERSIA_GLOBAL_CONFIG")]
    description["profiles"] = {"p": {"envs": values, "volumes": [shared], "shared_memory": "1Gi"}}
    job = description["jobs"]["ads"]
    job["nnWorker"] |= {"profile": "p", "sharedMemory": "2Gi"}
    job |= {"env": [{"name": "A", "value": "1"}], "logLevel": "debug"}

    notes = [place for place, said in parse_environment(description).jobs["ads"].notes() if "is overridden" in said]

    assert notes == [
        ("volumes", 0),
        ("nnWorker", "sharedMemory"),
        ("logLevel",),
        ("persiaEnv", "PERSIA_GLOBAL_CONFIG"),
        ("env", 0),
    ]


def test_without_settings_a_role_stays_as_it_is(description: dict[str, Any]) -> None:
    job: Any = parse_environment(description).jobs["ads"]

    template = role_template(job, "ads", "dataloader", {})

    (main,) = template.spec.containers
    own = [variable for variable in main.env if variable in job.dataloader.env]
    assert (own, main.volume_mounts) == (job.dataloader.env, job.dataloader.volume_mounts)
    assert (main.env_from, template.metadata.annotations) == ([], {})
    assert overridden_places(job, "dataloader", {}) == []


@pytest.mark.parametrize(
    ("role", "line"),
    [
        ({"profile": "none-such"}, "nnWorker.profile: the environment has no profile 'none-such'"),
        ({"settings": {"run_as_user": 0}}, "nnWorker.settings.run_as_user: 0 is root"),
        ({"settings": {"resources": {"mem": {"limits": "900Gi"}}}}, "nnWorker.resources: asks for 900.00Gi memory"),
        ({"settings": {"node_selector": {"a": "b"}}}, "nnWorker.pool: its pods require the node label a=b"),
    ],
)
def test_wrong_settings_of_a_persia_role_are_refused(
    description: dict[str, Any], role: dict[str, Any], line: str
) -> None:
    description["jobs"]["ads"]["nnWorker"] |= role

    with pytest.raises(InputError) as caught:
        parse_environment(description, file="f.yaml")

    assert_refused(caught.value.problems, line, prefix=f"{JOBS}.ads.")


def test_roles_that_are_not_root_let_the_namespace_be_strict(description: dict[str, Any]) -> None:
    job = description["jobs"]["ads"]
    job["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert parse_environment(description).pod_security("training") == "baseline"
    for role in ("embeddingParameterServer", "embeddingWorker", "nnWorker", "dataloader"):
        job[role]["settings"] = {"run_as_user": 1000}

    assert parse_environment(description).pod_security("training") == "restricted"
