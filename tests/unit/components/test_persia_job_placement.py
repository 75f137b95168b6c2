"""Where the pods of a PERSIA job run, what they share, and who reaches them."""

from collections.abc import Callable
from typing import Any

from tests.support.persia_pods import container, pod

SHARED_MEMORY = "/dev/shm"  # noqa: S108


def test_nn_workers_are_placed_and_get_shared_memory(run_ads: Callable[..., Any], description: dict[str, Any]) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "sharedMemory": "8Gi"}
    found = pod(run_ads(nnWorker=worker), "nn-worker")

    assert found["nodeSelector"] == {"persia-infra/pool": "gpu"}
    assert found["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    ]
    assert {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in found["volumes"]
    assert {"name": "shared-memory", "mountPath": SHARED_MEMORY} in found["containers"][0]["volumeMounts"]
    assert found["containers"][0]["resources"] == {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}}


def test_shared_memory_of_ones_own_is_left_alone(run_ads: Callable[..., Any], description: dict[str, Any]) -> None:
    mounts = [{"name": "data", "mountPath": SHARED_MEMORY}]
    found = pod(run_ads(nnWorker={**description["jobs"]["ads"]["nnWorker"], "volumeMounts": mounts}), "nn-worker")

    assert [mount["mountPath"] for mount in found["containers"][0]["volumeMounts"]] == [SHARED_MEMORY]


def test_roles_without_gpus_neither_tolerate_nor_share(run_ads: Callable[..., Any]) -> None:
    found = pod(run_ads(), "dataloader")

    assert "tolerations" not in found
    assert found["nodeSelector"] == {"persia-infra/pool": "cpu"}
    assert [volume["name"] for volume in found["volumes"]] == ["data"]


def test_volumes_reach_every_role(run_ads: Callable[..., Any]) -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "features", "readOnly": True}},
        {"name": "bucket", "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "b"}}},
        {"name": "scratch", "hostPath": {"path": "/mnt", "type": "Directory"}},
    ]

    assert pod(run_ads(volumes=volumes), "embedding-ps")["volumes"] == volumes
    assert container(run_ads(volumes=volumes), "embedding-ps")["volumeMounts"] == [
        {"name": "data", "mountPath": "/data", "readOnly": True}
    ]


def test_a_role_is_placed_as_described(run_ads: Callable[..., Any], description: dict[str, Any]) -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    description["pools"]["gpu"]["labels"] = {"disk": "ssd"}
    worker = {
        **description["jobs"]["ads"]["nnWorker"],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": affinity,
        "serviceAccountName": "trainer",
        "priorityClassName": "high",
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
    }

    found = pod(run_ads(nnWorker=worker), "nn-worker")

    assert found["nodeSelector"] == {"disk": "ssd", "persia-infra/pool": "gpu"}
    assert {"key": "dedicated", "operator": "Exists"} in found["tolerations"]
    assert "nvidia.com/gpu" in [toleration["key"] for toleration in found["tolerations"]]
    assert found["affinity"] == affinity
    assert (found["serviceAccountName"], found["priorityClassName"]) == ("trainer", "high")
    assert found["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "fsGroup": 1000,
    }


def test_only_pods_that_mount_a_bucket_get_the_sidecar(
    run_ads: Callable[..., Any], description: dict[str, Any]
) -> None:
    bucket = {
        "name": "bucket",
        "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "criteo"}},
    }
    found = description["jobs"]["ads"]
    loader = {**found["dataloader"], "volumeMounts": [{"name": "bucket", "mountPath": "/data"}]}

    recording = run_ads(volumes=[*found["volumes"], bucket], dataloader=loader)

    annotated = {
        role: recording.one("StatefulSet", f"dev-ads-{role}").inputs["spec"]["template"]["metadata"].get("annotations")
        for role in ("dataloader", "nn-worker")
    }
    assert annotated == {"dataloader": {"gke-gcsfuse/volumes": "true"}, "nn-worker": None}


def test_only_the_jobs_own_pods_reach_it(run_ads: Callable[..., Any]) -> None:
    recording = run_ads()
    policy = recording.one("NetworkPolicy", "dev-ads-network").inputs["spec"]

    assert policy["podSelector"] == {"matchLabels": {"persia_job": "ads"}}
    assert policy["ingress"][0] == {"from": [{"podSelector": {"matchLabels": {"persia_job": "ads"}}}]}
    assert [rule["ports"][0]["port"] for rule in policy["ingress"][1:]] == [9091]
    servers = recording.one("NetworkPolicy", "dev-ads-nats-network").inputs["spec"]["ingress"]
    assert servers[0]["from"] == [{"podSelector": {"matchLabels": {"persia_job": "ads"}}}]
    assert [port["port"] for port in servers[0]["ports"]] == [4222]


def test_every_container_is_confined(run_ads: Callable[..., Any]) -> None:
    templates = [r.inputs["spec"]["template"]["spec"] for r in run_ads().all if r.type.startswith("kubernetes:apps/")]

    assert len(templates) == 6
    for template in templates:
        assert template["automountServiceAccountToken"] is False
        assert template["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for found in template["containers"]:
            assert found["securityContext"]["allowPrivilegeEscalation"] is False
            assert found["securityContext"]["capabilities"] == {"drop": ["ALL"]}
