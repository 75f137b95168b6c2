"""Rules for where pods may run: affinity and label selectors."""

from collections.abc import Iterator

from persia_infra.kube.types.base import rule_for
from persia_infra.kube.types.meta import LabelSelectorRequirement
from persia_infra.kube.types.pods import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    WeightedPodAffinityTerm,
)
from persia_infra.spec.base import Finding

__all__ = ["Affinity"]

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@rule_for(LabelSelectorRequirement, "operator")
def _known_operator(operator: str) -> Iterator[Finding]:
    if operator not in _LABEL_OPERATORS:
        yield (), f"not one of the values it can have; write {', '.join(_LABEL_OPERATORS)}"


@rule_for(LabelSelectorRequirement)
@rule_for(NodeSelectorRequirement)
def _values_fit_operator(requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> Iterator[Finding]:
    operator = requirement.operator
    needs_values = operator not in ("Exists", "DoesNotExist")
    if requirement.values and not needs_values:
        yield ("values",), f"cannot be combined with operator {operator}, and Kubernetes refuses both; remove one"
    if needs_values and not requirement.values:
        yield ("values",), f"are missing, and Kubernetes refuses operator {operator} without them; add them"


@rule_for(NodeSelector, "node_selector_terms")
@rule_for(PodAffinityTerm, "topology_key")
def _not_empty(value: list[object] | str) -> Iterator[Finding]:
    if not value:
        yield (), "is empty; give at least one"


@rule_for(PreferredSchedulingTerm, "weight")
@rule_for(WeightedPodAffinityTerm, "weight")
def _weight(weight: int) -> Iterator[Finding]:
    if not 1 <= weight <= 100:
        yield (), "must be between 1 and 100"
