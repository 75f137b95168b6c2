"""Waits until an object is ready, by the rules of the official provider; other kinds are ready once they exist.

Ingresses and PersistentVolumes are out of scope: nothing in a rehearsal would serve them.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from persia_infra.kube.api import ApiError, ApiResource, Cluster, NoSuchKind, Object, Refused, Unreachable
from persia_infra.rehearsal.provider.package import ProviderError

_MOST_REASONS = 8
_POLL_SECONDS = 0.5


class NotUp(Exception):
    """An object that exists but did not become ready; `live` is its last known state."""

    def __init__(self, live: Object, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.live, self.reasons = live, reasons


@dataclass
class Verdict:
    """Whether an object is ready, and if not, what it waits for and the labels of its pods."""

    up: bool
    waiting_for: str = ""
    failed: bool = False
    pods: dict[str, str] = field(default_factory=dict)


_UP = Verdict(True)
Judge = Callable[[Object, Cluster], Verdict]


def wait_until_up(
    cluster: Cluster, resource: ApiResource, applied: Object, *, timeout: float, cancelled: threading.Event
) -> Object:
    """Returns the object once it is ready.

    Raises:
        NotUp: The object failed, the time ran out, or the operation was cancelled.
    """
    judge = _JUDGES.get((_group(applied), applied["kind"]))
    if judge is None:
        return applied
    namespace, name = applied["metadata"].get("namespace", ""), applied["metadata"]["name"]
    view = cluster.view(resource, namespace)
    since = time.monotonic()
    deadline = since + timeout
    live, verdict = applied, Verdict(False, "not listed yet")
    while True:
        try:
            current = view.objects(since).get(name)
            if current is None or current["metadata"]["uid"] != applied["metadata"]["uid"]:
                if applied["kind"] == "Job" and "ttlSecondsAfterFinished" in applied.get("spec", {}):
                    return live
                raise NotUp(live, ["it was deleted by someone else while Pulumi waited for it"])
            live = current
            verdict = judge(live, cluster)
        except (Unreachable, Refused) as error:
            verdict = Verdict(False, str(error))
        if verdict.up:
            return live
        if verdict.failed:
            raise NotUp(live, _reasons(cluster, live, verdict, "failed"))
        if cancelled.is_set():
            raise NotUp(live, _reasons(cluster, live, verdict, "cancelled while waiting"))
        if time.monotonic() >= deadline:
            raise NotUp(live, _reasons(cluster, live, verdict, f"not up after {timeout:.0f} s"))
        cancelled.wait(min(_POLL_SECONDS, max(0.05, deadline - time.monotonic())))


def wait_until_gone(
    cluster: Cluster,
    resource: ApiResource,
    namespace: str,
    name: str,
    uid: str,
    *,
    timeout: float,
    cancelled: threading.Event,
) -> None:
    """Returns once an object is gone.

    The first attempts get the object itself, since most disappear at once; later ones share a list with other waits.

    Raises:
        ProviderError: The time ran out, or the deletion was cancelled.
    """
    view = cluster.view(resource, namespace)
    since = time.monotonic()
    deadline = since + timeout
    attempt = 0
    while True:
        live = cluster.get(resource, namespace, name) if attempt < 3 else view.objects(since).get(name)
        attempt += 1
        if live is None or live["metadata"]["uid"] != uid:
            return
        if cancelled.is_set() or time.monotonic() >= deadline:
            what = f"{resource.kind} {namespace + '/' if namespace else ''}{name}"
            ended = "the deletion was cancelled" if cancelled.is_set() else f"still there after {timeout:.0f} s"
            finalizers = live["metadata"].get("finalizers") or live.get("spec", {}).get("finalizers") or []
            held = f"; held by its finalizers: {', '.join(finalizers)}" if finalizers else ""
            conditions = [
                str(item.get("message"))
                for item in live.get("status", {}).get("conditions") or []
                if item.get("status") == "True" and item.get("message")
            ]
            raise ProviderError("\n".join([f"{what}: {ended}{held}", *(f"  - {text}" for text in conditions)]))
        cancelled.wait(0.1 * attempt if attempt < 3 else _POLL_SECONDS)


def _group(live: Object) -> str:
    return live["apiVersion"].rpartition("/")[0]


def _condition(live: Object, kind: str) -> Object:
    for item in live.get("status", {}).get("conditions") or []:
        if item.get("type") == kind:
            return item
    return {}


def _holds(live: Object, kind: str) -> bool:
    return _condition(live, kind).get("status") == "True"


def _is_observed(live: Object) -> bool:
    return live.get("status", {}).get("observedGeneration", 0) >= live["metadata"].get("generation", 0)


def _labels(live: Object) -> dict[str, str]:
    return live.get("spec", {}).get("selector", {}).get("matchLabels") or {}


def _deployment(live: Object, _: Cluster) -> Verdict:
    spec, status = live["spec"], live.get("status", {})
    progressing = _condition(live, "Progressing")
    if _is_observed(live) and progressing.get("reason") == "ProgressDeadlineExceeded":
        return Verdict(False, str(progressing.get("message")), failed=True, pods=_labels(live))
    wanted = spec.get("replicas", 1)
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if not _is_observed(live):
        return Verdict(False, "the controller has not seen it yet")
    if spec.get("paused"):
        return _UP
    if updated >= wanted and available >= wanted and status.get("replicas", 0) <= updated:
        return _UP
    return Verdict(False, f"{available} of {wanted} pods are available, {updated} are up to date", pods=_labels(live))


def _stateful_set(live: Object, _: Cluster) -> Verdict:
    spec, status = live["spec"], live.get("status", {})
    wanted = spec.get("replicas", 1)
    if not _is_observed(live):
        return Verdict(False, "the controller has not seen it yet")
    ready, updated = status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    strategy = spec.get("updateStrategy", {})
    must_update = wanted - (strategy.get("rollingUpdate") or {}).get("partition", 0)
    if strategy.get("type") == "OnDelete":
        must_update = 0
    if ready >= wanted and updated >= must_update and status.get("replicas", 0) == wanted:
        return _UP
    return Verdict(False, f"{ready} of {wanted} pods are ready, {updated} are up to date", pods=_labels(live))


def _daemon_set(live: Object, _: Cluster) -> Verdict:
    status = live.get("status", {})
    wanted = status.get("desiredNumberScheduled", 0)
    if not _is_observed(live):
        return Verdict(False, "the controller has not seen it yet")
    on_delete = live["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
    updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    if available >= wanted and (on_delete or updated >= wanted):
        return _UP
    return Verdict(False, f"{available} of {wanted} pods are available, {updated} are up to date", pods=_labels(live))


def _job(live: Object, _: Cluster) -> Verdict:
    if _holds(live, "Complete") or live["spec"].get("suspend"):
        return _UP
    failure = _condition(live, "Failed")
    if failure.get("status") == "True":
        message = f"{failure.get('reason')}: {failure.get('message')}"
        return Verdict(False, message, failed=True, pods=_labels(live))
    done, wanted = live.get("status", {}).get("succeeded", 0), live["spec"].get("completions", 1)
    return Verdict(False, f"{done} of {wanted} pods have completed", pods=_labels(live))


def _pod(live: Object, _: Cluster) -> Verdict:
    phase = live.get("status", {}).get("phase")
    if phase == "Succeeded" or _holds(live, "Ready"):
        return _UP
    return Verdict(False, _pod_reason(live) or f"phase {phase}", failed=phase == "Failed")


def _claim(live: Object, cluster: Cluster) -> Verdict:
    phase = live.get("status", {}).get("phase")
    if phase == "Bound":
        return _UP
    if phase == "Lost":
        return Verdict(False, "its volume is gone", failed=True)
    classes = cluster.view(cluster.resource("storage.k8s.io/v1", "StorageClass"), "").objects(0)
    name = live["spec"].get("storageClassName")
    if name is None:
        name = next((name for name, item in classes.items() if _is_default(item)), "")
    if classes.get(name, {}).get("volumeBindingMode") == "WaitForFirstConsumer":
        return _UP
    return Verdict(
        False, f"it is {phase or 'not bound'}: there is no volume of storage class {name or '(none)'} for it yet"
    )


def _is_default(storage_class: Object) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return annotations.get("storageclass.kubernetes.io/is-default-class") == "true"


def _service(live: Object, cluster: Cluster) -> Verdict:
    spec = live["spec"]
    if spec.get("type") == "ExternalName":
        return _UP
    if spec.get("selector") and spec.get("clusterIP") != "None":
        namespace, name = live["metadata"]["namespace"], live["metadata"]["name"]
        slices = cluster.view(cluster.resource("discovery.k8s.io/v1", "EndpointSlice"), namespace).objects(0)
        own = [item for item in slices.values() if _belongs_to(item, name)]
        if not any(_is_ready(endpoint) for item in own for endpoint in item.get("endpoints") or []):
            return Verdict(False, "no ready pod matches its selector", pods=spec["selector"])
    if spec.get("type") == "LoadBalancer" and not live.get("status", {}).get("loadBalancer", {}).get("ingress"):
        return Verdict(False, "its load balancer has no address yet")
    return _UP


def _belongs_to(endpoint_slice: Object, service: str) -> bool:
    return (endpoint_slice["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == service


def _is_ready(endpoint: Object) -> bool:
    return bool(endpoint.get("addresses")) and endpoint.get("conditions", {}).get("ready") is not False


def _definition(live: Object, cluster: Cluster) -> Verdict:
    accepted = _condition(live, "NamesAccepted")
    if accepted.get("status") == "False":
        return Verdict(False, f"{accepted.get('reason')}: {accepted.get('message')}", failed=True)
    if not _holds(live, "Established"):
        return Verdict(False, "it is not established yet")
    for version in live["spec"]["versions"]:
        if version.get("served"):
            api_version = f"{live['spec']['group']}/{version['name']}"
            try:
                cluster.resource(api_version, live["spec"]["names"]["kind"])
            except NoSuchKind:
                return Verdict(False, f"{api_version} is not served yet")
    return _UP


def _namespace(live: Object, _: Cluster) -> Verdict:
    phase = live.get("status", {}).get("phase")
    return _UP if phase == "Active" else Verdict(False, f"it is {phase}")


_JUDGES: dict[tuple[str, str], Judge] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): _service,
    ("", "Namespace"): _namespace,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}


def _reasons(cluster: Cluster, live: Object, verdict: Verdict, ended: str) -> list[str]:
    what = f"[{live['kind']} {_place(live)}]"
    reasons = [f"{what}: {ended}: {verdict.waiting_for}"]
    try:
        if verdict.pods:
            reasons += _pod_reasons(cluster, live["metadata"]["namespace"], verdict.pods)
        reasons += [f"{what}: {text}" for text in _warnings(cluster, live)]
    except ApiError as error:
        reasons.append(f"{what}: its pods and events cannot be read: {error}")
    return reasons


def _place(live: Object) -> str:
    metadata = live["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]


def _pod_reasons(cluster: Cluster, namespace: str, labels: dict[str, str]) -> list[str]:
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    pods = cluster.list(cluster.resource("v1", "Pod"), namespace, labelSelector=selector)
    reasons = [f"[Pod {_place(pod)}]: {reason}" for pod in pods if (reason := _pod_reason(pod))]
    more = len(reasons) - _MOST_REASONS
    return reasons[:_MOST_REASONS] + ([f"and {more} more pods like these"] if more > 0 else [])


def _pod_reason(pod: Object) -> str:
    status: dict[str, Any] = pod.get("status", {})
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return f"{scheduled.get('reason')}: {scheduled.get('message')}"
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = container.get("state", {})
        stopped = state.get("waiting") or state.get("terminated") or {}
        if stopped and not (state.get("terminated") and stopped.get("exitCode") == 0):
            code = f" (exit {stopped['exitCode']})" if "exitCode" in stopped else ""
            return (
                f"container {container['name']}: {stopped.get('reason')}{code} {stopped.get('message') or ''}".strip()
            )
    if status.get("phase") == "Failed":
        return f"Failed: {status.get('reason') or ''} {status.get('message') or ''}".strip()
    if status.get("phase") == "Running" and not _holds(pod, "Ready"):
        return f"not ready: {_condition(pod, 'Ready').get('message') or 'its readiness probe has not passed'}"
    return ""


def _warnings(cluster: Cluster, live: Object) -> list[str]:
    """Returns the object's newest warning events, where controllers report why they cannot create its pods."""
    namespace = live["metadata"].get("namespace") or "default"
    events = cluster.list(
        cluster.resource("v1", "Event"),
        namespace,
        fieldSelector=f"involvedObject.uid={live['metadata']['uid']},type=Warning",
    )
    events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""), reverse=True)
    return list(dict.fromkeys(f"{event.get('reason')}: {event.get('message')}" for event in events))[:3]
