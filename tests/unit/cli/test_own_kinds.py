"""A kind of job and an operator from outside this library are checked and rendered like its own."""

from pathlib import Path

import pytest
import yaml

from tests.support.own_kinds import STACK, as_json, run_own, write_own_project

MANIFEST = """\
apiVersion: toys.example.com/v1
kind: SleepJob
metadata: {name: nap}
spec: {sleepers: 2}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_own_project(tmp_path)
    return tmp_path


def edited(project: Path, **environment: object) -> None:
    file = project / "stacks" / f"Pulumi.{STACK}.yaml"
    stack = yaml.safe_load(file.read_text())
    stack["config"]["persia-infra:environment"] |= environment
    file.write_text(yaml.safe_dump(stack))


def test_a_stack_with_them_is_checked(project: Path) -> None:
    done = run_own(project, "check", STACK, "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    assert as_json(done)["errors"] == []


def test_what_is_wrong_with_them_is_reported_at_its_place(project: Path) -> None:
    edited(project, jobs={"nap": {"kind": "SleepJob", "sleeper": 2, "seconds": 0}})

    done = run_own(project, "check", STACK, "--json")

    assert done.returncode == 2
    assert [error["path"] for error in as_json(done)["errors"]] == [
        "environment.jobs.nap.seconds",
        "environment.jobs.nap.sleeper",
    ]


def test_the_missing_operator_is_named(project: Path) -> None:
    edited(project, operators={})

    done = run_own(project, "check", STACK)

    assert done.returncode == 2
    assert "environment.jobs.nap: a SleepJob is only an object until the sleep operator acts on it" in done.stderr
    assert "write operators: {sleep: {}}" in done.stderr


def test_a_pool_that_does_not_exist_is_reported(project: Path) -> None:
    edited(project, jobs={"nap": {"kind": "SleepJob", "pool": "tpu"}})

    done = run_own(project, "check", STACK)

    assert done.returncode == 2
    assert "environment.jobs.nap.pool: there is no pool 'tpu'" in done.stderr


def test_a_stack_with_them_is_rendered(project: Path) -> None:
    done = run_own(project, "render", STACK, "--json")

    assert done.returncode == 0, done.stderr
    objects = {(each["kind"], each["metadata"]["name"]): each for each in as_json(done) if "kind" in each}
    job = objects["SleepJob", "nap"]
    assert job["spec"]["sleepers"] == 3
    assert job["spec"]["template"]["spec"]["nodeSelector"] == {"persia-infra/pool": "cpu"}
    assert ("Deployment", "sleep-operator") in objects
    assert ("CustomResourceDefinition", "sleepjobs.toys.example.com") in objects


def test_a_manifest_of_the_kind_is_rendered(project: Path) -> None:
    (project / "nap.yaml").write_text(MANIFEST)

    done = run_own(project, "render", "nap.yaml", "--json")

    assert done.returncode == 0, done.stderr
    (job,) = as_json(done)
    assert (job["kind"], job["spec"]["sleepers"]) == ("SleepJob", 2)
