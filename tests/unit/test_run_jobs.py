"""MPI, Paddle, single-node and shared-folder jobs: what they refuse, put right, derive and pass on."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persia_infra.errors import InputError
from persia_infra.jobs import MPIJobSpec, PaddleJobSpec, RunJob, SingleNodeJobSpec, TrainingJobSpec
from persia_infra.pod_templates import SHARED_MEMORY
from persia_infra.pools import POOL_LABEL
from persia_infra.stack import parse_environment
from tests.unit.conftest import put

JOBS = "f.yaml: environment.jobs"
VOLUME = {"volume_type": "empty_dir", "name": "v", "mount_path": "/v", "spec": {}}
WORKER = "mpiReplicaSpecs/Worker"


@pytest.fixture
def environment(description: dict[str, Any], run_jobs: dict[str, Any], operators: dict[str, Any]) -> dict[str, Any]:
    return {**description, "jobs": run_jobs, "operators": operators}


@pytest.fixture
def spoiled(environment: dict[str, Any]) -> Callable[..., list[str]]:
    def lines(place: str, value: Any) -> list[str]:
        put(environment, f"jobs/{place}", value)
        try:
            parse_environment(environment, file="f.yaml")
        except InputError as error:
            return [str(problem) for problem in error.problems]
        return []

    return lines


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
        ("mpi/settings", {"run_as_user": 1000}, "mpi.sshAuthMountPath: is /root/.ssh, which the user 1000"),
        ("mpi/settings/run_as_user", 0, "mpi.settings.run_as_user: 0 is root"),
        ("mpi/profile", "big", "mpi.profile: no profile 'big' is described by the environment; known: none"),
        (f"mpi/{WORKER}/profile", "big", "mpi.mpiReplicaSpecs.Worker.profile: no profile 'big'"),
        (f"mpi/{WORKER}/pool", "tpu", "mpi.mpiReplicaSpecs.Worker.pool: no pool 'tpu' is described"),
        (
            f"mpi/{WORKER}/template/spec/nodeSelector",
            {"accelerator": "nvidia-tesla-p100"},
            "mpi.mpiReplicaSpecs.Worker.pool: its pods ask for nodes with the label accelerator=nvidia-tesla-p100",
        ),
        ("mpi/queue", "Big Queue", "mpi.queue: 'Big Queue' is no DNS label"),
        ("paddle/cleanPodPolicy", "Sometimes", "paddle.cleanPodPolicy: not one of the values it can have"),
        ("paddle/intranet", "Pod", "paddle.intranet: not one of the values it can have"),
        ("paddle/withGloo", 3, "paddle.withGloo: not one of the values it can have"),
        ("paddle/worker/replicas", 0, "paddle.worker.replicas: must be greater than or equal to 1"),
        ("paddle/worker", None, "paddle.worker: is missing, so nothing would train"),
        ("paddle/elastic", 2, "paddle.elastic: works for collective jobs only"),
        ("paddle/schedulingPolicy", {"minAvailable": 5}, "paddle.schedulingPolicy.minAvailable: 5 is more than"),
        ("paddle/worker/template/spec/restartPolicy", "Always", "paddle.worker.template.spec.restartPolicy: is Always"),
        (
            "paddle/worker/template/spec/initContainers",
            [{"name": "coord-paddle"}],
            "paddle.worker.template.spec.initContainers: coord-paddle is the name of the operator's own",
        ),
        (
            "paddle/ps/template/spec/containers/0/resources",
            {"limits": {"nvidia.com/gpu": 99}},
            "paddle.ps.template: asks for 99 nvidia.com/gpu, but a g2-standard-8 node of pool gpu gives pods 1",
        ),
        ("single/template/spec/restartPolicy", "Always", "single.template.spec.restartPolicy: is Always"),
        ("single/parallelism", 4, "single.parallelism: must be less than or equal to 1"),
        ("single/template/spec/containers/0/name", "Main", "single.template.spec.containers[0].name: 'Main' is no DNS"),
        ("training/dataset/claim", "x", "training.dataset: needs exactly one of nfs, claim and gcsFuse"),
        ("training/dataset/nfs/path", "x", "training.dataset.nfs.path: is no absolute path"),
        ("training/outputDir", "/elsewhere/out", "training.outputDir: is outside the workspace (/workspace)"),
        ("training/modelDir", "/models", "training.modelDir: is outside the workspace (/workspace)"),
        ("training/workspace/mountPath", "/tf_dataset", "training.workspace.mountPath: is the dataset's too"),
        ("training/nodes", 0, "training.nodes: must be greater than or equal to 1"),
        ("training/command", [], "training.command: is missing, so the launcher would have nothing to run"),
        ("training/registry", "docker.io/x", "training.registry: must be the registry's host alone"),
        ("training/image", "", "training.image: "),
        (
            "training/settings/volumes",
            [{**VOLUME, "name": "dataset"}],
            "training.settings.volumes[0].name: 'dataset' is the name of a volume that every training has",
        ),
    ],
)
def test_refused(spoiled: Callable[..., list[str]], place: str, value: Any, line: str) -> None:
    found = spoiled(place, value)

    assert any(one.startswith(f"{JOBS}.{line}") for one in found), found


def read(environment: dict[str, Any], name: str, **changes: Any) -> Any:
    environment["jobs"][name].update(changes)
    return parse_environment(environment).jobs[name]


def places(job: RunJob) -> list[str]:
    return [".".join(map(str, place)) for place, _ in job.notes()]


class TestMpi:
    EVERY_FIELD: ClassVar[dict[str, Any]] = {
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

    def test_every_field_of_the_crd_arrives_unchanged(self) -> None:
        assert MPIJobSpec.model_validate(self.EVERY_FIELD).object_spec("j", {}) == self.EVERY_FIELD

    def test_no_field_of_the_crd_is_forgotten(self) -> None:
        known = {info.alias for info in MPIJobSpec.model_fields.values() if not info.exclude}

        assert known == set(self.EVERY_FIELD)

    def test_pods_go_to_their_pools(self, environment: dict[str, Any]) -> None:
        spec = parse_environment(environment)
        job = spec.jobs["mpi"]
        assert isinstance(job, MPIJobSpec)

        found = job.object_spec("mpi", spec.placements("mpi"))["mpiReplicaSpecs"]

        worker, launcher = found["Worker"]["template"]["spec"], found["Launcher"]["template"]["spec"]
        assert (worker["nodeSelector"][POOL_LABEL], launcher["nodeSelector"][POOL_LABEL]) == ("gpu", "cpu")
        assert [one["key"] for one in worker["tolerations"]] == ["nvidia.com/gpu"]
        assert "tolerations" not in launcher

    def test_hardware_of_the_job_is_for_its_workers(self, environment: dict[str, Any]) -> None:
        hardware = {"resources": {"mem": {"limits": "4Gi"}}, "volumes": [VOLUME]}
        found = read(environment, "mpi", settings=hardware).object_spec("mpi", {})["mpiReplicaSpecs"]

        launcher = found["Launcher"]["template"]["spec"]["containers"][0]
        worker = found["Worker"]["template"]["spec"]["containers"][0]
        assert "resources" not in launcher
        assert worker["resources"]["limits"]["memory"] == "4Gi"
        assert launcher["volumeMounts"] == worker["volumeMounts"] == [{"name": "v", "mountPath": "/v"}]

    def test_workers_do_not_outlive_the_job_unless_asked(self, environment: dict[str, Any]) -> None:
        job = read(environment, "mpi")

        assert job.object_spec("mpi", {})["runPolicy"]["cleanPodPolicy"] == "Running"
        assert "runPolicy.cleanPodPolicy" in places(job)

    def test_the_older_api_is_translated_and_said(self, environment: dict[str, Any]) -> None:
        job = read(
            environment, "mpi", cleanPodPolicy="None", backoffLimit=4, mpiDistribution="IntelMPI", mainContainer="main"
        )

        spec = job.object_spec("mpi", {})
        assert spec["runPolicy"] == {"cleanPodPolicy": "None", "backoffLimit": 4}
        assert spec["mpiImplementation"] == "Intel"
        assert places(job) == ["cleanPodPolicy", "backoffLimit", "mpiDistribution", "mainContainer"]

    def test_a_queue_is_a_gang_of_all_pods(self, environment: dict[str, Any]) -> None:
        spec = read(environment, "mpi", queue="training").object_spec("mpi", {})

        assert spec["runPolicy"]["schedulingPolicy"] == {"minAvailable": 3, "queue": "training"}


class TestPaddle:
    EVERY_FIELD: ClassVar[dict[str, Any]] = {
        "cleanPodPolicy": "OnCompletion",
        "schedulingPolicy": {
            "minAvailable": 3,
            "queue": "training",
            "priorityClass": "high",
            "minResources": {"cpu": "4"},
        },
        "intranet": "Service",
        "withGloo": 1,
        "elastic": 0,
        **{
            role: {"replicas": 1, "template": {"spec": {"containers": [{"name": "paddle", "image": "i"}]}}}
            for role in ("ps", "worker", "heter")
        },
    }

    def test_every_field_of_the_crd_arrives_unchanged(self) -> None:
        assert PaddleJobSpec.model_validate(self.EVERY_FIELD).object_spec("j", {}) == self.EVERY_FIELD

    def test_no_field_of_the_crd_is_forgotten(self) -> None:
        known = {info.alias for info in PaddleJobSpec.model_fields.values() if not info.exclude}

        assert known == set(self.EVERY_FIELD)

    @pytest.mark.parametrize(
        ("ps", "workers", "mode"), [(True, 2, "PS"), (False, 2, "Collective"), (False, 1, "Single")]
    )
    def test_mode(self, environment: dict[str, Any], ps: bool, workers: int, mode: str) -> None:
        if not ps:
            del environment["jobs"]["paddle"]["ps"]
        environment["jobs"]["paddle"]["worker"]["replicas"] = workers

        assert read(environment, "paddle").mode == mode

    def test_well_known_mistakes_are_put_right_and_said(self, environment: dict[str, Any]) -> None:
        del environment["jobs"]["paddle"]["cleanPodPolicy"]
        environment["jobs"]["paddle"]["worker"]["template"]["spec"]["schedulerName"] = "volcano"
        environment["jobs"]["paddle"]["worker"]["limits"] = 2
        job = read(environment, "paddle", cleanPolicy="OnFailed")

        spec = job.object_spec("paddle", {})
        assert spec["cleanPodPolicy"] == "OnFailure"
        assert spec["schedulingPolicy"] == {"minAvailable": 4}
        assert "schedulerName" not in spec["worker"]["template"]["spec"]
        assert "limits" not in spec["worker"]
        assert places(job) == ["cleanPolicy", "cleanPodPolicy", "worker.template.spec.schedulerName", "worker.limits"]

    def test_gpu_workers_get_shared_memory(self, environment: dict[str, Any]) -> None:
        spec = read(environment, "paddle").object_spec("paddle", {})

        mounts = spec["worker"]["template"]["spec"]["containers"][0]["volumeMounts"]
        assert [mount["mountPath"] for mount in mounts] == [SHARED_MEMORY]
        assert "volumes" not in spec["ps"]["template"]["spec"]

    @pytest.mark.parametrize(
        ("changes", "place"),
        [
            ({"withGloo": 1, "intranet": "PodIP"}, "withGloo"),
            ({"elastic": 1, "ps": None}, "elastic"),
            ({"withGloo": 2, "ps": None}, "withGloo"),
        ],
    )
    def test_what_has_no_effect_is_said(self, environment: dict[str, Any], changes: Any, place: str) -> None:
        assert place in places(read(environment, "paddle", **changes))


class TestSingleNode:
    def test_a_job_that_ends_is_not_started_again(self, environment: dict[str, Any]) -> None:
        assert read(environment, "single").object_spec("single", {})["template"]["spec"]["restartPolicy"] == "Never"

    def test_a_pod_is_run_as_a_job(self) -> None:
        job = SingleNodeJobSpec.model_validate({"containers": [{"name": "a"}], "nodeSelector": {"x": "y"}})

        assert job.template.spec.node_selector == {"x": "y"}
        assert places(job) == [""]


class TestTraining:
    def test_several_nodes_are_an_mpi_job(self, environment: dict[str, Any]) -> None:
        job = read(environment, "training")
        assert isinstance(job, TrainingJobSpec)
        assert isinstance(job.runs_as, MPIJobSpec)

        roles = job.object_spec("training", {})["mpiReplicaSpecs"]

        assert roles["Launcher"]["template"]["spec"]["containers"][0]["command"] == [
            *("mpirun", "-n", "2"),
            "/workspace/train.sh",
        ]
        assert roles["Worker"]["replicas"] == 2
        assert [share.name for share in job.shares("training")] == ["training-dataset"]

    def test_one_node_is_one_pod_with_the_same_folders(self, environment: dict[str, Any]) -> None:
        job = read(environment, "training", nodes=1, outputDir="/workspace/results")
        assert isinstance(job.runs_as, SingleNodeJobSpec)

        (container,) = job.object_spec("training", {})["template"]["spec"]["containers"]

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


class TestProfiles:
    def test_a_profile_wins_and_says_what_it_overrode(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {"large": {"resources": {"mem": {"limits": "12Gi"}}, "node_selector": {"tier": "a"}}}
        environment["pools"]["gpu"]["labels"] = {"tier": "a"}
        job = read(environment, "mpi", profile="large", settings={"resources": {"mem": {"limits": "4Gi"}}})

        worker = job.object_spec("mpi", {})["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        assert worker["containers"][0]["resources"]["limits"]["memory"] == "12Gi"
        assert worker["nodeSelector"] == {"tier": "a"}
        notes = {".".join(map(str, place)): said for place, said in job.notes()}
        assert "the profile 'large' says otherwise" in notes["settings.resources.limits.memory"]
        template = "mpiReplicaSpecs.Worker.template.spec.containers.0.resources.limits.memory"
        assert "the profile 'large' says otherwise" in notes[template]

    def test_the_fit_is_that_of_the_profile(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {"huge": {"resources": {"mem": {"limits": "900Gi"}}}}
        environment["jobs"]["single"]["profile"] = "huge"

        with pytest.raises(InputError, match=r"single\.template: asks for 900.00Gi memory"):
            parse_environment(environment)

    def test_a_role_can_have_another_profile_than_its_job(self, environment: dict[str, Any]) -> None:
        environment["profiles"] = {name: {"envs": [{"name": "SIZE", "value": name}]} for name in ("small", "large")}
        environment["jobs"]["paddle"]["ps"]["profile"] = "small"
        spec = read(environment, "paddle", profile="large").object_spec("paddle", {})

        values = {role: spec[role]["template"]["spec"]["containers"][0]["env"][0]["value"] for role in ("ps", "worker")}
        assert values == {"ps": "small", "worker": "large"}


class TestPodSecurity:
    @pytest.mark.parametrize(
        ("name", "changes", "level"),
        [
            ("training", {}, "restricted"),
            ("training", {"settings": {"resources": {"gpu": {"limits": "1"}}}}, "baseline"),
            ("single", {"settings": {"run_as_user": 1000}}, "restricted"),
            ("single", {"settings": {"run_as_user": 1000, "volumes": [VOLUME]}}, "restricted"),
            (
                "single",
                {"settings": {"volumes": [{**VOLUME, "volume_type": "host_path", "spec": {"path": "/x"}}]}},
                "privileged",
            ),
            ("mpi", {}, "baseline"),
            ("mpi", {"settings": {"run_as_user": 1}, "sshAuthMountPath": "/home/x/.ssh"}, "restricted"),
            ("paddle", {"settings": {"run_as_user": 1000}}, "baseline"),
            ("paddle", {"intranet": "Host"}, "privileged"),
        ],
    )
    def test_a_namespace_is_as_strict_as_its_jobs_allow(
        self, environment: dict[str, Any], name: str, changes: Any, level: str
    ) -> None:
        environment["jobs"] = {name: {**environment["jobs"][name], **changes}}
        spec = parse_environment(environment)

        assert spec.pod_security("training") == level
        because = [said for place, said in spec.notes() if place == ("namespaces", 0)]
        assert bool(because) == (level != "restricted")
        assert all(f"because of the job {name}: " in said for said in because)

    def test_without_jobs_it_is_the_strictest(self, environment: dict[str, Any]) -> None:
        assert parse_environment({**environment, "jobs": {}}).pod_security("training") == "restricted"


_TEXT = st.text(max_size=8)
_SCALAR = st.none() | st.booleans() | st.integers(-3, 99) | _TEXT
_ANY = st.recursive(_SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3))


def _keys(*models: type[RunJob]) -> st.SearchStrategy[str]:
    known = {"cleanPolicy", "mainContainer", "mpiDistribution", "backoffLimit", "containers", "Launcher", "spec"}
    return st.sampled_from(
        sorted(known.union(*({info.alias or "" for info in m.model_fields.values()} for m in models)))
    )


@pytest.mark.parametrize("kind", ["MPIJob", "PaddleJob", "Job", "TrainingJob"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_manifest_crashes_the_parser(kind: str, data: st.DataObject) -> None:
    keys = _keys(MPIJobSpec, PaddleJobSpec, SingleNodeJobSpec, TrainingJobSpec) | _TEXT
    inner = st.recursive(
        _ANY, lambda one: st.dictionaries(keys, one, max_size=3) | st.lists(one, max_size=2), max_leaves=6
    )
    job = data.draw(st.dictionaries(keys, inner, max_size=5))
    environment = {
        "project": "persia-example",
        "region": "us-central1",
        "cluster": {"zones": ["us-central1-a"], "authorizedNetworks": [{"cidr": "203.0.113.0/24"}]},
        "pools": {"cpu": {"machineType": "n2-standard-8", "count": 1}},
        "jobs": {"j": {**job, "kind": kind}},
    }
    with suppress(InputError):
        parse_environment(environment)


class TestPersiaRoles:
    """The same settings and profiles for the roles of a PERSIA job."""

    def test_a_role_takes_settings_and_a_profile(self, description: dict[str, Any]) -> None:
        description["profiles"] = {"large": {"resources": {"mem": {"limits": "20Gi"}}}}
        description["jobs"]["ads"]["nnWorker"] |= {
            "profile": "large",
            "settings": {"run_as_user": 1000, "secrets": ["hub"], "volumes": [VOLUME]},
        }
        spec = parse_environment(description)
        job: Any = spec.jobs["ads"]

        found = job.settled("nnWorker", "ads")

        assert found.role.resources.limits == {"cpu": "4", "memory": "20Gi", "nvidia.com/gpu": "1"}
        assert found.role.security_context.run_as_user == 1000
        assert [source.secret_ref.name for source in found.variable_sources] == ["hub"]
        assert {volume.name for volume in found.volumes} == {"data", "v"}
        assert {mount.mount_path for mount in found.role.volume_mounts} == {"/data", "/v"}
        said = [message for place, message in job.notes() if place == ("nnWorker", "resources", "limits", "memory")]
        assert said == ["does not count: the profile 'large' or the role's settings say otherwise, and win"]

    def test_without_settings_a_role_stays_as_it_is(self, description: dict[str, Any]) -> None:
        job: Any = parse_environment(description).jobs["ads"]

        found = job.settled("dataloader", "ads")

        assert (found.role.env, found.role.volume_mounts) == (job.dataloader.env, job.dataloader.volume_mounts)
        assert (found.variable_sources, found.annotations, found.overridden) == ([], {}, [])

    @pytest.mark.parametrize(
        ("role", "line"),
        [
            ({"profile": "none-such"}, "nnWorker.profile: no profile 'none-such' is described"),
            ({"settings": {"run_as_user": 0}}, "nnWorker.settings.run_as_user: 0 is root"),
            ({"settings": {"resources": {"mem": {"limits": "900Gi"}}}}, "nnWorker.resources: asks for 900.00Gi memory"),
            ({"settings": {"node_selector": {"a": "b"}}}, "nnWorker.pool: its pods ask for nodes with the label a=b"),
        ],
    )
    def test_refused(self, description: dict[str, Any], role: dict[str, Any], line: str) -> None:
        description["jobs"]["ads"]["nnWorker"] |= role

        with pytest.raises(InputError) as caught:
            parse_environment(description, file="f.yaml")

        assert any(str(one).startswith(f"{JOBS}.ads.{line}") for one in caught.value.problems), caught.value.problems

    def test_roles_that_are_not_root_let_the_namespace_be_strict(self, description: dict[str, Any]) -> None:
        job = description["jobs"]["ads"]
        job["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        assert parse_environment(description).pod_security("training") == "baseline"
        for role in ("embeddingParameterServer", "embeddingWorker", "nnWorker", "dataloader"):
            job[role]["settings"] = {"run_as_user": 1000}

        assert parse_environment(description).pod_security("training") == "restricted"


def test_one_name_is_one_share(environment: dict[str, Any]) -> None:
    for role, path in (("ps", "/a"), ("worker", "/b")):
        share = {**VOLUME, "volume_type": "nfs", "spec": {"server": "10.0.0.2", "path": path}}
        environment["jobs"]["paddle"][role]["settings"] = {"volumes": [share]}

    with pytest.raises(InputError, match=r"jobs\.paddle\.worker\.settings: its volume 'v' is another share"):
        parse_environment(environment)
