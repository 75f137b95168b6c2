"""From a template, its settings and its pool to the pod that is deployed."""

from typing import Any

import pytest

from persia_infra.jobs.settings.pods import final_pod
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.placement import Placement, Taint
from persia_infra.kube.pod_templates import PodTemplate

POOL = Placement(
    "gpu", {"persia-infra/pool": "gpu"}, (Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),)
)
OWN = {"key": "spot", "operator": "Exists"}
FROM_SETTINGS = {"key": "team", "operator": "Equal", "value": "ads", "effect": "NoSchedule"}
BUCKET = {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "criteo"}}
ANNOTATION = {"gke-gcsfuse/volumes": "true"}


def pod(spec: dict[str, Any], settings: dict[str, Any] | None = None, placement: Placement | None = None) -> Any:
    described = {"spec": {"containers": [{"name": "main", "image": "i"}], **spec}}
    template = PodTemplate.model_validate(described)
    final, _ = final_pod(template, RunSettings.model_validate(settings or {}), job="j", placement=placement)
    return final.as_kubernetes()


def test_tolerations_of_the_template_its_settings_and_its_pool_all_stay() -> None:
    found = pod({"tolerations": [OWN]}, {"tolerations": [FROM_SETTINGS]}, POOL)

    assert found["spec"]["tolerations"] == [OWN, FROM_SETTINGS, *POOL.tolerations]


def test_a_toleration_that_the_template_has_already_is_not_repeated() -> None:
    found = pod({"tolerations": POOL.tolerations}, placement=POOL)

    assert found["spec"]["tolerations"] == POOL.tolerations


def test_labels_of_the_pool_join_those_of_the_template() -> None:
    found = pod({"nodeSelector": {"disk": "ssd"}}, placement=POOL)

    assert found["spec"]["nodeSelector"] == {"disk": "ssd", "persia-infra/pool": "gpu"}


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_bucket_that_the_template_itself_mounts_gets_its_sidecar(where: str) -> None:
    mounting = {"name": "reads", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    found = pod({"volumes": [{"name": "data", "csi": BUCKET}], where: [mounting]})

    assert found["metadata"]["annotations"] == ANNOTATION


@pytest.mark.parametrize(
    "volume",
    [
        {"volume_type": "gcs_fuse", "name": "data", "mount_path": "/data", "spec": {"bucket": "criteo"}},
        {"name": "data", "mountPath": "/data", "csi": BUCKET},
    ],
)
def test_a_bucket_of_the_settings_gets_its_sidecar_in_either_spelling(volume: dict[str, Any]) -> None:
    assert pod({}, {"volumes": [volume]})["metadata"]["annotations"] == ANNOTATION


def test_a_bucket_that_no_container_mounts_needs_no_sidecar() -> None:
    found = pod({"volumes": [{"name": "data", "csi": BUCKET}]})

    assert "metadata" not in found


def test_a_user_of_the_settings_confines_init_containers_too() -> None:
    found = pod({"initContainers": [{"name": "prepare", "image": "i"}]}, {"run_as_user": 1000})

    for container in (*found["spec"]["containers"], *found["spec"]["initContainers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
