"""Where the pods of a PERSIA job run, what they share, and who reaches them."""

from collections.abc import Callable
from typing import Any

from tests.support.kube_objects import Objects
from tests.support.persia_pods import container, pod, template

SHARED_MEMORY = "/dev/shm"  # noqa: S108


def test_nn_workers_are_placed_and_get_shared_memory(ads: Callable[..., Objects], description: dict[str, Any]) -> None:
    worker = {**description["jobs"]["ads"]["nnWorker"], "sharedMemory": "8Gi"}
    found = pod(ads(nnWorker=worker), "nn-worker")

    assert found["nodeSelector"] == {"persia-infra/pool": "gpu"}
    assert found["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    ]
    assert {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in found["volumes"]
    assert {"name": "shared-memory", "mountPath": SHARED_MEMORY} in found["containers"][0]["volumeMounts"]
    assert found["containers"][0]["resources"] == {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}}


def test_shared_memory_that_the_role_mounts_itself_is_left_alone(
    ads: Callable[..., Objects], description: dict[str, Any]
) -> None:
    mounts = [{"name": "data", "mountPath": SHARED_MEMORY}]
    found = pod(ads(nnWorker={**description["jobs"]["ads"]["nnWorker"], "volumeMounts": mounts}), "nn-worker")

    assert [mount["mountPath"] for mount in found["containers"][0]["volumeMounts"]] == [SHARED_MEMORY]


def test_roles_without_gpus_neither_tolerate_nor_share(ads: Callable[..., Objects]) -> None:
    found = pod(ads(), "dataloader")

    assert "tolerations" not in found
    assert found["nodeSelector"] == {"persia-infra/pool": "cpu"}
    assert [volume["name"] for volume in found["volumes"]] == ["data"]


def test_volumes_reach_every_role(ads: Callable[..., Objects]) -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "features", "readOnly": True}},
        {"name": "bucket", "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "b"}}},
        {"name": "scratch", "hostPath": {"path": "/mnt", "type": "Directory"}},
    ]

    assert pod(ads(volumes=volumes), "embedding-ps")["volumes"] == volumes
    assert container(ads(volumes=volumes), "embedding-ps")["volumeMounts"] == [
        {"name": "data", "mountPath": "/data", "readOnly": True}
    ]


def test_a_role_is_placed_as_described(ads: Callable[..., Objects], description: dict[str, Any]) -> None:
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

    found = pod(ads(nnWorker=worker), "nn-worker")

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
    ads: Callable[..., Objects], description: dict[str, Any]
) -> None:
    bucket = {
        "name": "bucket",
        "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "criteo"}},
    }
    found = description["jobs"]["ads"]
    loader = {**found["dataloader"], "volumeMounts": [{"name": "bucket", "mountPath": "/data"}]}

    job = ads(volumes=[*found["volumes"], bucket], dataloader=loader)

    annotated = {role: template(job, role)["metadata"].get("annotations") for role in ("dataloader", "nn-worker")}
    assert annotated == {"dataloader": {"gke-gcsfuse/volumes": "true"}, "nn-worker": None}


def test_only_the_jobs_own_pods_reach_it(ads: Callable[..., Objects]) -> None:
    job = ads()
    policy = job.body("NetworkPolicy", "ads")["spec"]

    assert policy["podSelector"] == {"matchLabels": {"persia_job": "ads"}}
    assert policy["ingress"][0] == {"from": [{"podSelector": {"matchLabels": {"persia_job": "ads"}}}]}
    assert [rule["ports"][0]["port"] for rule in policy["ingress"][1:]] == [9091]
    servers = job.body("NetworkPolicy", "ads-nats")["spec"]["ingress"]
    assert servers[0]["from"] == [{"podSelector": {"matchLabels": {"persia_job": "ads"}}}]
    assert [port["port"] for port in servers[0]["ports"]] == [4222]


def test_every_container_is_confined(ads: Callable[..., Objects]) -> None:
    pods = ads().pods()

    assert len(pods) == 6
    for each in pods:
        assert each["automountServiceAccountToken"] is False
        assert each["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for found in each["containers"]:
            assert found["securityContext"]["allowPrivilegeEscalation"] is False
            assert found["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_only_pods_of_a_named_service_account_get_its_token(
    ads: Callable[..., Objects], description: dict[str, Any]
) -> None:
    """Programs that use a ServiceAccount, such as Workload Identity clients, need its token."""
    job = ads(dataloader={**description["jobs"]["ads"]["dataloader"], "serviceAccountName": "loader"})

    loader, worker = pod(job, "dataloader"), pod(job, "nn-worker")
    assert (loader["serviceAccountName"], loader["automountServiceAccountToken"]) == ("loader", True)
    assert "serviceAccountName" not in worker
    assert worker["automountServiceAccountToken"] is False
