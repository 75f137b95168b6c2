"""Which pool grows for waiting pods, and by how much."""

import threading
from typing import Any

import pytest

from persia_infra.rehearsal.provider.autoscaler import Autoscaler, GrowingPool, growth, is_waiting, rooms
from persia_infra.rehearsal.provider.nodes import Limits, node_manifest, pool_plan
from persia_infra.rehearsal.provider.pod_fit import Pod

LABELS = {"app": "x"}


def pool(
    name: str = "cpu", machine_type: str = "e2-standard-4", most: int = 10, zones: str = "a", **config: Any
) -> GrowingPool:
    names = [f"us-central1-{zone}" for zone in zones]
    inputs = {"name": name, "nodeConfig": {"machineType": machine_type, **config}}
    plan = pool_plan(inputs, cluster="c", cluster_location="us-central1", cluster_zones=names, project="p")
    return GrowingPool(name, plan.template, dict.fromkeys(names, 0), Limits(None, most))


def pod(cpu: str = "1", name: str = "p", **spec: Any) -> Pod:
    asked = {"cpu": cpu, "memory": "1Gi", **spec.pop("asks", {})}
    return {
        "metadata": {"name": name, "namespace": "train", "labels": LABELS},
        "spec": {"containers": [{"resources": {"requests": asked}}], **spec},
    }


def pods(count: int, cpu: str = "1", **spec: Any) -> list[Pod]:
    return [pod(cpu, name=f"p{number}", **spec) for number in range(count)]


def added(pools: list[GrowingPool], waiting: list[Pod], **more: Any) -> dict[str, int]:
    return {name: sum(zones.values()) for name, zones in growth(pools, more.pop("rooms", []), waiting, **more).items()}


def test_pods_are_packed_into_as_few_nodes_as_they_need() -> None:
    assert added([pool()], pods(7)) == {"cpu": 3}
    assert added([pool()], [*pods(3, "900m"), *pods(3, "3")]) == {"cpu": 3}


def test_a_pool_never_grows_past_its_maximum() -> None:
    assert added([pool(most=2)], pods(40)) == {"cpu": 2}
    full = pool(most=2)
    full = GrowingPool(full.name, full.template, {"us-central1-a": 2}, full.limits)
    assert added([full], pods(40)) == {}


def test_a_maximum_per_zone_holds_in_each_zone() -> None:
    three = pool(zones="abc")
    three = GrowingPool(
        "cpu", three.template, {"us-central1-a": 2, "us-central1-b": 1, "us-central1-c": 0}, Limits(2, None)
    )
    assert growth([three], [], pods(40)) == {"cpu": {"us-central1-b": 1, "us-central1-c": 2}}


def test_zones_are_filled_evenly() -> None:
    assert growth([pool(zones="abc")], [], pods(9, "3")) == {
        "cpu": {"us-central1-a": 3, "us-central1-b": 3, "us-central1-c": 3}
    }


def test_the_smallest_pool_that_fits_grows() -> None:
    both = [pool("large", "n2-standard-32"), pool("small"), pool("gpu", "a2-highgpu-1g")]
    assert added(both, pods(1)) == {"small": 1}
    assert added(both, pods(1, "8")) == {"large": 1}
    assert added(both, [pod(asks={"nvidia.com/gpu": "1"})]) == {"gpu": 1}


def test_a_full_small_pool_leaves_the_rest_to_the_next() -> None:
    assert added([pool("large", "n2-standard-32"), pool("small", most=1)], pods(6)) == {"small": 1, "large": 1}


def test_a_pod_too_large_for_every_pool_adds_nothing() -> None:
    assert added([pool()], pods(1, "4")) == {}
    assert added([pool()], [pod(asks={"memory": "13Gi"})]) == {}
    assert added([pool()], [pod(asks={"nvidia.com/gpu": "1"})]) == {}
    assert added([pool()], [pod(overhead={"cpu": "3"})]) == {}


def test_node_selectors_choose_the_pool() -> None:
    pools = [pool("one", labels={"role": "a"}), pool("two", labels={"role": "b"})]
    assert added(pools, [pod(nodeSelector={"role": "b"})]) == {"two": 1}
    assert added(pools, [pod(nodeSelector={"role": "c"})]) == {}
    assert added(pools, [pod(nodeSelector={"cloud.google.com/gke-nodepool": "two"})]) == {"two": 1}


