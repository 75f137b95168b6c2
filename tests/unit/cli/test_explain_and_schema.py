"""`persia-infra explain` and `persia-infra schema` as a user types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from persia_infra.cli.main import app
from persia_infra.spec.errors import InputError
from tests.support.project import PROJECT

RUNNER = CliRunner()


@pytest.mark.parametrize("field", ["", "pools", "jobs.PersiaJob", "jobs.MPIJob.mpiReplicaSpecs.Worker.template.spec"])
def test_an_explanation_fits_100_columns(field: str) -> None:
    result = RUNNER.invoke(app, ["explain", field] if field else ["explain"])

    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_a_field_is_explained_with_path_type_default_and_meaning() -> None:
    lines = RUNNER.invoke(app, ["explain", "operators.volcano.queues.ads.weight"]).stdout.splitlines()

    assert lines[:4] == [
        "FIELD:    operators.volcano.queues.ads.weight",
        "TYPE:     whole number",
        "DEFAULT:  1",
        "",
    ]
    assert lines[4].startswith("The queue's share of the cluster")


def test_an_object_lists_its_fields() -> None:
    lines = RUNNER.invoke(app, ["explain", "jobs.PersiaJob.nnWorker"]).stdout.splitlines()

    assert "  nprocPerNode  (whole number; required)" in lines
    assert "      Training processes per pod, usually one per GPU." in lines


def test_an_explanation_as_json() -> None:
    answer = json.loads(RUNNER.invoke(app, ["explain", "jobs.PersiaJob.nnWorker", "--json"]).stdout)

    assert (answer["field"], answer["type"], answer["required"]) == ("jobs.PersiaJob.nnWorker", "object", False)
    replicas = next(field for field in answer["fields"] if field["field"] == "replicas")
    assert replicas == {
        "field": "replicas",
        "type": "whole number",
        "required": True,
        "default": None,
        "description": "Number of pods.",
    }


def test_a_misspelt_field_is_bad_input() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "from persia_infra.cli.main import main; main()", "explain", "pools.gpu.spott"],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        check=False,
    )

    assert result.returncode == 2
    assert result.stderr == "pools.gpu.spott: there is no such field; did you mean 'spot'?\n"


def test_a_schema_is_printed_or_written(tmp_path: Path) -> None:
    file = tmp_path / "stack.schema.json"

    printed = RUNNER.invoke(app, ["schema"]).stdout
    RUNNER.invoke(app, ["schema", "--output", str(file)])

    assert json.loads(printed)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert file.read_text() == printed


def test_a_schema_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["schema", "--output", str(tmp_path / "missing/file.json")])

    assert isinstance(result.exception, InputError)
    assert "cannot be written (No such file or directory)" in str(result.exception)


@pytest.mark.parametrize("command", ["schema", "explain"])
def test_pulumi_is_not_loaded(command: str) -> None:
    code = (
        f"import sys; sys.argv = ['persia-infra', '{command}']\n"
        "from persia_infra.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not any(name.partition('.')[0].startswith('pulumi') for name in sys.modules)\n"
    )

    assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False, capture_output=True).returncode == 0
