"""The objects of Volcano's three programs, its queues and its webhooks."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from persia_infra.kube.objects import Body, KubeObject, hashed_name, metadata, selector_labels
from persia_infra.kube.placement import Placement
from persia_infra.operators.installation import Installation, Program, http_probe
from persia_infra.operators.volcano.kinds import definitions
from persia_infra.operators.volcano.rights import (
    ADMISSION_RIGHTS,
    CONTROLLERS_RIGHTS,
    MUTATING,
    SCHEDULER_RIGHTS,
    SERVICE,
    VALIDATING,
)

if TYPE_CHECKING:
    from persia_infra.operators.volcano.spec import VolcanoSpec

SCHEDULER, CONTROLLERS, ADMISSION = "volcano-scheduler", "volcano-controllers", "volcano-admission"
WEBHOOK_PORT = 8443
CERTIFICATE_VALUE = "${volcano-admission.certificate}"
"""A placeholder for the data of the certificate's Secret, which is generated during the deployment."""
AUTHORITY_VALUE = "${volcano-admission.authority}"
"""A placeholder for the CA certificate that signed the deployed certificate."""
_USER = 1000
_HEALTH_PORT, _METRICS_PORT = 11251, 8080
_SCRATCH = "/tmp/klog-socks"  # noqa: S108
_CERTIFICATES = "/admission.local.config/certificates"
_SCHEDULER_FOLDER = "/volcano.scheduler"

_SCHEDULER_CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


def volcano_objects(spec: "VolcanoSpec", placement: Placement | None) -> list[KubeObject]:
    """Returns the objects, each after those that it depends on.

    Queues exist before the webhooks are switched on and are deleted after them, so that neither a first update nor a
    destroy waits for a webhook that cannot answer.
    """
    parts = Installation("volcano", spec.namespace)
    kinds = parts.define(definitions())
    parts.add_in_namespace("-critical-pods", _critical_pods(parts))
    files = {"volcano-scheduler.conf": _SCHEDULER_CONF}
    config = hashed_name(SCHEDULER, files)
    described = metadata(config, spec.namespace, parts.labels)
    parts.add_in_namespace(
        "-scheduler-config",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": described, "data": files, "immutable": True},
    )
    secret = parts.add_in_namespace(
        f"-{certificate_secret(spec)}",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata(certificate_secret(spec), spec.namespace, parts.labels),
            "type": "Opaque",
            "data": CERTIFICATE_VALUE,
        },
        # Every run of the program generates another certificate; the first one is kept.
        ignore_changes=("data",),
    )
    for account, rights in (
        (SCHEDULER, SCHEDULER_RIGHTS),
        (CONTROLLERS, CONTROLLERS_RIGHTS),
        (ADMISSION, ADMISSION_RIGHTS),
    ):
        parts.allow(rights, account=account)
    for part, program in ((SCHEDULER, _scheduler(spec, config)), (CONTROLLERS, _controllers(spec))):
        parts.deploy(spec, program, placement=placement, account=part, part=part)
    queues = [
        parts.add(
            f"-queue-{queue}",
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": metadata(queue, None, parts.labels),
                "spec": described.model_dump(by_alias=True, exclude_none=True),
            },
            needs=kinds,
        )
        for queue, described in spec.queues.items()
    ]
    admission = parts.deploy(
        spec,
        _admission(spec, certificate_secret(spec)),
        placement=placement,
        account=ADMISSION,
        part=ADMISSION,
    )
    service = parts.add(
        "-admission-service",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(SERVICE, spec.namespace, parts.labels),
            "spec": {
                "selector": selector_labels("volcano", ADMISSION, "operator"),
                "ports": [{"name": "webhook", "port": 443, "targetPort": "webhook"}],
            },
        },
        needs=[admission],
    )
    # Last, when the webhooks can answer: otherwise the scheduler could not create its queue, and would exit.
    _add_webhooks(spec, parts, needs=[*kinds, *queues, service, secret])
    return parts.objects


def certificate_secret(spec: "VolcanoSpec") -> str:
    """The Secret's name, which changes with `webhook_certificate`, so that running pods keep the old Secret."""
    return f"volcano-admission-{hashlib.sha256(spec.webhook_certificate.encode()).hexdigest()[:10]}"


