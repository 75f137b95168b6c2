"""Kubernetes' affinity rules, key by key: a misspelt one would be dropped, and the pods go anywhere."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from persia_infra.spec.base import Finding, Spec, refuse

_Weight = Annotated[int, Field(ge=1, le=100)]


class _Requirement(Spec):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        alone = self.operator in ("Exists", "DoesNotExist")
        if alone and self.values:
            yield ("values",), f"have no place beside operator {self.operator}, and Kubernetes refuses both; remove one"
        if not alone and not self.values:
            yield ("values",), f"are missing, and Kubernetes refuses operator {self.operator} without; add them"


class _NodeRequirement(_Requirement):
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]  # pyright: ignore[reportIncompatibleVariableOverride]


class _NodeTerm(Spec):
    match_expressions: list[_NodeRequirement] | None = None
    match_fields: list[_NodeRequirement] | None = None


class _NodeTerms(Spec):
    node_selector_terms: list[_NodeTerm] = Field(min_length=1)


class _PreferredNodes(Spec):
    weight: _Weight
    preference: _NodeTerm


class NodeAffinity(Spec):
    """Nodes that a pod must, or should, run on."""

    required_during_scheduling_ignored_during_execution: _NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[_PreferredNodes] | None = None


class _LabelSelector(Spec):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Requirement] | None = None


class _PodTerm(Spec):
    topology_key: str = Field(min_length=1)
    label_selector: _LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: _LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class _PreferredPods(Spec):
    weight: _Weight
    pod_affinity_term: _PodTerm


class PodAffinity(Spec):
    """Pods that another must, or should, run beside, or apart from."""

    required_during_scheduling_ignored_during_execution: list[_PodTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[_PreferredPods] | None = None


class Affinity(Spec):
    """All of a pod's."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None
