"""The two programs that Pulumi starts: the one of the stacks, and the component package."""

import json
import runpy
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer
from pulumi.runtime.stack import Stack

from tests.support.project import PROJECT

CONFIG_KEY = "persia-infra:environment"


def stack_program(record: Callable[..., Any], value: Any) -> tuple[Any, set[str]]:
    exported: set[str] = set()

    def program() -> None:
        pulumi.runtime.set_all_config({} if value is None else {CONFIG_KEY: json.dumps(value)})
        runpy.run_path(str(PROJECT / "stacks/__main__.py"), run_name="__main__")
        root = pulumi.runtime.get_root_resource()
        assert isinstance(root, Stack)
        exported.update(root.outputs)

    return record(program), exported


def test_the_stack_program_declares_and_exports(record: Callable[..., Any], description: dict[str, Any]) -> None:
    recording, exported = stack_program(record, description)

    assert recording.names("index:Environment") == {"s"}
    assert exported == {"clusterName", "endpoint", "kubeconfig", "poolNames", "pools", "natsUrls"}


def test_a_bad_configuration_ends_it_with_lines(record: Callable[..., Any], description: dict[str, Any]) -> None:
    description["regoin"] = description.pop("region")

    with pytest.raises(pulumi.RunError) as caught:
        stack_program(record, description)

    assert str(caught.value).splitlines() == [
        "stacks/Pulumi.s.yaml: environment.region: is required and missing",
        "stacks/Pulumi.s.yaml: environment.regoin: unknown key, which would have no effect; did you mean 'region'?",
    ]


def test_a_stack_without_configuration(record: Callable[..., Any]) -> None:
    with pytest.raises(pulumi.RunError, match=r"config\.persia-infra:environment: is missing"):
        stack_program(record, None)


class TestComponentPackage:
    @pytest.fixture
    def package(self) -> dict[str, Any]:
        return runpy.run_path(str(PROJECT / "components/__main__.py"), run_name="package")

    def test_the_analyzer_accepts_its_types(self, package: dict[str, Any]) -> None:
        found = Analyzer("persia-infra").analyze_component(package["Environment"])

        assert {name for name, one in found.inputs.items() if not one.optional} == {
            "project",
            "region",
            "cluster",
            "pools",
        }
        assert set(found.outputs) == {"clusterName", "endpoint", "kubeconfig", "poolNames", "pools", "natsUrls"}

    def test_it_takes_what_the_engine_hands_over(
        self, package: dict[str, Any], record: Callable[..., Any], description: dict[str, Any]
    ) -> None:
        """Whole numbers arrive as floats there."""
        handed = json.loads(json.dumps(description), parse_int=float)

        recording = record(lambda: package["Environment"]("dev", handed))

        assert recording.names("index:Environment") == {"dev"}

    def test_bad_arguments_are_lines(
        self, package: dict[str, Any], record: Callable[..., Any], description: dict[str, Any]
    ) -> None:
        description["pools"] = {}

        with pytest.raises(pulumi.RunError, match=r"environment\.pools: is empty"):
            record(lambda: package["Environment"]("dev", description))
