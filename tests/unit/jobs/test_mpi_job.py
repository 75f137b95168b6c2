"""MPI jobs: what they refuse, put right, derive and pass on."""

from collections.abc import Callable
from typing import Any

import pytest

from persia_infra.gke.pools import POOL_LABEL
from persia_infra.jobs import MPIJobSpec
from persia_infra.stack import parse_environment
from tests.support.environments import JOBS, VOLUME, assert_refused, problems
from tests.support.run_jobs import object_spec, places, read, without_added_labels

WORKER = "mpiReplicaSpecs/Worker"
EVERY_FIELD: dict[str, Any] = {
    "slotsPerWorker": 2,
    "runLauncherAsWorker": True,
    "sshAuthMountPath": "/home/mpiuser/.ssh",
    "launcherCreationPolicy": "WaitForWorkersReady",
    "mpiImplementation": "MPICH",
    "runPolicy": {
        "cleanPodPolicy": "All",
        "ttlSecondsAfterFinished": 60,
        "activeDeadlineSeconds": 3600,
        "backoffLimit": 3,
        "suspend": True,
        "managedBy": "kubeflow.org/mpi-operator",
        "schedulingPolicy": {
            "minAvailable": 2,
            "queue": "training",
            "minResources": {"cpu": "4"},
            "priorityClass": "high",
            "scheduleTimeoutSeconds": 30,
        },
    },
    "mpiReplicaSpecs": {
        "Launcher": {
            "replicas": 1,
            "restartPolicy": "OnFailure",
            "template": {"spec": {"containers": [{"name": "launcher", "image": "i"}]}},
        },
        "Worker": {
            "replicas": 1,
            "restartPolicy": "Never",
            "template": {
                "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                "spec": {
                    "serviceAccountName": "sa",
                    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["x"]}],
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "containers": [
                        {
                            "name": "worker",
                            "image": "i",
                            "ports": [{"containerPort": 22, "name": "ssh"}],
                            "livenessProbe": {"tcpSocket": {"port": 22}},
                            "resources": {"limits": {"cpu": "1"}},
                            "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                        }
                    ],
                },
            },
        },
    },
}


