"""How much of a node a pod takes, counted as the scheduler counts it.

Works on the JSON form of a pod. A resize of a running pod is out of scope: pods are looked at before they start.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from persia_infra.kube.pods import GPU
from persia_infra.kube.types.pods import PodTemplateSpec, ResourceRequirements
from persia_infra.spec.quantity import parse_quantity

Amounts = dict[str, Decimal]
"""How much of each resource, in its base unit: cores, bytes, devices."""

_NONE = Decimal(0)
_HUGE_PAGES = "hugepages-"


def pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """Returns what the scheduler sets aside for a pod with this `spec`.

    Containers run together with sidecars (init containers that restart always). Other init containers run one after
    the other before that, each together with the sidecars that started earlier. The larger of both counts, unless
    the pod itself says how much it needs. What the pod's runtime class needs is added.
    """
    sidecars: Amounts = {}
    start: Amounts = {}
    for container in spec.get("initContainers") or ():
        requests = _requests_of(container.get("resources"))
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, requests)
            start = _maximum(start, sidecars)
        else:
            start = _maximum(start, _sum(sidecars, requests))
    running = sidecars
    for container in spec.get("containers") or ():
        running = _sum(running, _requests_of(container.get("resources")))
    return _sum(_with_pod_level(_maximum(start, running), spec.get("resources") or {}), amounts(spec.get("overhead")))


def template_requests(template: PodTemplateSpec) -> Amounts:
    """Returns what the scheduler sets aside for a pod made from this template."""
    return pod_requests(template.as_kubernetes()["spec"])


def container_requests(resources: ResourceRequirements) -> Amounts:
    """Returns what a container with these resources asks for: a limit without a request is a request too."""
    return _requests_of(resources.as_kubernetes())


def gpus(requests: Mapping[str, Decimal]) -> int:
    """Returns the number of GPUs among these requests."""
    return int(requests.get(GPU, _NONE))


def amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    """Returns quantities as numbers."""
    return {name: parse_quantity(quantity) for name, quantity in (quantities or {}).items()}


def _requests_of(resources: Mapping[str, Any] | None) -> Amounts:
    resources = resources or {}
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def _with_pod_level(of_containers: Amounts, resources: Mapping[str, Any]) -> Amounts:
    """Returns the requests of the pod as a whole.

    A request of the pod replaces the containers' sum. A limit of the pod stands in for a request only if no container
    asks for the resource; huge pages are the exception, because they cannot be overcommitted.
    """
    requests, limits = amounts(resources.get("requests")), amounts(resources.get("limits"))
    whole = dict(of_containers)
    for name, limit in limits.items():
        if _is_pod_level(name) and (name not in of_containers or name.startswith(_HUGE_PAGES)):
            whole[name] = limit
    return whole | {name: amount for name, amount in requests.items() if _is_pod_level(name)}


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith(_HUGE_PAGES)


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, _NONE) + right.get(name, _NONE) for name in {**left, **right}}


def _maximum(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, _NONE), right.get(name, _NONE)) for name in {**left, **right}}
