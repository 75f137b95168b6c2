"""Every field of the PersiaJob resource definition is read, and given to the PERSIA operator as it was."""

from typing import Any

from persia_infra.jobs import PersiaJobSpec
from persia_infra.jobs.persia.objects import operator_object_spec
from persia_infra.jobs.persia.roles import NnWorker, PersiaEnv, Role
from persia_infra.kube.pod_templates import SHARED_MEMORY

ROLE: dict[str, Any] = {
    "replicas": 2,
    "image": "persiaml/persia-cpu-runtime:latest",
    "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "4Gi"}},
    "env": [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
        {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ],
    "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True, "subPath": "train"}],
}
EVERY_FIELD: dict[str, Any] = {
    "persiaEnv": {
        "PERSIA_GLOBAL_CONFIG": "/data/global.yml",
        "PERSIA_EMBEDDING_CONFIG": "/data/embedding.yml",
        "PERSIA_NN_WORKER_ENTRY": "/data/train.py",
        "PERSIA_DATALOADER_ENTRY": "/data/load.py",
    },
    "enableMetrics": False,
    "volumes": [{"name": "data", "nfs": {"server": "10.0.0.2", "path": "/share"}}],
    "env": [{"name": "PERSIA_NATS_URL", "value": "nats://bus:4222"}],
    "logLevel": "debug",
    "restartPolicy": "OnFailure",
    "imagePullPolicy": "Always",
    "embeddingParameterServer": ROLE,
    "embeddingWorker": ROLE,
    "nnWorker": {
        **ROLE,
        "nprocPerNode": 2,
        "volumeMounts": [*ROLE["volumeMounts"], {"name": "data", "mountPath": SHARED_MEMORY}],
    },
    "dataloader": ROLE,
}


def test_every_field_of_the_crd_round_trips() -> None:
    job = PersiaJobSpec.model_validate({**EVERY_FIELD, "mode": "operator"})

    assert operator_object_spec(job, "ads") == EVERY_FIELD


def test_no_field_of_the_crd_is_forgotten() -> None:
    for model, given in (
        (PersiaJobSpec, EVERY_FIELD),
        (Role, ROLE),
        (NnWorker, EVERY_FIELD["nnWorker"]),
        (PersiaEnv, EVERY_FIELD["persiaEnv"]),
    ):
        assert {info.alias for info in model.model_fields.values() if not info.exclude} == set(given)