MINIMAL: dict[str, Any] = {
    "kind": "MPIJob",
    "mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}},
}


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("mpi/mpiReplicaSpecs/Launcher/replicas", 2, "mpi.mpiReplicaSpecs.Launcher.replicas: must be 1"),
        (f"mpi/{WORKER}/replicas", 0, "mpi.mpiReplicaSpecs.Worker.replicas: is missing or 0"),
        (f"mpi/{WORKER}/replicas", None, "mpi.mpiReplicaSpecs.Worker.replicas: is missing or 0"),
        ("mpi/mpiReplicaSpecs", {}, "mpi.mpiReplicaSpecs.Launcher: is required and missing"),
        ("mpi/mpiReplicaSpecs/Master", {}, "mpi.mpiReplicaSpecs.Master: unknown key"),
        (f"mpi/{WORKER}/restartPolicy", "Always", "mpi.mpiReplicaSpecs.Worker.restartPolicy: not one of the values"),
        (f"mpi/{WORKER}/restartPolicy", "ExitCode", "mpi.mpiReplicaSpecs.Worker.restartPolicy: not one of"),
        (f"mpi/{WORKER}/template/spec/containers", [], "mpi.mpiReplicaSpecs.Worker.template.spec.containers: is empty"),
        (
            f"mpi/{WORKER}/template/spec/volumes",
            [{"name": "x"}],
            "mpi.mpiReplicaSpecs.Worker.template.spec.volumes[0]: needs exactly one source",
        ),
        (
            f"mpi/{WORKER}/template/spec/containers/0/volumeMounts",
            [{"name": "x", "mountPath": "/x"}],
            "mpi.mpiReplicaSpecs.Worker.template.spec.containers[0].volumeMounts[0].name: no volume 'x' is declared",
        ),
        (
            f"mpi/{WORKER}/template/spec/container",
            [],
            "mpi.mpiReplicaSpecs.Worker.template.spec.container: unknown key, which would have no effect; did you mean",
        ),
        ("mpi/slotsPerWorker", 0, "mpi.slotsPerWorker: must be greater than or equal to 1"),
        ("mpi/mpiImplementation", "LAM", "mpi.mpiImplementation: not one of the values it can have"),
        ("mpi/launcherCreationPolicy", "Later", "mpi.launcherCreationPolicy: not one of the values it can have"),
        ("mpi/runPolicy/cleanPodPolicy", "Sometimes", "mpi.runPolicy.cleanPodPolicy: not one of the values"),
        ("mpi/runPolicy/backoffLimit", -1, "mpi.runPolicy.backoffLimit: must be greater than or equal to 0"),
        ("mpi/runPolicy/managedBy", "me", "mpi.runPolicy.managedBy: not one of the values it can have"),
        ("mpi/runPolicy/schedulingPolicy/minAvailable", 9, "mpi.runPolicy.schedulingPolicy.minAvailable: 9 is more"),
        ("mpi/settings", {"run_as_user": 1000}, "mpi.sshAuthMountPath: is /root/.ssh, which user 1000"),
        (
            "mpi",
            {**MINIMAL, "settings": {"run_as_user": 1000}, "sshAuthMountPath": "/root/.ssh/"},
            ("mpi.sshAuthMountPath: is /root/.ssh, which user 1000",),
        ),
        ("mpi/settings/run_as_user", 0, "mpi.settings.run_as_user: 0 is root"),
        ("mpi/profile", "big", "mpi.profile: the environment has no profile 'big'; known: none"),
        (f"mpi/{WORKER}/profile", "big", "mpi.mpiReplicaSpecs.Worker.profile: the environment has no profile 'big'"),
        (f"mpi/{WORKER}/pool", "tpu", "mpi.mpiReplicaSpecs.Worker.pool: there is no pool 'tpu'"),
        (
            f"mpi/{WORKER}/template/spec/nodeSelector",
            {"accelerator": "nvidia-tesla-p100"},
            "mpi.mpiReplicaSpecs.Worker.pool: its pods require the node label accelerator=nvidia-tesla-p100",
        ),
        ("mpi/queue", "Big Queue", "mpi.queue: 'Big Queue' is not a valid name"),
        (
            "mpi/mainContainer",
            "man",
            "mpi.mainContainer: no container has this name, so it is unclear which one trains; did you mean 'main'?",
        ),
    ],
)
def test_a_wrong_value_in_an_mpi_job_is_refused_with_exactly_one_line(
    spoiled_job: Callable[..., list[str]], place: str, value: Any, line: str | tuple[str, ...]
) -> None:
    assert_refused(spoiled_job(place, value), line, prefix=f"{JOBS}.")


def test_every_field_of_the_crd_arrives_unchanged() -> None:
    assert without_added_labels(object_spec(MPIJobSpec.model_validate(EVERY_FIELD))) == EVERY_FIELD


def test_no_field_of_the_crd_is_forgotten() -> None:
    known = {info.alias for info in MPIJobSpec.model_fields.values() if not info.exclude}

    assert known == set(EVERY_FIELD)


def test_pods_go_to_their_pools(environment: dict[str, Any]) -> None:
    spec = parse_environment(environment)
    job = spec.jobs["mpi"]
    assert isinstance(job, MPIJobSpec)

    found = object_spec(job, "mpi", spec.placements("mpi"))["mpiReplicaSpecs"]

    worker, launcher = found["Worker"]["template"]["spec"], found["Launcher"]["template"]["spec"]
    assert (worker["nodeSelector"][POOL_LABEL], launcher["nodeSelector"][POOL_LABEL]) == ("gpu", "cpu")
    assert [one["key"] for one in worker["tolerations"]] == ["nvidia.com/gpu"]
    assert "tolerations" not in launcher


