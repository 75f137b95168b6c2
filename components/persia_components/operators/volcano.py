"""Volcano: the scheduler that starts a gang of pods whole or not at all, its controllers and its webhooks."""

import hashlib
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_kubernetes import admissionregistration, apiextensions, core, meta

from persia_components import _pods
from persia_components._children import child_options, metadata, selector_labels, token
from persia_components.operators._operator import Installation, Program, probe
from persia_components.operators._volcano_rights import (
    ADMISSION_RIGHTS,
    CONTROLLERS_RIGHTS,
    MUTATING,
    SCHEDULER_RIGHTS,
    SERVICE,
    VALIDATING,
)

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement
    from persia_infra.operators.specs import VolcanoSpec

_SCHEDULER, _CONTROLLERS, _ADMISSION = "volcano-scheduler", "volcano-controllers", "volcano-admission"
_USER = 1000
_HEALTH, _METRICS = 11251, 8080
_SCRATCH = "/tmp/klog-socks"  # noqa: S108
_CERTIFICATES = "/admission.local.config/certificates"

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


class Volcano(pulumi.ComponentResource):
    """Scheduler, controllers, webhooks and queues.

    The webhooks' certificate is made when the program first runs and then kept: another text in
    `webhook_certificate` makes a new one. Queues are there before the webhooks are switched on, and go after
    them, so that neither a first update nor a destroy waits for a webhook that can't answer yet, or any more.
    """

    def __init__(
        self,
        name: str,
        spec: "VolcanoSpec",
        *,
        placement: "Placement | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(token("Volcano"), name, None, opts)
        from persia_infra.operators.volcano_kinds import definitions

        self._name = name
        parts = Installation(self, name, "volcano", spec.namespace)
        kinds = parts.define(definitions())
        parts.keep(_critical_pods(name, parts))
        config = {"volcano-scheduler.conf": _SCHEDULER_CONF}
        parts.keep(
            core.v1.ConfigMap(
                f"{name}-scheduler-config",
                metadata=metadata(_pods.hashed_name(_SCHEDULER, config), spec.namespace, parts.labels),
                data=config,
                immutable=True,
                opts=parts.options(),
            )
        )
        secret = self._certificate(spec, parts)
        parts.keep(secret)
        for account, rights in (
            (_SCHEDULER, SCHEDULER_RIGHTS),
            (_CONTROLLERS, CONTROLLERS_RIGHTS),
            (_ADMISSION, ADMISSION_RIGHTS),
        ):
            parts.allow(rights, account=account)
        for part, program in (
            (_SCHEDULER, _scheduler(spec, _pods.hashed_name(_SCHEDULER, config))),
            (_CONTROLLERS, _controllers(spec)),
        ):
            parts.deploy(spec, program, placement=placement, account=part, part=part)
        queues = [
            apiextensions.CustomResource(
                f"{name}-queue-{queue}",
                api_version="scheduling.volcano.sh/v1beta1",
                kind="Queue",
                metadata=metadata(queue, None, parts.labels),
                spec=described.model_dump(by_alias=True, exclude_none=True),
                opts=child_options(self, depends_on=kinds),
            )
            for queue, described in spec.queues.items()
        ]
        admission = parts.deploy(
            spec,
            _admission(spec, _secret_name(spec)),
            placement=placement,
            account=_ADMISSION,
            part=_ADMISSION,
        )
        service = core.v1.Service(
            f"{name}-admission-service",
            metadata=metadata(SERVICE, spec.namespace, parts.labels),
            spec=core.v1.ServiceSpecArgs(
                selector=selector_labels("volcano", _ADMISSION, "operator"),
                ports=[core.v1.ServicePortArgs(name="webhook", port=443, target_port="webhook")],
            ),
            opts=child_options(self, depends_on=[admission]),
        )
        # Last, when somebody answers: until then the scheduler could not make its queue, and would end.
        self._webhooks(spec, parts, secret, depends_on=[*kinds, *queues, service])
        self.register_outputs({})

    def _certificate(self, spec: "VolcanoSpec", parts: Installation) -> "core.v1.Secret":
        # Only here: cryptography takes long to import.
        from persia_components.operators._certificate import webhook_certificate

        options = parts.options()
        options.ignore_changes = ["data"]
        return core.v1.Secret(
            f"{self._name}-{_secret_name(spec)}",
            metadata=metadata(_secret_name(spec), spec.namespace, parts.labels),
            type="Opaque",
            data=pulumi.Output.secret(webhook_certificate(SERVICE, spec.namespace)),
            opts=options,
        )

    def _webhooks(
        self, spec: "VolcanoSpec", parts: Installation, secret: "core.v1.Secret", *, depends_on: list[pulumi.Resource]
    ) -> None:
        authority = secret.data.apply(lambda data: data["ca.crt"])
        everywhere_else = meta.v1.LabelSelectorArgs(
            match_expressions=[
                meta.v1.LabelSelectorRequirementArgs(
                    key="kubernetes.io/metadata.name", operator="NotIn", values=[spec.namespace, "kube-system"]
                )
            ]
        )

        v1 = admissionregistration.v1

        def webhook(word: str, resource: str, group: str, version: str, operations: tuple[str, ...]) -> dict[str, Any]:
            service = v1.ServiceReferenceArgs(
                name=SERVICE, namespace=spec.namespace, path=f"/{resource}/{word}", port=443
            )
            rule = v1.RuleWithOperationsArgs(
                api_groups=[group], api_versions=[version], resources=[resource], operations=list(operations)
            )
            return {
                "name": f"{word}{resource.removesuffix('s')}.volcano.sh",
                "admission_review_versions": ["v1"],
                "client_config": v1.WebhookClientConfigArgs(ca_bundle=authority, service=service),
                "failure_policy": "Fail",
                "side_effects": "NoneOnDryRun",
                "timeout_seconds": 10,
                "namespace_selector": everywhere_else,
                "rules": [rule],
            }

        opts = child_options(self, depends_on=depends_on)
        for resource, rule in MUTATING.items():
            v1.MutatingWebhookConfiguration(
                f"{self._name}-{resource}-mutate",
                metadata=metadata(f"{SERVICE}-{resource}-mutate", None, parts.labels),
                webhooks=[v1.MutatingWebhookArgs(**webhook("mutate", resource, *rule))],
                opts=opts,
            )
        for resource, rule in VALIDATING.items():
            v1.ValidatingWebhookConfiguration(
                f"{self._name}-{resource}-validate",
                metadata=metadata(f"{SERVICE}-{resource}-validate", None, parts.labels),
                webhooks=[v1.ValidatingWebhookArgs(**webhook("validate", resource, *rule))],
                opts=opts,
            )


def _secret_name(spec: "VolcanoSpec") -> str:
    """Another text for the certificate is another Secret, so pods with the old one keep it until they are replaced."""
    return f"volcano-admission-{hashlib.sha256(spec.webhook_certificate.encode()).hexdigest()[:10]}"


def _critical_pods(name: str, parts: Installation) -> "core.v1.ResourceQuota":
    """GKE refuses pods of a system priority in a namespace that no quota allows them in."""
    return core.v1.ResourceQuota(
        f"{name}-critical-pods",
        metadata=metadata("critical-pods", parts.namespace, parts.labels),
        spec=core.v1.ResourceQuotaSpecArgs(
            hard={"pods": "100"},
            scope_selector=core.v1.ScopeSelectorArgs(
                match_expressions=[
                    core.v1.ScopedResourceSelectorRequirementArgs(
                        operator="In", scope_name="PriorityClass", values=["system-cluster-critical"]
                    )
                ]
            ),
        ),
        opts=parts.options(),
    )


def _scratch() -> "core.v1.VolumeArgs":
    return core.v1.VolumeArgs(name="scratch", empty_dir=core.v1.EmptyDirVolumeSourceArgs())


def _leads(spec: "VolcanoSpec") -> list[str]:
    return ["--leader-elect=true", f"--leader-elect-resource-namespace={spec.namespace}"]


def _scheduler(spec: "VolcanoSpec", config: str) -> Program:
    return Program(
        image=spec.part_image("vc-scheduler"),
        args=[
            "--logtostderr",
            "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
            "--enable-healthz=true",
            "--enable-metrics=true",
            "--cache-dumper=false",
            *_leads(spec),
            "-v=3",
        ],
        ports={"health": _HEALTH, "metrics": _METRICS},
        variables=[core.v1.EnvVarArgs(name="DEBUG_SOCKET_DIR", value=_SCRATCH)],
        readiness=probe("/healthz", "health"),
        liveness=probe("/healthz", "health", delay=15),
        user=_USER,
        critical=True,
        files={
            "/volcano.scheduler": core.v1.VolumeArgs(
                name="config", config_map=core.v1.ConfigMapVolumeSourceArgs(name=config)
            ),
            _SCRATCH: _scratch(),
        },
    )


def _controllers(spec: "VolcanoSpec") -> Program:
    return Program(
        image=spec.part_image("vc-controller-manager"),
        args=["--logtostderr", "--enable-healthz=true", "--enable-metrics=true", *_leads(spec), "-v=3"],
        ports={"health": _HEALTH, "metrics": 8081},
        variables=[
            core.v1.EnvVarArgs(name="KUBE_POD_NAMESPACE", value=spec.namespace),
            core.v1.EnvVarArgs(name="DEBUG_SOCKET_DIR", value=_SCRATCH),
        ],
        readiness=probe("/healthz", "health"),
        liveness=probe("/healthz", "health", delay=15),
        user=_USER,
        critical=True,
        files={_SCRATCH: _scratch()},
    )


def _admission(spec: "VolcanoSpec", secret: str) -> Program:
    from persia_infra.operators.specs import VOLCANO_WEBHOOK_PORT

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
            f"--port={VOLCANO_WEBHOOK_PORT}",
            "-v=3",
        ],
        ports={"webhook": VOLCANO_WEBHOOK_PORT, "health": _HEALTH},
        variables=[core.v1.EnvVarArgs(name="DEBUG_SOCKET_DIR", value=_SCRATCH)],
        # It listens only once it has seen every webhook configuration.
        readiness=core.v1.ProbeArgs(
            tcp_socket=core.v1.TCPSocketActionArgs(port="webhook"), initial_delay_seconds=2, period_seconds=5
        ),
        liveness=probe("/healthz", "health", delay=15, https=True),
        user=_USER,
        critical=True,
        files={
            _CERTIFICATES: core.v1.VolumeArgs(
                name="certificates", secret=core.v1.SecretVolumeSourceArgs(secret_name=secret)
            ),
            _SCRATCH: _scratch(),
        },
    )
