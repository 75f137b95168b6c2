"""Whether a pod fits on a node, by the rules of the scheduler."""

from decimal import Decimal
from typing import Any

import pytest

from persia_infra.rehearsal.provider.pod_fit import Guest, Pod, Room

Labels = dict[str, str]


def pod(labels: Labels | None = None, *, namespace: str = "train", **spec: Any) -> Pod:
    return {
        "metadata": {"name": "p", "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}], **spec},
    }


def room(*pods: Pod, labels: Labels | None = None, taints: Any = (), name: str = "node-1") -> Room:
    node = Room(labels or {}, list(taints), {"cpu": Decimal(10), "pods": Decimal(10)}, name)
    for each in pods:
        node.put(Guest.of(each))
    return node


def fits(candidate: Pod, node: Room) -> bool:
    return node.takes(Guest.of(candidate))


def away_from(**term: Any) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "noisy"}}, **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def node_terms(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


NOISY = {"app": "noisy"}


def test_anti_affinity_of_the_new_pod_keeps_it_away() -> None:
    assert not fits(pod(affinity=away_from()), room(pod(NOISY)))
    assert fits(pod(affinity=away_from()), room(pod({"app": "quiet"})))


def test_anti_affinity_of_a_running_pod_keeps_others_away() -> None:
    assert not fits(pod(NOISY), room(pod(affinity=away_from())))


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({}, True),
        ({"namespaces": ["other"]}, False),
        ({"namespaceSelector": {}}, False),
        ({"topologyKey": "topology.kubernetes.io/zone", "namespaceSelector": {}}, True),
        ({"labelSelector": None, "namespaceSelector": {}}, True),
    ],
)
def test_anti_affinity_is_about_the_pods_own_namespace_unless_it_names_others(
    term: dict[str, Any], expected: bool
) -> None:
    assert fits(pod(affinity=away_from(**term)), room(pod(NOISY, namespace="other"))) is expected


def test_a_term_without_conditions_matches_no_node() -> None:
    assert not fits(pod(affinity=node_terms({})), room())
    assert fits(pod(affinity=node_terms({}, {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]})), room())


@pytest.mark.parametrize(("name", "expected"), [("node-1", True), ("node-2", False)])
def test_a_pod_may_ask_for_a_node_by_name(name: str, expected: bool) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    assert fits(pod(affinity=node_terms({"matchFields": [field]})), room()) is expected


def test_all_conditions_of_a_term_must_hold() -> None:
    expression = {"key": "disk", "operator": "In", "values": ["ssd"]}
    field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    affinity = node_terms({"matchExpressions": [expression], "matchFields": [field]})
    assert fits(pod(affinity=affinity), room(labels={"disk": "ssd"}))
    assert not fits(pod(affinity=affinity), room(labels={"disk": "hdd"}))


def test_a_label_that_is_absent_is_not_in_any_list() -> None:
    expression = {"key": "disk", "operator": "NotIn", "values": ["hdd"]}
    assert fits(pod(affinity=node_terms({"matchExpressions": [expression]})), room())


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(effect: str) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": effect}
    assert not fits(pod(), room(taints=[taint]))
    assert fits(pod(tolerations=[{"key": "gpu", "operator": "Exists"}]), room(taints=[taint]))


def test_a_toleration_must_match_every_taint() -> None:
    taints = [{"key": key, "value": "", "effect": "NoSchedule"} for key in ("gpu", "spot")]
    assert not fits(pod(tolerations=[{"key": "gpu", "operator": "Exists"}]), room(taints=taints))


def test_a_node_takes_pods_until_a_resource_is_used_up() -> None:
    node = room(*[pod()] * 9)
    assert fits(pod(), node)
    node.put(Guest.of(pod()))
    assert not fits(pod(), node)


def test_a_resource_that_the_node_does_not_have_is_not_free() -> None:
    containers = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    assert not fits(pod(containers=containers), room())