def _add_webhooks(spec: "VolcanoSpec", parts: Installation, *, needs: Sequence[KubeObject]) -> None:
    for verb, kind, webhooks in (
        ("mutate", "MutatingWebhookConfiguration", MUTATING),
        ("validate", "ValidatingWebhookConfiguration", VALIDATING),
    ):
        for resource, (group, version, operations) in webhooks.items():
            rule = {
                "apiGroups": [group],
                "apiVersions": [version],
                "resources": [resource],
                "operations": list(operations),
            }
            body = {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": metadata(f"{SERVICE}-{resource}-{verb}", None, parts.labels),
                "webhooks": [_webhook(spec, verb, resource, rule)],
            }
            parts.add(f"-{resource}-{verb}", body, needs=needs)


def _webhook(spec: "VolcanoSpec", verb: str, resource: str, rule: Mapping[str, object]) -> Body:
    service = {"name": SERVICE, "namespace": spec.namespace, "path": f"/{resource}/{verb}", "port": 443}
    elsewhere = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": [spec.namespace, "kube-system"],
    }
    return {
        "name": f"{verb}{resource.removesuffix('s')}.volcano.sh",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"caBundle": AUTHORITY_VALUE, "service": service},
        "failurePolicy": "Fail",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
        "namespaceSelector": {"matchExpressions": [elsewhere]},
        "rules": [rule],
    }


def _critical_pods(parts: Installation) -> Body:
    """The quota without which GKE refuses pods with a system priority in the namespace."""
    selector = {"operator": "In", "scopeName": "PriorityClass", "values": ["system-cluster-critical"]}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata("critical-pods", parts.namespace, parts.labels),
        "spec": {"hard": {"pods": "100"}, "scopeSelector": {"matchExpressions": [selector]}},
    }


def _leader_election(spec: "VolcanoSpec") -> list[str]:
    return ["--leader-elect=true", f"--leader-elect-resource-namespace={spec.namespace}"]


def _scratch_variable() -> Body:
    return {"name": "DEBUG_SOCKET_DIR", "value": _SCRATCH}


def _scheduler(spec: "VolcanoSpec", config: str) -> Program:
    return Program(
        image=spec.part_image("vc-scheduler"),
        args=[
            "--logtostderr",
            f"--scheduler-conf={_SCHEDULER_FOLDER}/volcano-scheduler.conf",
            "--enable-healthz=true",
            "--enable-metrics=true",
            "--cache-dumper=false",
            *_leader_election(spec),
            "-v=3",
        ],
        ports={"health": _HEALTH_PORT, "metrics": _METRICS_PORT},
        variables=[_scratch_variable()],
        readiness=http_probe("/healthz", "health"),
        liveness=http_probe("/healthz", "health", delay=15),
        user=_USER,
        critical=True,
        files={_SCHEDULER_FOLDER: {"configMap": {"name": config}}, _SCRATCH: {"emptyDir": {}}},
    )


def _controllers(spec: "VolcanoSpec") -> Program:
    return Program(
        image=spec.part_image("vc-controller-manager"),
        args=["--logtostderr", "--enable-healthz=true", "--enable-metrics=true", *_leader_election(spec), "-v=3"],
        ports={"health": _HEALTH_PORT, "metrics": 8081},
        variables=[{"name": "KUBE_POD_NAMESPACE", "value": spec.namespace}, _scratch_variable()],
        readiness=http_probe("/healthz", "health"),
        liveness=http_probe("/healthz", "health", delay=15),
        user=_USER,
        critical=True,
        files={_SCRATCH: {"emptyDir": {}}},
    )


def _admission(spec: "VolcanoSpec", secret: str) -> Program:
    enabled = [f"/{resource}/mutate" for resource in MUTATING] + [f"/{resource}/validate" for resource in VALIDATING]
    return Program(
        image=spec.part_image("vc-webhook-manager"),
        args=[
            f"--enabled-admission={','.join(enabled)}",
            f"--tls-cert-file={_CERTIFICATES}/tls.crt",
            f"--tls-private-key-file={_CERTIFICATES}/tls.key",
            f"--ca-cert-file={_CERTIFICATES}/ca.crt",
            f"--webhook-namespace={spec.namespace}",
            f"--webhook-service-name={SERVICE}",
            "--logtostderr",
            "--enable-healthz=true",
            f"--port={WEBHOOK_PORT}",
            "-v=3",
        ],
        ports={"webhook": WEBHOOK_PORT, "health": _HEALTH_PORT},
        variables=[_scratch_variable()],
        # It starts to listen only when it has seen every webhook configuration.
        readiness={"tcpSocket": {"port": "webhook"}, "initialDelaySeconds": 2, "periodSeconds": 5},
        liveness=http_probe("/healthz", "health", delay=15, https=True),
        user=_USER,
        critical=True,
        files={_CERTIFICATES: {"secret": {"secretName": secret}}, _SCRATCH: {"emptyDir": {}}},
    )
