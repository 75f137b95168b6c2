"""The hint that `persia-infra rehearse` gives about jobs that need operators."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.testing
import yaml

from persia_infra.cli.main import app
from persia_infra.rehearsal import rehearse
from persia_infra.rehearsal.rehearse import Report


@pytest.fixture
def output(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    description: dict[str, Any],
    run_jobs: dict[str, Any],
    operators: dict[str, Any],
) -> Callable[..., str]:
    """The output, for an environment with one job of each kind."""
    jobs = {**description["jobs"], **run_jobs}
    jobs["by-operator"] = {**jobs["ads"], "mode": "operator"}
    jobs["gang"] = {**jobs["ads"], "gang": True}
    environment = {**description, "operators": operators, "jobs": jobs}
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    stack = tmp_path / "Pulumi.qa.yaml"

    def run(*options: str, only: tuple[str, ...] = tuple(jobs)) -> str:
        described = {**environment, "jobs": {name: jobs[name] for name in only}}
        stack.write_text(yaml.safe_dump({"config": {"persia-infra:environment": described}}))
        monkeypatch.setattr(rehearse, "rehearse", lambda _project, name, **_: Report(name))
        done = typer.testing.CliRunner().invoke(app, ["rehearse", "qa", "--project", str(tmp_path), *options])
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def test_the_last_line_names_the_jobs_that_need_operators(output: Callable[..., str]) -> None:
    assert output().splitlines()[-1] == (
        "hint: these jobs start only when their operators run: by-operator, gang, mpi, paddle, training; "
        "add --operators"
    )


def test_no_hint_where_it_would_not_help(output: Callable[..., str]) -> None:
    assert "hint" not in output("--operators")
    assert "hint" not in output(only=("ads", "single"))


def test_json_is_the_report_alone(output: Callable[..., str]) -> None:
    assert set(json.loads(output("--json"))) == set(Report("qa").as_json())
