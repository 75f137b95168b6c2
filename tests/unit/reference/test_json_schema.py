"""The schema for editors accepts what `check` accepts, and notices what a reader would want underlined."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from persia_infra.reference.explain import explain
from persia_infra.reference.json_schema import stack_schema
from persia_infra.stack import CONFIG_KEY
from tests.support.environments import put
from tests.support.project import EXAMPLES, PROJECT

STACKS = sorted((PROJECT / "stacks").glob("Pulumi.*.yaml"))
KINDS = explain("jobs").kinds
JOBS = [
    pytest.param(document, id=f"{file.parent.name}-{file.stem}-{index}")
    for file in sorted((EXAMPLES / "manifests").rglob("*.yaml"))
    for index, document in enumerate(yaml.safe_load_all(file.read_text()))
    if document["kind"] in KINDS
]


@pytest.fixture(scope="module")
def editor() -> Draft202012Validator:
    schema = stack_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def complaints(editor: Draft202012Validator, environment: Any) -> list[str]:
    errors = editor.iter_errors({"config": {CONFIG_KEY: environment}})
    return [f"{'.'.join(map(str, list(error.absolute_path)[2:]))}: {error.message}" for error in errors]


@pytest.mark.parametrize("file", STACKS, ids=lambda file: file.stem)
def test_an_editor_accepts_every_stack(editor: Draft202012Validator, file: Path) -> None:
    assert [error.message for error in editor.iter_errors(yaml.safe_load(file.read_text()))] == []


def test_another_project_keeps_the_environment_under_a_key_of_its_own() -> None:
    document = yaml.safe_load((EXAMPLES / "another-project/Pulumi.lab.yaml").read_text())

    assert list(Draft202012Validator(stack_schema("research:environment")).iter_errors(document)) == []


@pytest.mark.parametrize("manifest", JOBS)
def test_an_editor_accepts_the_manifests_of_users_as_jobs_old_dialects_included(
    editor: Draft202012Validator, description: dict[str, Any], manifest: dict[str, Any]
) -> None:
    description["jobs"] = {"job": {"kind": manifest["kind"], **manifest["spec"]}}

    assert complaints(editor, description) == []


def test_both_spellings_are_accepted_and_one_is_offered(
    editor: Draft202012Validator, description: dict[str, Any]
) -> None:
    description["pools"]["cpu"] = {"machine_type": "n2-standard-8", "count": 1}

    assert complaints(editor, description) == []
    pool = editor.schema["$defs"]["NodePoolSpec"]  # pyright: ignore[reportIndexIssue, reportCallIssue, reportArgumentType]
    assert "machineType" in pool["properties"]
    assert "machine_type" not in pool["properties"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("profiles", {"big": {"nodeSelector": [{"key": "a", "value": "b"}], "secrets": ["token"]}}),
        ("jobs/ads/globalConfig", "common_config: {}"),
        ("jobs/ads/nnWorker/resources/limits", {"cpu": 4, "memory": "16Gi", "nvidia.com/gpu": 1}),
    ],
)
def test_other_forms_of_a_value_are_accepted(
    editor: Draft202012Validator, description: dict[str, Any], place: str, value: Any
) -> None:
    put(description, place, value)

    assert complaints(editor, description) == []


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        ("pools/cpu/machinetype", "n2-standard-8", "pools.cpu: 'machinetype' does not match"),
        ("pools/cpu/count", "many", "pools.cpu.count: 'many' is not of type 'integer'"),
        ("pools/cpu/count", -1, "pools.cpu.count: -1 is"),
        ("pools", {}, "pools: {} should be non-empty"),
        ("jobs/ads/kind", "SparkJob", "jobs.ads.kind: 'SparkJob' is not one of"),
        ("jobs/ads/nnWorker/nprocsPerNode", 1, "jobs.ads.nnWorker:"),
    ],
)
def test_mistakes_are_noticed(
    editor: Draft202012Validator, description: dict[str, Any], place: str, value: Any, complaint: str
) -> None:
    put(description, place, value)

    assert any(line.startswith(complaint) for line in complaints(editor, description)), complaints(editor, description)


def test_a_missing_required_field_is_noticed_in_either_spelling(
    editor: Draft202012Validator, description: dict[str, Any]
) -> None:
    del description["pools"]["cpu"]["machineType"]

    assert len(complaints(editor, description)) == 1


def test_fields_carry_their_descriptions_and_defaults(editor: Draft202012Validator) -> None:
    environment = editor.schema["$defs"]["EnvironmentSpec"]  # pyright: ignore[reportIndexIssue, reportCallIssue, reportArgumentType]

    assert environment["properties"]["pools"]["description"] == "The node pools, by name."
    assert environment["properties"]["namespaces"]["default"] == ["training"]
