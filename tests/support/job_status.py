"""What `persia-infra status` tells of jobs on the control plane of a test."""

from datetime import UTC, datetime
from typing import Any

from persia_infra.jobs.status import JobStatus, job_statuses
from persia_infra.kube.api import connect
from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.stack import parse_environment


def job_status(
    control_plane: ControlPlane, namespace: str, operators: dict[str, Any], name: str, job: dict[str, Any]
) -> JobStatus:
    environment = {
        "project": "persia-example",
        "region": "us-central1",
        "cluster": {"zones": ["us-central1-a"], "authorizedNetworks": [{"cidr": "203.0.113.0/24"}]},
        "pools": {
            "cpu": {"machineType": "n2-standard-8", "count": 1},
            "gpu": {"machineType": "a2-highgpu-8g", "count": 8},
        },
        "namespaces": [namespace],
        "operators": operators,
        "jobs": {name: job},
    }
    api = connect(str(control_plane.kubeconfig), None)
    assert api is not None
    (found,) = job_statuses(parse_environment(environment).deployed_jobs(), api, datetime.now(UTC))
    return found


def counts(job: JobStatus) -> dict[str, tuple[int, int, int, int]]:
    """Of each role: wanted, ready, pending, failed."""
    return {role.role: (role.wanted, role.ready, role.pending, role.failed) for role in job.roles}
