"""`persia-infra rehearse` as a user types it."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from persia_infra.rehearsal.toolchain import Toolchain
from tests.support.processes import processes_with
from tests.support.project import PROJECT
from tests.support.stack_file import edit

DEV = "stacks/Pulumi.dev.yaml"
PROMISED_KEYS = "stack engine kubernetes provider resources nodes pods pending simulated seconds verdict"


@pytest.fixture
def project(tmp_path: Path, tools: Toolchain, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project whose stack may be edited, and temporary files in a place of their own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    assert tools["pulumi"].is_file()
    shutil.copy(PROJECT / "Pulumi.yaml", tmp_path)
    shutil.copytree(PROJECT / "stacks", tmp_path / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).parent / "persia-infra"), *arguments]


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=project, capture_output=True, text=True, check=False)


def left_over(project: Path) -> list[Path]:
    return list((project / "temporary").iterdir())


def running_in(project: Path) -> list[str]:
    """Returns the processes of rehearsals whose temporary files are in the project's folder."""
    return processes_with(f"{project}/temporary/persia-infra-")


def test_dev_passes_and_destroy_leaves_nothing(project: Path) -> None:
    file = (project / DEV).read_text()
    done = run(project, "rehearse", "dev", "--destroy", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert set(report) >= set(PROMISED_KEYS.split())
    assert report["verdict"] == "pass"
    assert report["pods"]["wanted"] == report["pods"]["running"] > 0
    assert report["pending"] == report["left_behind"] == report["changed_by_second_up"] == []
    assert "gcp:container/cluster:Cluster" in report["simulated"]
    assert done.stderr == ""
    assert left_over(project) == []
    assert (project / DEV).read_text() == file


def test_each_pod_that_does_not_fit_is_reported_with_the_reason(project: Path) -> None:
    edit(project / DEV, "jobs", "adult-income", "embeddingParameterServer", "replicas", value=30)
    done = run(project, "rehearse", "dev", "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "fail"
    assert report["pods"]["pending"] == len(report["pending"]) > 0
    assert all("nodes are available" in pending["reason"] for pending in report["pending"])
    assert report["errors"]


def test_bad_description_is_refused_before_anything_starts(project: Path) -> None:
    edit(project / DEV, "pools", "gpu", "machine_tpye", value="a2-highgpu-8g")
    done = run(project, "rehearse", "dev")
    assert done.returncode == 2
    assert "Pulumi.dev.yaml: environment.pools.gpu.machine_tpye" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_stack_is_refused_with_the_list_of_stacks(project: Path) -> None:
    done = run(project, "rehearse", "dve")
    assert done.returncode == 2
    assert "dev" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_of_a_rehearsal_that_was_stopped_at_a_random_moment(project: Path, how: signal.Signals) -> None:
    """The CLI runs about eight commands, from `stack init` to `destroy`; the moment is during one of them."""
    number, delay = random.randint(1, 7), random.uniform(0, 2)  # noqa: S311
    moment = f"{how.name} {delay:.2f} s after the start of command {number}"
    process = subprocess.Popen(
        command("rehearse", "dev", "--destroy"),
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # It is ignored if the tests run under nohup.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    while not list(project.glob(f"temporary/persia-infra-*/engine-1/output-{number}")):
        assert process.poll() is None, moment
        time.sleep(0.05)
    time.sleep(delay)
    process.send_signal(how)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == (130 if how is signal.SIGINT else -how), moment + output
    assert "Traceback" not in output
    deadline = time.monotonic() + 30
    while (left_over(project) or running_in(project)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left_over(project) == [], moment
    assert running_in(project) == [], moment


def test_a_supervisor_that_is_killed_is_reported_and_leaves_nothing(project: Path) -> None:
    process = subprocess.Popen(
        command("rehearse", "dev"), cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while not (folders := list(project.glob("temporary/persia-infra-*/engine-1/events.json"))):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(random.uniform(0, 3))  # noqa: S311
    supervisor = ["persia_infra.rehearsal.supervisor", str(folders[0].parents[1])]
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if file.read_bytes().decode(errors="replace").split("\0")[-3:-1] == supervisor:
                os.kill(int(file.parent.name), signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    assert "the supervisor of the rehearsal" in output
    assert "Traceback" not in output
    assert left_over(project) == []
    assert running_in(project) == []


def test_a_stack_that_chooses_a_cluster_is_refused_before_anything_starts(project: Path) -> None:
    with (project / DEV).open("a") as file:
        file.write("\n  kubernetes:kubeconfig: /home/me/.kube/config\n")
    done = run(project, "rehearse", "dev")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Pulumi.dev.yaml: config.kubernetes:kubeconfig: chooses another cluster" in done.stderr
    assert "Traceback" not in done.stderr


def test_keep_leaves_it_running_until_interrupted(project: Path) -> None:
    with subprocess.Popen(
        command("rehearse", "dev", "--keep"), cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        environment = next(line.split()[1] for line in lines if line.startswith("  . "))
        script = f". {environment} && kubectl get statefulsets -A -o name"
        seen = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env=dict(os.environ))
        assert "statefulset" in seen.stdout
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 0
    assert not Path(environment).exists()