def test_hardware_of_the_job_is_for_its_workers(environment: dict[str, Any]) -> None:
    hardware = {"resources": {"mem": {"limits": "4Gi"}}, "volumes": [VOLUME]}
    found = object_spec(read(environment, "mpi", settings=hardware))["mpiReplicaSpecs"]

    launcher = found["Launcher"]["template"]["spec"]["containers"][0]
    worker = found["Worker"]["template"]["spec"]["containers"][0]
    assert "resources" not in launcher
    assert worker["resources"]["limits"]["memory"] == "4Gi"
    assert launcher["volumeMounts"] == worker["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]


def test_workers_do_not_outlive_the_job_unless_asked(environment: dict[str, Any]) -> None:
    job = read(environment, "mpi")

    assert object_spec(job)["runPolicy"]["cleanPodPolicy"] == "Running"
    assert "runPolicy.cleanPodPolicy" in places(job)


def test_an_mpi_job_of_the_older_api_is_translated_with_notes(environment: dict[str, Any]) -> None:
    job = read(
        environment, "mpi", cleanPodPolicy="None", backoffLimit=4, mpiDistribution="IntelMPI", mainContainer="main"
    )

    spec = object_spec(job)
    assert spec["runPolicy"] == {"cleanPodPolicy": "None", "backoffLimit": 4}
    assert spec["mpiImplementation"] == "Intel"
    assert places(job) == ["cleanPodPolicy", "backoffLimit", "mpiDistribution", "mainContainer"]


@pytest.mark.parametrize(
    ("old", "line"),
    [
        ({"cleanPodPolicy": "Sometimes"}, "cleanPodPolicy: not one of the values"),
        ({"backoffLimit": -1}, "backoffLimit: must be greater than or equal to 0"),
        ({"mpiDistribution": "LAM"}, "mpiDistribution: not one of the values it can have"),
    ],
)
def test_errors_in_the_older_mpi_api_name_the_keys_of_that_api(
    environment: dict[str, Any], old: dict[str, Any], line: str
) -> None:
    environment["jobs"]["mpi"].update(old)

    assert_refused(problems(environment), line, prefix=f"{JOBS}.mpi.")


def test_containers_keep_their_number_when_the_main_one_comes_first(environment: dict[str, Any]) -> None:
    worker = environment["jobs"]["mpi"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"].insert(0, {"name": "beside", "image": "no image"})
    environment["jobs"]["mpi"]["mainContainer"] = "main"

    (said,) = problems(environment)

    assert said.startswith(
        f"{JOBS}.mpi.mpiReplicaSpecs.Worker.template.spec.containers[0].image: is not a valid image name"
    )


def test_a_queue_is_a_gang_of_all_pods(environment: dict[str, Any]) -> None:
    spec = object_spec(read(environment, "mpi", queue="training"))

    assert spec["runPolicy"]["schedulingPolicy"] == {"minAvailable": 3, "queue": "training"}


def test_a_launcher_with_gpus_needs_a_pool_with_gpus(environment: dict[str, Any]) -> None:
    launcher = environment["jobs"]["mpi"]["mpiReplicaSpecs"]["Launcher"]
    launcher["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    environment["jobs"] = {"mpi": environment["jobs"]["mpi"]}
    assert parse_environment(environment).placements("mpi")["launcher"].pool == "gpu"

    environment["pools"]["more"] = {"machineType": "g2-standard-8", "count": 1}

    assert_refused(
        problems(environment),
        "mpi.mpiReplicaSpecs.Launcher.pool: is required, because there are several pools with GPUs",
        prefix=f"{JOBS}.",
    )


def test_a_launcher_that_only_starts_the_others_may_run_anywhere(environment: dict[str, Any]) -> None:
    environment["pools"]["more"] = {"machineType": "n2-standard-8", "count": 1}
    environment["jobs"] = {"mpi": environment["jobs"]["mpi"]}

    assert set(parse_environment(environment).placements("mpi")) == {"worker"}


def test_hardware_settings_of_the_job_are_not_for_a_launcher_that_only_starts_the_others(
    environment: dict[str, Any],
) -> None:
    hardware = {
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "node_selector": {"tier": "a"},
        "shared_memory": "1Gi",
    }
    environment["pools"]["gpu"]["labels"] = {"tier": "a"}
    found = object_spec(read(environment, "mpi", settings=hardware))["mpiReplicaSpecs"]

    launcher, worker = (found[role]["template"]["spec"] for role in ("Launcher", "Worker"))
    assert worker["tolerations"] == hardware["tolerations"]
    assert worker["nodeSelector"] == {"tier": "a"}
    assert not {"tolerations", "nodeSelector", "volumes"} & set(launcher)


def test_a_template_that_mounts_a_bucket_gets_its_sidecar(environment: dict[str, Any]) -> None:
    pod = environment["jobs"]["mpi"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    source = {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "criteo"}}
    pod["volumes"] = [{"name": "data", "csi": source}]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]

    found = object_spec(read(environment, "mpi"))["mpiReplicaSpecs"]

    assert found["Worker"]["template"]["metadata"]["annotations"] == {"gke-gcsfuse/volumes": "true"}
    assert "annotations" not in found["Launcher"]["template"]["metadata"]
