"""Decides whether a pod fits on a node, by the scheduler's rules, on plain JSON objects.

Covers resource requests, node selectors, required node affinity, taints, and required anti-affinity between
pods of the same node. Pod affinity, topology spread and volumes are out of scope: they never keep a pod off a node
here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from persia_infra.kube.requests import Amounts, pod_requests

Pod = dict[str, Any]

_NONE = Decimal(0)
_HOSTNAME = "kubernetes.io/hostname"
_PASSING_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True)
class Guest:
    """A pod with its requests, which are computed once."""

    pod: Pod
    asks: Amounts

    @classmethod
    def of(cls, pod: Pod) -> "Guest":
        return cls(pod, {**pod_requests(pod["spec"]), "pods": Decimal(1)})


@dataclass
class Room:
    """An existing or planned node, with its free resources."""

    labels: dict[str, str]
    taints: list[dict[str, str]]
    free: Amounts
    name: str = ""
    guests: list[Guest] = field(default_factory=list)

    def takes(self, guest: Guest) -> bool:
        spec = guest.pod["spec"]
        return (
            all(self.free.get(name, _NONE) >= amount for name, amount in guest.asks.items() if amount)
            and _selected(spec, self.labels, self.name)
            and tolerates(spec, self.taints)
            and not any(_repels(guest.pod, other.pod) or _repels(other.pod, guest.pod) for other in self.guests)
        )

    def put(self, guest: Guest) -> None:
        for name, amount in guest.asks.items():
            self.free[name] = self.free.get(name, _NONE) - amount
        self.guests.append(guest)


def tolerates(spec: Mapping[str, Any], taints: Iterable[Mapping[str, str]]) -> bool:
    return all(
        any(_tolerated(toleration, taint) for toleration in spec.get("tolerations") or [])
        for taint in taints
        if taint["effect"] in {"NoSchedule", "NoExecute"} and taint["key"] not in _PASSING_TAINTS
    )


def _tolerated(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in {None, "", taint["effect"]}:
        return False
    if toleration.get("key") not in {None, "", taint["key"]}:
        return False
    return toleration.get("operator") == "Exists" or (
        bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")
    )


def _selected(spec: Mapping[str, Any], labels: Mapping[str, str], name: str) -> bool:
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
    return terms is None or any(_term_holds(term, labels, name) for term in terms)


def _term_holds(term: Mapping[str, Any], labels: Mapping[str, str], name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_holds(expression, labels) for expression in expressions) and all(
        _holds(expression, {"metadata.name": name}) for expression in fields
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator if value is not None and value.lstrip("-").isdigit():
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
    return False


def _repels(pod: Pod, other: Pod) -> bool:
    """Whether `pod` refuses to share a node with `other`."""
    affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    other_labels = other.get("metadata", {}).get("labels") or {}
    other_space = other.get("metadata", {}).get("namespace")
    for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []:
        spaces = term.get("namespaces") or [pod.get("metadata", {}).get("namespace")]
        everywhere = term.get("namespaceSelector") == {}
        if term.get("topologyKey") == _HOSTNAME and (everywhere or other_space in spaces):
            selector = term.get("labelSelector")
            if selector is not None and _labels_match(selector, other_labels):
                return True
    return False


def _labels_match(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        _holds(expression, labels) for expression in selector.get("matchExpressions") or []
    )
