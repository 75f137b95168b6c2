"""Placements: which nodes a pod may run on, as a pod template states it."""

from persia_infra.kube.placement import Placement, Taint


def test_a_taint_with_a_value_is_tolerated_with_that_value_only() -> None:
    placement = Placement("gpu", {}, (Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),))

    assert placement.tolerations == [
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    ]


def test_a_taint_without_a_value_is_tolerated_by_its_key() -> None:
    placement = Placement("cpu", {}, (Taint(key="team", effect="NoExecute"),))

    assert placement.tolerations == [{"key": "team", "operator": "Exists", "effect": "NoExecute"}]
