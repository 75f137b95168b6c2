"""NATS servers as a StatefulSet, or as the object that the NATS operator acts on, from the same description."""

from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_kubernetes import apiextensions, core, meta

from persia_components import _pods
from persia_components._children import child_options, metadata, object_labels, selector_labels, token
from persia_components._nats_conf import (
    AUTH_FOLDER,
    CLIENT,
    CLUSTER,
    MONITOR,
    PID_FILE,
    STORE_FOLDER,
    TLS_FOLDERS,
    nats_conf,
)

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement
    from persia_infra.nats.spec import NatsSpec

_USER = 1000
_STORE_VOLUME = "store"


class NatsCluster(pulumi.ComponentResource):
    """A full mesh of NATS servers behind one client Service, reachable inside the Kubernetes cluster only."""

    url: pulumi.Output[str]
    """What clients in the same namespace connect to."""

    def __init__(
        self,
        name: str,
        spec: "NatsSpec",
        *,
        namespace: pulumi.Input[str],
        object_name: str | None = None,
        placement: "Placement | None" = None,
        client_labels: dict[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declares the servers.

        Args:
            name: Of the component, and the beginning of its children's logical names.
            spec: The description.
            namespace: Where its objects are.
            object_name: Of the client Service, and the beginning of the other objects' names; `name` when absent.
            placement: The pool of the servers; anywhere when absent.
            client_labels: Of the pods that may connect; all pods of the namespace when absent.
            opts: Of the component.
        """
        super().__init__(token("NatsCluster"), name, None, opts)
        called = object_name or name
        if spec.mode == "operator":
            labels, selector = object_labels("nats", called, "nats"), {"app": "nats", "nats_cluster": called}
            self.url = self._operator_object(name, spec, called, namespace, labels, selector, placement)
        else:
            labels, selector = object_labels("nats", called, "nats"), selector_labels("nats", called, "nats")
            self.url = self._native(name, spec, called, namespace, labels, selector, placement)
        _pods.network_policy(
            self,
            f"{name}-network",
            called,
            namespace,
            labels=labels,
            selector=selector,
            ingress=[
                _pods.from_pods(client_labels, [CLIENT]),
                _pods.from_pods(selector, [CLIENT, CLUSTER]),
                _pods.from_everywhere([MONITOR]),
            ],
        )
        self.register_outputs({"url": self.url})

    def _operator_object(
        self,
        name: str,
        spec: "NatsSpec",
        called: str,
        namespace: pulumi.Input[str],
        labels: dict[str, str],
        selector: dict[str, str],
        placement: "Placement | None",
    ) -> pulumi.Output[str]:
        made = apiextensions.CustomResource(
            name,
            api_version="nats.io/v1alpha2",
            kind="NatsCluster",
            metadata=metadata(called, namespace, labels),
            spec=_object_spec(spec, selector, placement),
            opts=child_options(self),
        )
        # The name is known beforehand; through the object it is also something to wait for.
        return made.urn.apply(lambda _: f"nats://{called}:{CLIENT}")

    def _native(
        self,
        name: str,
        spec: "NatsSpec",
        called: str,
        namespace: pulumi.Input[str],
        labels: dict[str, str],
        selector: dict[str, str],
        placement: "Placement | None",
    ) -> pulumi.Output[str]:
        headless = f"{called}-headless"
        files = {"nats.conf": nats_conf(spec, called, headless)}
        config = _pods.config_map(self, f"{name}-config", f"{called}-config", namespace, labels=labels, files=files)
        peers = _pods.headless_service(
            self,
            f"{name}-headless",
            headless,
            namespace,
            labels=labels,
            selector=selector,
            ports={"client": CLIENT, "cluster": CLUSTER, "monitor": MONITOR},
        )
        service = core.v1.Service(
            name,
            metadata=metadata(called, namespace, labels),
            spec=core.v1.ServiceSpecArgs(selector=selector, ports=_pods.service_ports({"client": CLIENT})),
            # A Service waits for ready pods, which the StatefulSet makes.
            opts=child_options(
                self,
                depends_on=[
                    _pods.stateful_set(
                        self,
                        f"{name}-servers",
                        called,
                        namespace,
                        service_name=headless,
                        replicas=spec.size,
                        labels={**spec.pod.labels, **labels},
                        selector=selector,
                        annotations=spec.pod.annotations,
                        pod=_pod(spec, _pods.hashed_name(f"{called}-config", files), selector, placement),
                        claims=_claims(spec),
                        depends_on=[config, peers],
                    )
                ],
            ),
        )
        _pods.disruption_budget(self, f"{name}-budget", called, namespace, labels=labels, selector=selector)
        return service.metadata.name.apply(lambda host: f"nats://{host}:{CLIENT}")


def _object_spec(spec: "NatsSpec", selector: dict[str, str], placement: "Placement | None") -> dict[str, Any]:
    """The `spec` of the NatsCluster that the NATS operator reads, with everything where it takes effect."""
    found = spec.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    found |= {"size": spec.size, "version": spec.server_version}
    found["natsConfig"] = {**found.get("natsConfig", {}), "maxPayload": spec.nats_config.max_payload}
    pod = {
        **found.get("pod", {}),
        "resources": spec.server_resources.model_dump(by_alias=True, exclude_defaults=True),
        "antiAffinity": spec.pod.anti_affinity,
    }
    if nodes := _pods.node_selector(placement, spec.pod.node_selector):
        pod["nodeSelector"] = nodes
    if placement and placement.taints:
        own = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in placement.taints]
        pod["tolerations"] = [*own, *pod.get("tolerations", [])]
    return {**found, "pod": pod, "template": {"spec": _operator_pod(selector)}}


def _operator_pod(selector: dict[str, str]) -> "core.v1.PodSpecArgs":
    """What the operator's own words can't say: the servers are confined and spread as the native ones are."""
    return core.v1.PodSpecArgs(
        automount_service_account_token=False,
        security_context=_pods.pod_security(user=_USER),
        topology_spread_constraints=_pods.spread(selector),
        containers=[core.v1.ContainerArgs(name="nats", security_context=_pods.confined(read_only_root=True))],
    )


def _claims(spec: "NatsSpec") -> "list[core.v1.PersistentVolumeClaimArgs] | None":
    if spec.jetstream is None:
        return None
    return [
        core.v1.PersistentVolumeClaimArgs(
            metadata=meta.v1.ObjectMetaArgs(name=_STORE_VOLUME),
            spec=core.v1.PersistentVolumeClaimSpecArgs(
                access_modes=["ReadWriteOnce"],
                storage_class_name=spec.jetstream.storage_class_name,
                resources=core.v1.VolumeResourceRequirementsArgs(requests={"storage": spec.jetstream.storage}),
            ),
        )
    ]


def _pod(
    spec: "NatsSpec", config_name: str, selector: dict[str, str], placement: "Placement | None"
) -> "core.v1.PodSpecArgs":
    secrets = _secrets(spec)
    mounts = [
        core.v1.VolumeMountArgs(name="config", mount_path="/etc/nats", read_only=True),
        core.v1.VolumeMountArgs(name="pid", mount_path="/var/run/nats"),
        *(core.v1.VolumeMountArgs(name=name, mount_path=path, read_only=True) for name, (path, _) in secrets.items()),
        *([core.v1.VolumeMountArgs(name=_STORE_VOLUME, mount_path=STORE_FOLDER)] if spec.jetstream else []),
    ]
    # Images other than Alpine's have nothing but the server, at the root.
    program = "nats-server" if "alpine" in spec.server_version else "/nats-server"
    return core.v1.PodSpecArgs(
        automount_service_account_token=False,
        security_context=_pods.pod_security(user=_USER),
        node_selector=_pods.node_selector(placement, spec.pod.node_selector),
        tolerations=_pods.tolerations(placement, spec.pod.tolerations),
        affinity=_apart(selector) if spec.pod.anti_affinity else None,
        topology_spread_constraints=_pods.spread(selector),
        # Longer than the lame duck's ten and thirty seconds, so clients have moved when the server goes.
        termination_grace_period_seconds=60,
        containers=[
            core.v1.ContainerArgs(
                name="nats",
                image=f"{spec.server_image}:{spec.server_version}",
                command=[program],
                args=["--config", "/etc/nats/nats.conf", "--name", "$(POD_NAME)"],
                env=[_pods.field_variable("POD_NAME", "metadata.name")],
                ports=_pods.container_ports({"client": CLIENT, "cluster": CLUSTER, "monitor": MONITOR}),
                resources=_pods.resources(spec.server_resources),
                security_context=_pods.confined(read_only_root=True),
                startup_probe=_health("/healthz", period=2, failures=150),
                readiness_probe=_health("/healthz?js-server-only=true", period=10, failures=3),
                liveness_probe=_health("/healthz?js-enabled-only=true", period=30, failures=3),
                lifecycle=core.v1.LifecycleArgs(
                    pre_stop=core.v1.LifecycleHandlerArgs(
                        exec_=core.v1.ExecActionArgs(command=[program, f"-sl=ldm={PID_FILE}"])
                    )
                ),
                volume_mounts=mounts,
            )
        ],
        volumes=[
            core.v1.VolumeArgs(name="config", config_map=core.v1.ConfigMapVolumeSourceArgs(name=config_name)),
            core.v1.VolumeArgs(name="pid", empty_dir=core.v1.EmptyDirVolumeSourceArgs()),
            *(
                core.v1.VolumeArgs(name=name, secret=core.v1.SecretVolumeSourceArgs(secret_name=secret))
                for name, (_, secret) in secrets.items()
            ),
        ],
    )


def _secrets(spec: "NatsSpec") -> dict[str, tuple[str, str]]:
    """Volumes that come from Secrets: where each is mounted, and the Secret's name."""
    found = {}
    if spec.tls and spec.tls.server_secret:
        found["server-tls"] = (TLS_FOLDERS["server"], spec.tls.server_secret)
    if spec.tls and spec.tls.routes_secret:
        found["routes-tls"] = (TLS_FOLDERS["routes"], spec.tls.routes_secret)
    if spec.auth:
        found["clients-auth"] = (AUTH_FOLDER, spec.auth.clients_auth_secret)
    return found


def _apart(selector: dict[str, str]) -> "core.v1.AffinityArgs":
    return core.v1.AffinityArgs(
        pod_anti_affinity=core.v1.PodAntiAffinityArgs(
            required_during_scheduling_ignored_during_execution=[
                core.v1.PodAffinityTermArgs(
                    topology_key="kubernetes.io/hostname",
                    label_selector=meta.v1.LabelSelectorArgs(match_labels=selector),
                )
            ]
        )
    )


def _health(path: str, *, period: int, failures: int) -> "core.v1.ProbeArgs":
    return core.v1.ProbeArgs(
        http_get=core.v1.HTTPGetActionArgs(path=path, port="monitor"),
        period_seconds=period,
        timeout_seconds=5,
        failure_threshold=failures,
    )
