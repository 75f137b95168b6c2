"""A kind of job and an operator from outside this library: rehearsed with the operator running, and their status read.

The proof that a new kind is one module and one line: the project's own module is imported before the library's
environment, and no file of the library knows of it.
"""

import json
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.own_kinds import STACK, as_json, own_command, own_variables, run_own, write_own_project

PODS = {"training/nap-sleeper-0", "training/nap-sleeper-1", "training/nap-sleeper-2", "training/doze-sleeper-0"}


@pytest.fixture
def project(tmp_path: Path, operator_tools: object) -> Path:  # noqa: ARG001
    write_own_project(tmp_path)
    return tmp_path


def test_a_rehearsal_runs_their_pods_and_a_destroy_leaves_nothing(project: Path) -> None:
    report = as_json(run_own(project, "rehearse", STACK, "--operators", "--destroy", "--json"))

    assert report["errors"] == report["pending"] == report["left_behind"] == report["changed_by_second_up"] == []
    assert set(report["operators"]) == {"sleep-operator"}
    assert set(report["running"]) >= PODS
    assert report["resources"]["kubernetes:toys.example.com/v1:SleepJob"] == 2
    assert report["verdict"] == "pass"


def test_the_status_of_their_jobs_is_read_from_the_cluster(project: Path) -> None:
    command = own_command("rehearse", STACK, "--operators", "--keep", "--json")
    with subprocess.Popen(
        command,
        cwd=project,
        env=own_variables(project),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            variables = _variables_of(process)
            status = run_own(project, "status", STACK, "--json", "--kubeconfig", variables["KUBECONFIG"])
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)

    assert status.returncode == 0, status.stdout + status.stderr
    jobs = {job["name"]: job for job in json.loads(status.stdout)["jobs"]}
    assert {name: (job["kind"], job["phase"]) for name, job in jobs.items()} == {
        "nap": ("SleepJob", "Running"),
        "doze": ("SleepJob", "Running"),
    }
    (role,) = jobs["nap"]["roles"]
    assert (role["role"], role["wanted"], role["ready"], role["pending"]) == ("sleeper", 3, 3, 0)
    assert jobs["nap"]["log"].endswith("--follow nap-sleeper-0")


def _variables_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Waits until everything runs, and returns the variables that lead to it."""
    assert process.stderr
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Ctrl-C" in line:
            break
    file = next((line.split()[1] for line in lines if line.startswith("  . ")), None)
    assert file, "".join(lines)
    exports = [line for line in Path(file).read_text().splitlines() if line.startswith("export ")]
    exported = (line.removeprefix("export ").partition("=") for line in exports)
    return {name: shlex.split(value)[0] for name, _, value in exported}
