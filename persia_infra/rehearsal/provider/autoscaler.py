"""Grows node pools while pods wait, like GKE's cluster autoscaler.

`growth` decides, on plain values; `Autoscaler` looks once a second and acts. Pools never shrink: a rehearsal
ends before an idle node would be removed.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from persia_infra.kube.requests import Amounts, amounts
from persia_infra.rehearsal.provider.nodes import Limits, NodeTemplate
from persia_infra.rehearsal.provider.pod_fit import Guest, Pod, Room

LOOK_EVERY_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GrowingPool:
    """An autoscaled pool and how many nodes it has in each zone."""

    name: str
    template: NodeTemplate
    nodes: Mapping[str, int]
    limits: Limits


def growth(
    pools: Sequence[GrowingPool], rooms: Iterable[Room], waiting: Iterable[Pod], daemons: Sequence[Pod] = ()
) -> dict[str, dict[str, int]]:
    """Returns the nodes to add, by pool and zone, so that the waiting pods fit.

    A pod that fits on an existing node adds nothing: the node may be new, and the scheduler has not used it yet.
    The others are packed into new nodes, largest first, each into the smallest machine on which it fits.

    Args:
        pools: Every autoscaled pool.
        rooms: The existing nodes with their free resources.
        waiting: Pods for which the scheduler found no node.
        daemons: One pod of each DaemonSet, for the part of a new node that they use.
    """
    existing, new = list(rooms), []
    counts = {pool.name: dict(pool.nodes) for pool in pools}
    added: dict[str, dict[str, int]] = {}
    by_size = sorted(pools, key=lambda pool: _size(pool.template))
    whole = {pool.name: amounts(pool.template.allocatable) for pool in pools}
    everywhere = [Guest.of(daemon) for daemon in daemons]
    for guest in sorted(map(Guest.of, waiting), key=lambda guest: _bulk(guest.asks), reverse=True):
        if room := next((room for room in (*existing, *new) if room.takes(guest)), None):
            room.put(guest)
            continue
        for pool, zone in _places(by_size, counts):
            room = _empty_room(pool.template, zone, dict(whole[pool.name]), everywhere)
            if room.takes(guest):
                room.put(guest)
                new.append(room)
                counts[pool.name][zone] += 1
                zones = added.setdefault(pool.name, {})
                zones[zone] = zones.get(zone, 0) + 1
                break
    return added


def _places(pools: Iterable[GrowingPool], counts: Mapping[str, Mapping[str, int]]) -> Iterable[tuple[GrowingPool, str]]:
    for pool in pools:
        nodes = counts[pool.name]
        for zone in sorted(nodes, key=lambda zone, nodes=nodes: (nodes[zone], zone)):
            if not pool.limits.exceeded_by({**nodes, zone: nodes[zone] + 1}):
                yield pool, zone


def _empty_room(template: NodeTemplate, zone: str, free: Amounts, daemons: Iterable[Guest]) -> Room:
    labels = {**template.labels, "topology.kubernetes.io/zone": zone, "topology.gke.io/zone": zone}
    room = Room(labels, template.taints, free)
    for daemon in daemons:
        if room.takes(daemon):
            room.put(daemon)
    return room


def _size(template: NodeTemplate) -> tuple[int, int, float, str]:
    machine = template.machine
    return machine.gpus, machine.vcpus, machine.memory_gib, machine.name


def _bulk(asked: Mapping[str, Decimal]) -> tuple[Decimal, ...]:
    return tuple(asked.get(name, Decimal(0)) for name in ("nvidia.com/gpu", "memory", "cpu"))


def is_waiting(pod: Pod) -> bool:
    """Whether the scheduler has looked at a pod and found no node for it."""
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    return any(
        condition["type"] == "PodScheduled"
        and condition["status"] == "False"
        and condition.get("reason") == "Unschedulable"
        for condition in (pod.get("status") or {}).get("conditions") or []
    )


def rooms(nodes: Iterable[dict[str, Any]], pods: Iterable[Pod]) -> list[Room]:
    """Returns the nodes that accept pods, with their free resources."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}:
            by_node.setdefault(pod["spec"].get("nodeName") or "", []).append(pod)
    schedulable = []
    for node in nodes:
        meta, spec = node["metadata"], node.get("spec") or {}
        if spec.get("unschedulable") or meta.get("deletionTimestamp"):
            continue
        room = Room(
            meta.get("labels") or {},
            spec.get("taints") or [],
            amounts((node.get("status") or {}).get("allocatable")),
            meta["name"],
        )
        for pod in by_node.get(meta["name"], []):
            room.put(Guest.of(pod))
        schedulable.append(room)
    return schedulable


def daemon_pods(daemon_sets: Iterable[dict[str, Any]]) -> list[Pod]:
    """Returns a pod of each DaemonSet, as it would be created on a new node."""
    return [
        {
            "metadata": {
                **(daemon_set["spec"]["template"].get("metadata") or {}),
                "namespace": daemon_set["metadata"]["namespace"],
            },
            "spec": daemon_set["spec"]["template"]["spec"],
        }
        for daemon_set in daemon_sets
    ]


class Autoscaler:
    """A thread that calls `step` once a second until `stop`; an error in `step` does not end it."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._ended.clear()
        self._thread = threading.Thread(target=self._run, name="autoscaler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_SECONDS):
            try:
                self._step()
            except Exception as error:
                _log.warning("autoscaler: %s: %s; trying again", type(error).__name__, error)
