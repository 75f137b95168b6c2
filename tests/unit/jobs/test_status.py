"""How jobs are told to be doing, from objects as the API server gives them."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from persia_infra.cli.job_table import WIDTH, shown
from persia_infra.jobs.status import JobStatus, as_json, job_statuses
from persia_infra.kube.api import Refused
from persia_infra.stack import parse_environment

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
MPI = {"training.kubeflow.org/job-name": "mpi"}
MPI_PATH = "/apis/kubeflow.org/v2beta1/namespaces/training/mpijobs/mpi"


def pod(name: str, phase: str = "Running", *, labels: dict[str, str] | None = None, why: str = "") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
    if why:
        conditions.append({"type": "PodScheduled", "status": "False", "message": why})
    return {
        "metadata": {"name": name, "namespace": "training", "labels": labels or {}, "creationTimestamp": stamp(60)},
        "spec": {},
        "status": {"phase": phase, "conditions": conditions},
    }


def stamp(seconds_ago: int) -> str:
    return (NOW - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")


def mpi_job(*conditions: str) -> dict[str, Any]:
    return {
        "metadata": {"creationTimestamp": stamp(7200)},
        "status": {"conditions": [{"type": one, "status": "True"} for one in conditions]},
    }


class Server:
    """Answers with the objects it is given."""

    def __init__(
        self, pods: list[dict[str, Any]], events: list[dict[str, Any]] | None = None, **objects: dict[str, Any]
    ) -> None:
        self.pods, self.events, self.objects = pods, events or [], objects

    def request(self, method: str, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        assert method == "GET"
        if path == "/api/v1/namespaces/training/pods":
            return {"items": self.pods}
        if path == "/api/v1/namespaces/training/events":
            assert query == {"fieldSelector": "involvedObject.uid=of-the-group,reason=Unschedulable"}
            return {"items": self.events}
        found = self.objects.get(path.rsplit("/", 2)[-2])
        if found is None or not path.startswith("/apis/"):
            raise Refused(404, {"message": "not found"})
        return found


@pytest.fixture
def look(description: dict[str, Any], run_jobs: dict[str, Any], operators: dict[str, Any]) -> Any:
    def statuses(name: str, pods: list[dict[str, Any]], **objects: Any) -> JobStatus:
        job = {**description["jobs"], **run_jobs}[name]
        spec = parse_environment({**description, "operators": operators, "jobs": {name: job}})
        (found,) = job_statuses(spec.deployed_jobs(), Server(pods, **objects), NOW)
        return found

    return statuses


def roles(job: JobStatus) -> dict[str, tuple[int, int, int, int]]:
    return {role.role: (role.wanted, role.ready, role.pending, role.failed) for role in job.roles}


def test_a_job_whose_pods_are_ready_runs(look: Any) -> None:
    pods = [pod("mpi-launcher-x", labels=MPI), *(pod(f"mpi-worker-{index}", labels=MPI) for index in range(2))]
    found = look("mpi", [*pods, pod("mpi-worker-9"), pod("other-worker-0", labels=MPI)], mpijobs=mpi_job("Running"))

    assert (found.phase, found.age_seconds) == ("Running", 7200)
    assert roles(found) == {"launcher": (1, 1, 0, 0), "worker": (2, 2, 0, 0)}
    assert found.log == "kubectl logs --namespace training --follow job/mpi-launcher"


def test_a_pending_job_gives_the_reason_of_the_scheduler(look: Any) -> None:
    waiting = pod("mpi-worker-1", "Pending", labels=MPI, why="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    pods = [pod("mpi-launcher-x", labels=MPI), pod("mpi-worker-0", labels=MPI), waiting]

    found = look("mpi", pods, mpijobs=mpi_job())

    assert found.phase == "Pending"
    assert roles(found)["worker"] == (2, 1, 1, 0)
    assert found.roles[1].reason == "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def test_a_failed_job_gives_the_reason_of_its_pod(look: Any) -> None:
    broken = pod("single-x", "Failed", labels={"batch.kubernetes.io/job-name": "single"})
    broken["status"]["containerStatuses"] = [
        {"name": "main", "state": {"terminated": {"reason": "OOMKilled", "message": "memory"}}}
    ]
    failed = {
        "metadata": {"creationTimestamp": stamp(5)},
        "status": {"conditions": [{"type": "Failed", "status": "True"}]},
    }

    found = look("single", [broken], jobs=failed)

    assert found.phase == "Failed"
    assert roles(found) == {"training": (1, 0, 0, 1)}
    assert found.roles[0].reason == "main: OOMKilled memory"


def test_pods_that_do_not_exist_yet_count_as_pending(look: Any) -> None:
    there = {"metadata": {"creationTimestamp": stamp(1)}, "status": {"phase": "Pending"}}
    found = look("paddle", [pod("paddle-ps-0")], paddlejobs=there)

    assert found.phase == "Pending"
    assert roles(found) == {"ps": (2, 1, 1, 0), "worker": (2, 0, 2, 0)}
    assert found.roles[1].reason == "2 of its pods do not exist yet"


def test_a_job_that_no_operator_has_seen_gives_that_reason(look: Any) -> None:
    found = look("paddle", [], paddlejobs={"metadata": {"creationTimestamp": stamp(1)}})

    assert {role.reason for role in found.roles} == {
        "no operator has processed the PaddleJob yet: check that its operator is running"
    }


def test_a_job_that_does_not_exist_is_missing(look: Any) -> None:
    found = look("mpi", [pod("other-0")])

    assert (found.phase, found.age_seconds) == ("Missing", None)


@pytest.mark.parametrize(("said", "phase"), [("Succeeded", "Succeeded"), ("Suspended", "Suspended")])
def test_a_job_that_is_over_waits_for_no_pods(look: Any, said: str, phase: str) -> None:
    found = look("mpi", [pod("mpi-launcher-x", "Succeeded", labels=MPI)], mpijobs=mpi_job(said))

    assert found.phase == phase
    assert [role.pending for role in found.roles] == [0, 0]
    assert [role.reason for role in found.roles] == ["", ""]


def group(phase: str, why: str = "") -> dict[str, Any]:
    conditions = [{"type": "Unschedulable", "status": "True", "message": why}] if why else []
    return {"metadata": {"uid": "of-the-group"}, "status": {"phase": phase, "conditions": conditions}}


def test_a_gang_that_its_queue_holds_back(look: Any) -> None:
    events = [
        {"type": "Normal", "lastTimestamp": stamp(9), "message": "overused memory"},
        {"type": "Normal", "lastTimestamp": stamp(3), "message": "overused nvidia.com/gpu"},
        {"type": "Warning", "lastTimestamp": stamp(1), "message": "0/0 tasks in gang unschedulable"},
    ]
    job = {"metadata": {"creationTimestamp": stamp(1)}, "status": {"phase": "Pending"}}

    found = look("paddle", [], events=events, paddlejobs=job, podgroups=group("Pending"))

    assert {role.reason for role in found.roles} == {"Volcano holds back the gang: overused nvidia.com/gpu"}


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ("", "Volcano holds back the gang: 3/3 tasks unschedulable"),
        ("pod group is not ready, 3 Pending", "Volcano holds back the gang: 3/3 tasks unschedulable"),
        ("0/3 nodes are available: 3 Insufficient cpu.", "0/3 nodes are available: 3 Insufficient cpu."),
    ],
)
def test_pods_that_only_wait_for_their_gang_give_its_reason(look: Any, own: str, told: str) -> None:
    pods = [pod(f"mpi-{name}", "Pending", labels=MPI, why=own) for name in ("launcher-x", "worker-0", "worker-1")]
    held = group("Inqueue", "3/3 tasks unschedulable")

    found = look("mpi", pods, mpijobs=mpi_job("Created"), podgroups=held)

    assert {role.reason for role in found.roles} == {told}


def test_what_once_held_a_gang_back_is_no_longer_the_reason_when_it_runs(look: Any) -> None:
    pods = [pod("mpi-launcher-x", labels=MPI), pod("mpi-worker-0", labels=MPI)]
    ran = group("Running", "3/3 tasks unschedulable")

    found = look("mpi", pods, mpijobs=mpi_job("Running"), podgroups=ran)

    assert found.roles[1].reason == "1 of its pods do not exist yet"


def test_the_status_of_a_native_persia_job_is_that_of_its_pods(look: Any) -> None:
    names = ["embedding-ps-0", "embedding-ps-1", *(f"embedding-worker-{i}" for i in range(3)), "nn-worker-0"]
    names += ["dataloader-0", "dataloader-1", "metrics-gateway-5d4-x", "nats-0", "nats-1"]

    found = look("ads", [pod(f"ads-{name}") for name in names])

    assert found.phase == "Pending"
    assert roles(found)["nats"] == (3, 2, 1, 0)
    assert roles(found)["nnWorker"] == (1, 1, 0, 0)
    assert found.log == "kubectl logs --namespace training --follow ads-nn-worker-0"


class TestPersiaOperator:
    SERVERS = ("embedding-ps-0", "embedding-ps-1", *(f"embedding-worker-{i}" for i in range(3)), "metrics-gateway")

    @pytest.fixture(autouse=True)
    def through_the_operator(self, description: dict[str, Any]) -> None:
        description["jobs"]["ads"]["mode"] = "operator"

    def test_a_persia_job_that_its_operator_has_not_seen_is_pending_with_the_reason(self, look: Any) -> None:
        nats = [pod(f"ads-nats-{index}") for index in range(3)]

        found = look("ads", nats, persiajobs={"metadata": {"creationTimestamp": stamp(1)}})

        assert found.phase == "Pending"
        assert {role.role: role.reason for role in found.roles}["nnWorker"] == (
            "no operator has processed the PersiaJob yet: check that its operator is running"
        )
        assert roles(found)["nats"] == (3, 3, 0, 0)

    def test_a_lost_pod_stays_lost(self, look: Any) -> None:
        seen = {"metadata": {"creationTimestamp": stamp(1), "finalizers": ["persiajobs.persia.com"]}}

        found = look("ads", [pod(f"ads-{name}") for name in self.SERVERS], persiajobs=seen)

        reasons = {role.role: role.reason for role in found.roles}
        assert reasons["nnWorker"].startswith("the PERSIA operator creates each pod only once")
        assert reasons["nats"] == "3 of its pods do not exist yet"

    def test_training_is_over_although_the_servers_run_on(self, look: Any) -> None:
        seen = {"metadata": {"creationTimestamp": stamp(1), "finalizers": ["persiajobs.persia.com"]}}
        ended = [pod(f"ads-{name}", "Succeeded") for name in ("nn-worker-0", "dataloader-0", "dataloader-1")]

        found = look("ads", [*ended, *(pod(f"ads-{name}") for name in self.SERVERS)], persiajobs=seen)

        assert found.phase == "Succeeded"


@pytest.mark.parametrize(
    ("stated", "phase"),
    [
        ("Aborted", "Failed"),
        ("Terminated", "Failed"),
        ("Failed", "Failed"),
        ("Completed", "Succeeded"),
        ("Succeed", "Succeeded"),
        ("Running", "Running"),
    ],
)
def test_the_phase_that_the_paddle_operator_states(look: Any, stated: str, phase: str) -> None:
    pods = [pod(f"paddle-{role}-{index}") for role in ("ps", "worker") for index in range(2)]
    job = {"metadata": {"creationTimestamp": stamp(1)}, "status": {"phase": stated}}

    assert look("paddle", pods, paddlejobs=job).phase == phase


def of_ads(*, trained: int, workers: int) -> list[dict[str, Any]]:
    """The pods of the PERSIA job `ads`, some of whose nn-workers have succeeded."""
    names = ["embedding-ps-0", "embedding-ps-1", *(f"embedding-worker-{i}" for i in range(3)), "metrics-gateway-5d4-x"]
    names += ["dataloader-0", "dataloader-1", *(f"nats-{i}" for i in range(3))]
    ended = [pod(f"ads-nn-worker-{index}", "Succeeded" if index < trained else "Running") for index in range(workers)]
    return [*(pod(f"ads-{name}") for name in names), *ended]


@pytest.mark.parametrize(("trained", "phase"), [(0, "Running"), (1, "Running"), (2, "Succeeded")])
def test_a_persia_job_has_succeeded_only_when_all_of_its_nn_workers_have(
    look: Any, description: dict[str, Any], trained: int, phase: str
) -> None:
    description["jobs"]["ads"]["nnWorker"]["replicas"] = 2

    assert look("ads", of_ads(trained=trained, workers=2)).phase == phase


def test_a_job_without_an_object_of_its_own_is_as_old_as_its_oldest_pod(look: Any) -> None:
    pods = of_ads(trained=0, workers=1)
    pods[3]["metadata"]["creationTimestamp"] = stamp(500)

    assert look("ads", pods).age_seconds == 500


def test_json_has_the_promised_keys(look: Any) -> None:
    (job,) = as_json([look("mpi", [])])["jobs"]

    assert {"name", "kind", "phase", "roles"} <= set(job)
    assert {"role", "wanted", "ready", "pending", "failed", "reason"} <= set(job["roles"][0])


def test_the_table_fits_a_terminal(look: Any) -> None:
    why = (
        "0/12 nodes are available: 3 node(s) had untolerated taint {nvidia.com/gpu: present}, 9 Insufficient cpu. " * 2
    )
    jobs = [look("mpi", [pod("mpi-worker-0", "Pending", labels=MPI, why=why)], mpijobs=mpi_job())]
    out = io.StringIO()

    Console(file=out, width=WIDTH).print(shown(jobs))

    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "untolerated taint" in out.getvalue()
    assert lines[-1] == "kubectl logs --namespace training --follow job/mpi-launcher"
