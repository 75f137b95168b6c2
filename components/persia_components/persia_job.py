"""A PERSIA job: as native workloads, which are placed, restartable and editable, or through the PERSIA operator.

PERSIA's images run as root and write below their own folders, so the roles' pods are confined (no privilege
escalation, no capabilities, the default system call filter) but not forced to another user. NATS and the
metrics gateway are.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_kubernetes import apiextensions, apps, core, meta

from persia_components import _pods
from persia_components._children import child_options, metadata, object_labels, selector_labels
from persia_components._job import JobComponent
from persia_components._persia_launch import (
    GATEWAY_PORT,
    LAUNCHES,
    ConfigFiles,
    Launch,
    environment,
    files_of,
    gateway_service,
)
from persia_components._persia_object import persia_job_object
from persia_components._run_jobs import GROUP_ANNOTATION, pod_group, share_claims
from persia_components.nats import NatsCluster

if TYPE_CHECKING:
    from persia_infra.jobs.persia.roles import NnWorker, Role
    from persia_infra.jobs.persia.settings import SettledRole
    from persia_infra.jobs.persia.spec import PersiaJobSpec

_GATEWAY_IMAGE = "prom/pushgateway:v1.11.0"
_NOBODY = 65534
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_BUCKET_DRIVER = "gcsfuse.csi.storage.gke.io"


class PersiaJob(JobComponent["PersiaJobSpec"]):
    """Each role a StatefulSet with its headless Service, and a NATS cluster and metrics gateway of their own.

    With `mode: operator` the roles are one PersiaJob object instead, and the metrics gateway is the operator's.
    """

    _component = "PersiaJob"

    nats_url: pulumi.Output[str]

    def _declare(self, spec: "PersiaJobSpec") -> None:
        name, namespace = self._name, self._namespace
        needed: list[pulumi.Resource] = []
        nats_url: pulumi.Input[str] | None = None
        if nats := spec.own_nats:
            servers = NatsCluster(
                f"{name}-nats",
                nats,
                namespace=namespace,
                object_name=f"{self._job}-nats",
                placement=self._placements.get("nats"),
                client_labels=self._shared_label,
                opts=child_options(self),
            )
            needed.append(servers)
            nats_url = servers.url
        variable = spec.given_nats_url
        self.nats_url = pulumi.Output.from_input(nats_url or (variable and variable.value) or "")
        if variable is not None:
            nats_url = None
        files = self._config_maps()
        if spec.mode == "operator":
            persia_job_object(
                self,
                name,
                spec,
                job=self._job,
                namespace=namespace,
                labels=self._labels("job"),
                nats_url=nats_url,
                depends_on=[*needed, *files.values()],
            )
        else:
            if spec.enable_metrics:
                self._metrics_gateway()
            if spec.needs_volcano:
                needed.append(self._gang())
            needed += share_claims(self, name, spec.shares(self._job), namespace, self._labels("share"))
            for key in spec.roles:
                own = [made for base, made in files.items() if base in {one.base_name for one in self._files(key)}]
                self._role(key, spec.settled(key, self._job), nats_url, [*needed, *own])
        self._network_policy()
        self.register_outputs({"natsUrl": self.nats_url})

    @property
    def _shared_label(self) -> dict[str, str]:
        """What all pods of the job have, in both modes; the operator gives its pods nothing else."""
        return {"persia_job": self._job}

    def _labels(self, component: str) -> dict[str, str]:
        return {**object_labels("persia", self._job, component), **self._shared_label}

    def _selector(self, component: str) -> dict[str, str]:
        return selector_labels("persia", self._job, component)

    def _files(self, key: str) -> list[ConfigFiles]:
        return files_of(self._job, self._spec, key)

    def _config_maps(self) -> "dict[str, core.v1.ConfigMap]":
        """One for PERSIA's configuration and one for each script, so that a change rolls only who reads it."""
        described = {files.base_name: files for key in self._spec.roles for files in self._files(key)}
        return {
            base: _pods.config_map(
                self,
                f"{self._name}{base.removeprefix(self._job)}",
                base,
                self._namespace,
                labels=self._labels("config"),
                files=files.files,
            )
            for base, files in described.items()
        }

    def _network_policy(self) -> None:
        """Only the job's own pods talk to each other; whoever collects metrics reaches the gateway."""
        ingress = [_pods.from_pods(self._shared_label)]
        if self._spec.enable_metrics:
            ingress.append(_pods.from_everywhere([GATEWAY_PORT]))
        _pods.network_policy(
            self,
            f"{self._name}-network",
            self._job,
            self._namespace,
            labels=self._labels("network"),
            selector=self._shared_label,
            ingress=ingress,
        )

    def _gang(self) -> "apiextensions.CustomResource":
        """The roles' pods start together or not at all; NATS and the metrics gateway are there before them."""
        return pod_group(
            self,
            self._name,
            self._job,
            self._namespace,
            labels=self._labels("gang"),
            members=sum(role.replicas for role in self._spec.roles.values()),
            queue=self._spec.queue,
        )

    @property
    def _gang_annotations(self) -> dict[str, str]:
        return {GROUP_ANNOTATION: self._job} if self._spec.needs_volcano else {}

    def _role(
        self,
        key: str,
        settled: "SettledRole",
        nats_url: pulumi.Input[str] | None,
        needed: list[pulumi.Resource],
    ) -> None:
        launch, role = LAUNCHES[key], settled.role
        logical, called = f"{self._name}-{launch.suffix}", f"{self._job}-{launch.suffix}"
        labels, selector = self._labels(launch.suffix), self._selector(launch.suffix)
        ports = {"persia": launch.port} if launch.port else {}
        service = _pods.headless_service(
            self, logical, called, self._namespace, labels=labels, selector=selector, ports=ports
        )
        _pods.stateful_set(
            self,
            logical,
            called,
            self._namespace,
            service_name=called,
            replicas=role.replicas,
            labels=labels,
            selector=selector,
            annotations={**_annotations(settled), **self._gang_annotations} or None,
            pod=self._pod(key, settled, launch, nats_url, ports),
            depends_on=[*needed, service],
        )
        _pods.disruption_budget(self, logical, called, self._namespace, labels=labels, selector=selector)

    def _pod(
        self,
        key: str,
        settled: "SettledRole",
        launch: Launch,
        nats_url: pulumi.Input[str] | None,
        ports: Mapping[str, int],
    ) -> "core.v1.PodSpecArgs":
        spec, role = self._spec, settled.role
        placement = self._placements.get(key)
        volumes, mounts = _pods.volumes(settled.volumes), _pods.mounts(role.volume_mounts)
        for files in self._files(key):
            source = core.v1.ConfigMapVolumeSourceArgs(name=files.object_name)
            volumes.append(core.v1.VolumeArgs(name=files.volume, config_map=source))
            mounts.append(core.v1.VolumeMountArgs(name=files.volume, mount_path=files.folder, read_only=True))
        if key == "nnWorker" and spec.nn_worker and not role.mounts_shared_memory:
            volumes.append(_shared_memory(spec.SHARED_MEMORY_VOLUME, spec.nn_worker))
            mounts.append(core.v1.VolumeMountArgs(name=spec.SHARED_MEMORY_VOLUME, mount_path=_SHARED_MEMORY))
        affinity = role.affinity.model_dump(by_alias=True, exclude_none=True) if role.affinity else None
        return core.v1.PodSpecArgs(
            automount_service_account_token=role.service_account_name is not None,
            service_account_name=role.service_account_name,
            priority_class_name=role.priority_class_name,
            scheduler_name="volcano" if spec.needs_volcano else None,
            security_context=_security(role),  # type: ignore[arg-type]
            node_selector=_pods.node_selector(placement, role.node_selector),
            tolerations=_pods.tolerations(placement, role.tolerations),
            affinity=affinity,  # type: ignore[arg-type]
            containers=[
                core.v1.ContainerArgs(
                    name=launch.container,
                    image=role.image or launch.image,
                    image_pull_policy=spec.image_pull_policy,
                    command=["persia-launcher"],
                    args=list(launch.args),
                    env=environment(self._job, spec, key, role, nats_url),
                    env_from=_pods.variable_sources(settled.variable_sources),
                    ports=_pods.container_ports(ports),
                    resources=_pods.resources(role.resources),
                    security_context=_pods.confined(),
                    readiness_probe=core.v1.ProbeArgs(
                        tcp_socket=core.v1.TCPSocketActionArgs(port="persia"), period_seconds=10
                    )
                    if launch.probed
                    else None,
                    volume_mounts=mounts or None,
                )
            ],
            volumes=volumes or None,
        )

    def _metrics_gateway(self) -> None:
        component = "metrics-gateway"
        labels, selector = self._labels(component), self._selector(component)
        placement = self._placements.get("metricsGateway")
        load = next(load for load in self._spec.workloads() if load.role == "metricsGateway")
        deployment = apps.v1.Deployment(
            f"{self._name}-{component}",
            metadata=metadata(f"{self._job}-{component}", self._namespace, labels),
            spec=apps.v1.DeploymentSpecArgs(
                replicas=1,
                selector=meta.v1.LabelSelectorArgs(match_labels=selector),
                template=core.v1.PodTemplateSpecArgs(
                    metadata=meta.v1.ObjectMetaArgs(labels=labels),
                    spec=core.v1.PodSpecArgs(
                        automount_service_account_token=False,
                        security_context=_pods.pod_security(user=_NOBODY),
                        node_selector=placement.node_selector if placement else None,
                        tolerations=_pods.tolerations(placement),
                        containers=[
                            core.v1.ContainerArgs(
                                name="pushgateway",
                                image=_GATEWAY_IMAGE,
                                ports=_pods.container_ports({"http": GATEWAY_PORT}),
                                resources=_pods.resources(load.resources),
                                security_context=_pods.confined(read_only_root=True),
                                readiness_probe=core.v1.ProbeArgs(
                                    http_get=core.v1.HTTPGetActionArgs(path="/-/ready", port="http")
                                ),
                            )
                        ],
                    ),
                ),
            ),
            opts=child_options(self),
        )
        core.v1.Service(
            f"{self._name}-{component}",
            metadata=metadata(gateway_service(self._job), self._namespace, labels),
            spec=core.v1.ServiceSpecArgs(selector=selector, ports=_pods.service_ports({"http": GATEWAY_PORT})),
            opts=child_options(self, depends_on=[deployment]),
        )


def _shared_memory(volume: str, worker: "NnWorker") -> "core.v1.VolumeArgs":
    """Room for PyTorch's worker processes; the container runtime gives 64 MiB only."""
    return core.v1.VolumeArgs(
        name=volume,
        empty_dir=core.v1.EmptyDirVolumeSourceArgs(medium="Memory", size_limit=worker.shared_memory),
    )


def _annotations(settled: "SettledRole") -> dict[str, str]:
    """What makes GKE put the sidecar into the pod that mounts buckets."""
    buckets = {volume.name for volume in settled.volumes if volume.csi and volume.csi.driver == _BUCKET_DRIVER}
    return {"gke-gcsfuse/volumes": "true"} if buckets & {mount.name for mount in settled.role.volume_mounts} else {}


def _security(role: "Role") -> dict[str, Any]:
    """What was described, and the default system call filter unless it says otherwise."""
    described = role.security_context.model_dump(by_alias=True, exclude_none=True) if role.security_context else {}
    return {"seccompProfile": {"type": "RuntimeDefault"}, **described}
