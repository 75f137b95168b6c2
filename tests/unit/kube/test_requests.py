"""What the scheduler sets aside for a pod."""

from decimal import Decimal
from typing import Any

import pytest

from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.kube.pods import Resources
from persia_infra.kube.requests import container_requests, gpus, pod_requests, template_requests
from tests.support.environments import problems

GI = 2**30


def container(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any) -> Any:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def sidecar(**requests: Any) -> Any:
    return container(requests, restartPolicy="Always")


def cpu(spec: dict[str, Any]) -> Decimal:
    return pod_requests(spec)["cpu"]


def test_containers_run_together() -> None:
    assert cpu({"containers": [container({"cpu": "1"}), container({"cpu": "500m"})]}) == Decimal("1.5")


def test_init_containers_run_one_after_the_other_before_the_rest() -> None:
    init = [container({"cpu": "2"}), container({"cpu": "3"})]

    assert cpu({"initContainers": init, "containers": [container({"cpu": "1"})]}) == 3
    assert cpu({"initContainers": init, "containers": [container({"cpu": "4"})]}) == 4


def test_sidecars_run_beside_the_containers() -> None:
    assert cpu({"initContainers": [sidecar(cpu="1")], "containers": [container({"cpu": "2"})]}) == 3


def test_an_init_container_runs_beside_the_sidecars_that_started_before_it() -> None:
    main = [container({"cpu": "1"})]

    assert cpu({"initContainers": [sidecar(cpu="1"), container({"cpu": "4"})], "containers": main}) == 5
    assert cpu({"initContainers": [container({"cpu": "4"}), sidecar(cpu="1")], "containers": main}) == 4


def test_a_limit_stands_in_for_a_missing_request_of_the_same_container_only() -> None:
    spec = {"containers": [container(limits={"memory": "2Gi"}), container({"memory": "3Gi"})]}

    assert pod_requests(spec) == {"memory": 5 * GI}


def test_a_request_below_its_limit_is_what_counts() -> None:
    resources = Resources(requests={"cpu": "1"}, limits={"cpu": "4", "memory": "1Gi"})

    assert container_requests(resources) == {"cpu": 1, "memory": GI}


def test_the_runtimes_overhead_is_added() -> None:
    assert cpu({"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m"}}) == Decimal("1.25")


def test_a_request_of_the_pod_replaces_the_sum_of_its_containers() -> None:
    spec = {"containers": [container({"cpu": "1", "example.com/device": "2"})], "resources": {"requests": {"cpu": "3"}}}

    assert pod_requests(spec) == {"cpu": 3, "example.com/device": 2}


def test_a_limit_of_the_pod_counts_only_where_no_container_has_a_request() -> None:
    resources = {"limits": {"cpu": "8", "memory": "16Gi"}}

    assert pod_requests({"containers": [container({"cpu": "1"})], "resources": resources}) == {
        "cpu": 1,
        "memory": 16 * GI,
    }


def test_huge_pages_of_the_pod_cannot_be_overcommitted() -> None:
    spec = {
        "containers": [container(limits={"hugepages-2Mi": "2Mi"})],
        "resources": {"limits": {"hugepages-2Mi": "8Mi"}},
    }

    assert pod_requests(spec) == {"hugepages-2Mi": 8 * 2**20}


def test_resources_that_only_containers_can_have_are_ignored_for_the_pod() -> None:
    assert pod_requests({"containers": [container()], "resources": {"requests": {"nvidia.com/gpu": "1"}}}) == {}


def test_parts_that_are_null_count_as_nothing() -> None:
    spec = {"containers": [{"resources": None}], "initContainers": None, "resources": None, "overhead": None}

    assert pod_requests(spec) == {}


def test_gpus_are_counted_over_all_containers() -> None:
    main = {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    template = PodTemplate.model_validate({"spec": {"containers": [main, {**main, "name": "other"}]}})

    assert gpus(template_requests(template)) == 4


@pytest.mark.parametrize("restart", ["Always", None])
def test_check_counts_a_sidecar_beside_the_training(description: dict[str, Any], restart: str | None) -> None:
    """A node of the pool gives pods 27.7Gi."""
    memory = {"requests": {"memory": "20Gi"}, "limits": {"memory": "20Gi"}}
    pod = {
        "initContainers": [{"name": "cache", "image": "cache:1", "restartPolicy": restart, "resources": memory}],
        "containers": [{"name": "train", "image": "train:1", "resources": memory}],
    }
    description["jobs"] = {"single": {"kind": "Job", "template": {"spec": pod}, "pool": "cpu"}}

    lines = problems(description)

    if restart:
        (line,) = lines
        assert "environment.jobs.single.template.spec.containers: asks for 40.00Gi memory" in line
    else:
        assert lines == []