@pytest.mark.parametrize(
    ("expression", "grown"),
    [
        ({"key": "role", "operator": "In", "values": ["b", "c"]}, {"two": 1}),
        ({"key": "role", "operator": "NotIn", "values": ["a"]}, {"two": 1}),
        ({"key": "only-two", "operator": "Exists"}, {"two": 1}),
        ({"key": "only-two", "operator": "DoesNotExist"}, {"one": 1}),
        ({"key": "size", "operator": "Gt", "values": ["1"]}, {"two": 1}),
        ({"key": "size", "operator": "Lt", "values": ["2"]}, {"one": 1}),
        ({"key": "role", "operator": "In", "values": ["z"]}, {}),
    ],
)
def test_required_node_affinity_chooses_the_pool(expression: dict[str, Any], grown: dict[str, int]) -> None:
    pools = [
        pool("one", labels={"role": "a", "size": "1"}),
        pool("two", labels={"role": "b", "size": "2", "only-two": "x"}),
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert added(pools, [pod(affinity=affinity)]) == grown


def test_a_zone_that_the_pod_asks_for_gets_the_node() -> None:
    asked = [pod(nodeSelector={"topology.kubernetes.io/zone": "us-central1-c"})]
    assert growth([pool(zones="abc")], [], asked) == {"cpu": {"us-central1-c": 1}}


@pytest.mark.parametrize(
    ("tolerations", "grown"),
    [
        ([], {}),
        ([{"key": "gpu", "operator": "Exists"}], {"cpu": 1}),
        ([{"key": "gpu", "operator": "Equal", "value": "yes"}], {"cpu": 1}),
        ([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}], {"cpu": 1}),
        ([{"key": "gpu", "value": "no"}], {}),
        ([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}], {}),
        ([{"operator": "Exists"}], {"cpu": 1}),
    ],
)
def test_a_tainted_pool_grows_for_pods_that_tolerate_it(tolerations: list[Any], grown: dict[str, int]) -> None:
    tainted = pool(taints=[{"key": "gpu", "value": "yes", "effect": "NO_SCHEDULE"}])
    assert added([tainted], [pod(tolerations=tolerations)]) == grown


def test_a_preference_against_a_pool_does_not_keep_pods_off() -> None:
    assert added([pool(taints=[{"key": "k", "value": "v", "effect": "PREFER_NO_SCHEDULE"}])], pods(1)) == {"cpu": 1}


def existing_nodes(count: int, **node: Any) -> list[dict[str, Any]]:
    inputs = {"name": "cpu", "nodeConfig": {"machineType": "e2-standard-4"}}
    plan = pool_plan(inputs, cluster="c", cluster_location="us-central1", cluster_zones=["us-central1-a"], project="p")
    nodes = [node_manifest(plan, "us-central1-a", str(number)) for number in range(count)]
    for each in nodes:
        each["spec"] |= node
    return nodes


def test_pods_that_fit_on_an_existing_node_add_nothing() -> None:
    fresh = existing_nodes(1, taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    assert added([pool()], pods(3), rooms=rooms(fresh, [])) == {}
    assert added([pool()], pods(4), rooms=rooms(fresh, [])) == {"cpu": 1}


def bound(phase: str, nodes: list[dict[str, Any]]) -> Pod:
    """A large pod on the first node."""
    return {**pod("3", nodeName=nodes[0]["metadata"]["name"]), "status": {"phase": phase}}


def test_resources_of_a_running_pod_are_not_free() -> None:
    nodes = existing_nodes(1)
    assert added([pool()], pods(1), rooms=rooms(nodes, [bound("Running", nodes)])) == {"cpu": 1}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_does_not_occupy_its_node(phase: str) -> None:
    nodes = existing_nodes(1)
    assert added([pool()], pods(1), rooms=rooms(nodes, [bound(phase, nodes)])) == {}


def test_a_cordoned_node_takes_no_pods() -> None:
    assert added([pool()], pods(1), rooms=rooms(existing_nodes(1, unschedulable=True), [])) == {"cpu": 1}


def test_a_node_that_is_being_deleted_takes_no_pods() -> None:
    nodes = existing_nodes(1)
    nodes[0]["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert added([pool()], pods(1), rooms=rooms(nodes, [])) == {"cpu": 1}


def test_pods_that_keep_apart_get_a_node_each() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": LABELS}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert added([pool()], pods(3, "100m", affinity=apart)) == {"cpu": 3}
    assert added([pool()], pods(3, "100m")) == {"cpu": 1}


def test_daemon_sets_take_their_share_of_a_new_node() -> None:
    assert added([pool()], pods(3)) == {"cpu": 1}
    assert added([pool()], pods(3), daemons=[pod("1")]) == {"cpu": 2}
    assert added([pool()], pods(3), daemons=[pod("1", nodeSelector={"role": "other"})]) == {"cpu": 1}


@pytest.mark.parametrize(
    ("status", "reason", "node", "waits"),
    [
        ("False", "Unschedulable", None, True),
        ("False", "SchedulingGated", None, False),
        ("True", None, "n", False),
        ("False", "Unschedulable", "n", False),
    ],
)
def test_only_pods_that_the_scheduler_gave_up_on_wait(
    status: str, reason: str | None, node: str | None, waits: bool
) -> None:
    candidate = pod(nodeName=node)
    candidate["status"] = {"conditions": [{"type": "PodScheduled", "status": status, "reason": reason}]}
    assert is_waiting(candidate) is waits


def test_a_pod_that_the_scheduler_has_not_looked_at_does_not_wait() -> None:
    assert not is_waiting(pod())


def test_a_pod_that_is_being_deleted_does_not_wait() -> None:
    unschedulable = pod()
    unschedulable["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    assert is_waiting(unschedulable)
    unschedulable["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert not is_waiting(unschedulable)


def test_an_error_does_not_end_the_autoscaler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persia_infra.rehearsal.provider.autoscaler.LOOK_EVERY_SECONDS", 0.001)
    looks, twice = [], threading.Event()

    def look() -> None:
        looks.append(1)
        if len(looks) > 1:
            twice.set()
        raise RuntimeError

    autoscaler = Autoscaler(look)
    autoscaler.start()
    assert twice.wait(30)
    autoscaler.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "autoscaler"]
