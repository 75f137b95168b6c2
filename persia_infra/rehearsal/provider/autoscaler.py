"""Node pools that grow while pods wait, as GKE's cluster autoscaler has it.

`growth` decides, on plain values; `Autoscaler` looks once a second and acts. Pools never shrink: a rehearsal
ends before an idle node would be taken away.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from persia_infra.rehearsal.provider.nodes import Limits, NodeTemplate
from persia_infra.rehearsal.provider.pod_fit import Amounts, Guest, Pod, Room, amounts

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
    """The nodes to add, by pool and zone, so that the waiting pods have a place.

    A pod that fits what is free already adds nothing: its node may be seconds old, and the scheduler on its way.
    The others are packed into new nodes, largest first, each into the smallest machine that takes it.

    Args:
        pools: Every autoscaled pool.
        rooms: The nodes that are there, with what is free on them.
        waiting: Pods that the scheduler found no place for.
        daemons: One pod of each DaemonSet, for the share of a new node that they take.
    """
    there, new = list(rooms), []
    counts = {pool.name: dict(pool.nodes) for pool in pools}
    added: dict[str, dict[str, int]] = {}
    by_size = sorted(pools, key=lambda pool: _size(pool.template))
    whole = {pool.name: amounts(pool.template.allocatable) for pool in pools}
    everywhere = [Guest.of(daemon) for daemon in daemons]
    for guest in sorted(map(Guest.of, waiting), key=lambda guest: _bulk(guest.asks), reverse=True):
        if room := next((room for room in (*there, *new) if room.takes(guest)), None):
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
    """The scheduler has looked at it and found no place."""
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    return any(
        condition["type"] == "PodScheduled"
        and condition["status"] == "False"
        and condition.get("reason") == "Unschedulable"
        for condition in (pod.get("status") or {}).get("conditions") or []
    )


def rooms(nodes: Iterable[dict[str, Any]], pods: Iterable[Pod]) -> list[Room]:
    """What is free on each node that takes pods."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}:
            by_node.setdefault(pod["spec"].get("nodeName") or "", []).append(pod)
    found = []
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
        found.append(room)
    return found


def daemon_pods(daemon_sets: Iterable[dict[str, Any]]) -> list[Pod]:
    """A pod of each DaemonSet, as one would be made on a new node."""
    return [
        {
            "metadata": {**(one["spec"]["template"].get("metadata") or {}), "namespace": one["metadata"]["namespace"]},
            "spec": one["spec"]["template"]["spec"],
        }
        for one in daemon_sets
    ]


class Autoscaler:
    """A thread that calls `step` once a second until `stop`; an error of one look doesn't end it."""

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
                _log.warning("autoscaler: %s: %s; looking again", type(error).__name__, error)
