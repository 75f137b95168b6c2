"""A small environment that is right, for tests to spoil."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.environments import MISSING, problems, put


@pytest.fixture
def description() -> dict[str, Any]:
    return {
        "project": "persia-example",
        "region": "us-central1",
        "cluster": {"zones": ["us-central1-a"], "authorizedNetworks": [{"cidr": "203.0.113.0/24"}]},
        "pools": {
            "cpu": {"machineType": "n2-standard-8", "count": 1},
            "gpu": {"machineType": "g2-standard-8", "autoscaling": {"min": 0, "max": 2}},
        },
        "jobs": {
            "ads": {
                "kind": "PersiaJob",
                "restartPolicy": "Always",
                "persiaEnv": {
                    "PERSIA_GLOBAL_CONFIG": "/data/global_config.yaml",
                    "PERSIA_EMBEDDING_CONFIG": "/data/embedding_config.yaml",
                    "PERSIA_NN_WORKER_ENTRY": "/data/train.py",
                    "PERSIA_DATALOADER_ENTRY": "/data/data_loader.py",
                },
                "volumes": [{"name": "data", "nfs": {"server": "10.1.0.2", "path": "/data"}}],
                "embeddingParameterServer": {
                    "replicas": 2,
                    "resources": {"limits": {"cpu": "2", "memory": "8Gi"}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
                },
                "embeddingWorker": {
                    "replicas": 3,
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                },
                "nnWorker": {
                    "replicas": 1,
                    "nprocPerNode": 1,
                    "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 1}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                },
                "dataloader": {
                    "replicas": 2,
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                },
            }
        },
    }


@pytest.fixture
def operators() -> dict[str, Any]:
    """All of them, for jobs that need one."""
    return {"nats": {}, "mpi": {}, "paddle": {}, "persia": {}, "volcano": {"queues": {"training": {}}}}


@pytest.fixture
def run_jobs() -> dict[str, Any]:
    """One job of each kind that is made of pod templates, for the environment of `description`."""

    def template(*, gpu: bool = False) -> dict[str, Any]:
        container: dict[str, Any] = {"name": "main", "image": "example/train:1"}
        if gpu:
            container["resources"] = {"limits": {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": 1}}
        return {"spec": {"containers": [container]}}

    return {
        "mpi": {
            "kind": "MPIJob",
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template()},
                "Worker": {"replicas": 2, "template": template(gpu=True), "pool": "gpu"},
            },
        },
        "paddle": {
            "kind": "PaddleJob",
            "cleanPodPolicy": "Never",
            "ps": {"replicas": 2, "template": template()},
            "worker": {"replicas": 2, "template": template(gpu=True), "pool": "gpu"},
        },
        "single": {"kind": "Job", "template": template(gpu=True), "pool": "gpu"},
        "training": {
            "kind": "TrainingJob",
            "image": "example/resnet50:1.5",
            "command": ["/workspace/train.sh"],
            "nodes": 2,
            "dataset": {"nfs": {"server": "10.1.0.2", "path": "/imagenet"}, "mountPath": "/tf_dataset"},
            "workspace": {"claim": "workspace", "mountPath": "/workspace"},
            "settings": {
                "run_as_user": 1000,
                "resources": {"cpu": {"requests": "2"}, "mem": {"limits": "8Gi"}, "gpu": {"limits": "1"}},
            },
            "pool": "gpu",
        },
    }


@pytest.fixture
def spoiled(description: dict[str, Any]) -> Callable[..., list[str]]:
    """The lines that are said about the environment after changing one place of it."""

    def lines(place: str, value: Any = MISSING) -> list[str]:
        put(description, place, value)
        return problems(description)

    return lines


@pytest.fixture
def environment(description: dict[str, Any], run_jobs: dict[str, Any], operators: dict[str, Any]) -> dict[str, Any]:
    return {**description, "jobs": run_jobs, "operators": operators}


@pytest.fixture
def spoiled_job(environment: dict[str, Any]) -> Callable[..., list[str]]:
    """As `spoiled`, with the place among the run jobs."""

    def lines(place: str, value: Any) -> list[str]:
        put(environment, f"jobs/{place}", value)
        return problems(environment)

    return lines
