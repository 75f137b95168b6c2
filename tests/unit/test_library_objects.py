"""Everything that the library makes itself is valid Kubernetes, although it is not validated while it is made."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from persia_infra.environment import EnvironmentSpec
from persia_infra.gke.driver_objects import installer_objects
from persia_infra.gke.drivers import installers
from persia_infra.kube import types
from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.kube.types.base import TRUSTED, KubeKind
from persia_infra.stack import load_stack, parse_environment
from tests.support.project import PROJECT

NOT_TYPED = {"CustomResourceDefinition", "MPIJob", "NatsCluster", "PaddleJob", "PersiaJob", "PodGroup", "Queue"}
"""Kinds that Kubernetes does not have itself, or that have a type too large to be worth it."""


def kinds() -> dict[tuple[str, str], type[KubeKind]]:
    modules = [import_module(f"{types.__name__}.{module.name}") for module in iter_modules(types.__path__)]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    generated = [one for one in classes if issubclass(one, KubeKind) and "kind" in one.model_fields]
    return {(one.model_fields["api_version"].default, one.model_fields["kind"].default): one for one in generated}


def groups(spec: EnvironmentSpec) -> list[ObjectGroup]:
    jobs = [spec.job_objects(name) for name in spec.jobs]
    operators = [spec.operator_objects(operator) for operator in spec.operators.installed.values()]
    return [*jobs, *operators, *map(installer_objects, installers(spec.pools))]


@pytest.fixture
def everything(description: dict[str, Any], run_jobs: dict[str, Any], operators: dict[str, Any]) -> EnvironmentSpec:
    """Every kind of job, every operator, every mode of NATS, and both driver installers."""
    ads = description["jobs"]["ads"]
    jobs: dict[str, dict[str, Any]] = {
        "ads": ads | {"gang": True, "nats": {"jetstream": {"storage": "10Gi"}, "pool": "cpu"}},
        "by-operator": ads | {"mode": "operator", "nats": {"mode": "operator", "pool": "cpu"}},
    }
    for job in jobs.values():
        job["nnWorker"] = ads["nnWorker"] | ({"pool": "gpu"} if "mode" not in job else {})
    gpu = {"machineType": "a2-highgpu-1g", "autoscaling": {"min": 0, "max": 1}, "driver": {"install": "INSTALLER"}}
    description["pools"] |= {"cos": gpu, "ubuntu": gpu | {"image": "UBUNTU_CONTAINERD"}}
    return parse_environment(description | {"jobs": {**jobs, **run_jobs}, "operators": operators})


@pytest.mark.parametrize("stack", ["dev", "staging", "prod"])
def test_every_object_of_a_stack_is_valid(stack: str) -> None:
    assert_valid(load_stack(PROJECT / "stacks" / f"Pulumi.{stack}.yaml", shown=str(Path(stack))))


def test_every_object_of_every_kind_mode_and_operator_is_valid(everything: EnvironmentSpec) -> None:
    assert_valid(everything)


def test_every_pod_of_every_kind_is_valid(everything: EnvironmentSpec) -> None:
    for name, job in everything.jobs.items():
        for load in job.workloads(name, everything.placements(name)):
            written = load.template.as_kubernetes()
            assert PodTemplate.model_validate(written, context=TRUSTED).as_kubernetes() == written, (name, load.role)


def assert_valid(spec: EnvironmentSpec) -> None:
    known = kinds()
    seen = set()
    for group in groups(spec):
        for name, declared in group.named_objects("x"):
            body = declared.body
            seen.add(body["kind"])
            if body["kind"] in NOT_TYPED:
                continue
            if body.get("data") and not isinstance(body["data"], dict):
                body = body | {"data": {}}
            model = known[str(body["apiVersion"]), str(body["kind"])]
            assert model.model_validate(body, context=TRUSTED).as_kubernetes().keys() == body.keys(), name
    assert "StatefulSet" in seen or "Deployment" in seen
