"""The behaviour of simulated nodes and their pods, as Stage objects for kwok.

A node becomes Ready (kwok itself renews its lease). A pod that is bound to a node runs and is ready at once, with its
init containers completed; a pod of a Job then succeeds; a pod that is being deleted disappears. Sizes, labels and
taints of a node are set by whoever creates it. Out of scope: failing containers and slow image pulls.
"""

from typing import Any

KEEPS_RUNNING = "rehearsal.persia-infra/keeps-running"
"""An annotation with any value: a pod of a Job with it keeps running instead of succeeding."""

_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'

_NODE_STATUS = """\
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
addresses:
- {type: InternalIP, address: {{ NodeIP | Quote }}}
- {type: Hostname, address: {{ NodeName | Quote }}}
phase: Running
"""

_POD_RUNNING = """\
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
{{ $podIP := PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ $podIP | Quote }}
podIPs:
- ip: {{ $podIP | Quote }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  {{ if eq .restartPolicy "Always" }}
  started: true
  state: {running: {startedAt: {{ $now | Quote }}}}
  {{ else }}
  state:
    terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}
  {{ end }}
{{ end }}
"""

_POD_SUCCEEDED = """\
{{ $now := Now }}
phase: Succeeded
conditions:
- {type: Ready, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}
{{ end }}
"""


def _stage(
    name: str, kind: str, when: list[dict[str, Any]], then: dict[str, Any], delay_seconds: int = 0
) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": when},
            "next": then,
            "delay": {"durationMilliseconds": delay_seconds * 1000},
        },
    }


def _where(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


_ALIVE = _where(".metadata.deletionTimestamp", "DoesNotExist")

STAGES: tuple[dict[str, Any], ...] = (
    _stage("node-comes-up", "Node", [_where(_READY, "NotIn", "True")], {"statusTemplate": _NODE_STATUS}),
    _stage(
        "pod-runs",
        "Pod",
        [_ALIVE, _where(".status.phase", "In", "Pending"), _where(_READY, "NotIn", "True")],
        {"statusTemplate": _POD_RUNNING},
    ),
    _stage(
        "pod-of-a-job-succeeds",
        "Pod",
        [
            _ALIVE,
            _where(".status.phase", "In", "Running"),
            _where(".metadata.ownerReferences.[].kind", "In", "Job"),
            _where(f'.metadata.annotations["{KEEPS_RUNNING}"]', "DoesNotExist"),
        ],
        {"statusTemplate": _POD_SUCCEEDED},
        delay_seconds=1,
    ),
    _stage(
        "pod-goes",
        "Pod",
        [_where(".metadata.deletionTimestamp", "Exists")],
        {"delete": True},
    ),
)
