"""One training environment: project, network, cluster, node pools, namespaces and jobs.

What holds between its parts is checked here: every pod has a pool, and fits it.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Self

from pydantic import Field, model_validator

from persia_infra.gke.cluster import ClusterSpec
from persia_infra.gke.network import NetworkSpec
from persia_infra.gke.pools import NodePoolSpec, Placement
from persia_infra.gke.rules import gke_findings
from persia_infra.jobs import AnyJob, Job, PersiaJobSpec, Workload
from persia_infra.jobs.persia.rules import shared_nats_findings
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.pod_security import LEVELS, Level
from persia_infra.operators.rules import operator_findings
from persia_infra.operators.specs import SYSTEM_NAMESPACES, OperatorSpec, OperatorsSpec
from persia_infra.spec.base import DnsLabel, Finding, Spec, matching, refuse
from persia_infra.spec.quantity import format_quantity

_SET_BY_OTHERS = re.compile(r"([a-z0-9.-]+\.)?(kubernetes\.io|k8s\.io|cloud\.google\.com)/")
"""Node labels that Kubernetes and GKE set, whose values depend on the machine."""

_APIS = ("cloudresourcemanager", "compute", "container", "iam")


class EnvironmentSpec(Spec):
    """The whole description of one stack."""

    project: Annotated[
        str,
        matching(
            r"[a-z][a-z0-9-]{4,28}[a-z0-9]",
            "no project id; write the id (6 to 30 lower-case letters, digits and '-'), not the name or number",
        ),
    ]
    region: Annotated[str, matching(r"[a-z]+-[a-z]+[0-9]+", "no Google Cloud region; write one such as us-central1")]
    network: NetworkSpec = NetworkSpec()
    cluster: ClusterSpec
    pools: dict[DnsLabel, NodePoolSpec] = Field(min_length=1)
    namespaces: list[DnsLabel] = Field(default=["training"], min_length=1)
    profiles: dict[DnsLabel, RunSettings] = Field(default={})
    """Settings that administrators decide on; a run that names one gets its values, whatever it asks for itself."""
    operators: OperatorsSpec = OperatorsSpec()
    jobs: dict[DnsLabel, AnyJob] = Field(default={})

    def placements(self, job_name: str) -> dict[str, Placement]:
        """Where each role of a job goes; a role that may run anywhere can be missing."""
        placed = ((load.role, self._pool_of(load)) for load in self.jobs[job_name].workloads())
        return {role: self.pools[pool].placement(pool) for role, pool in placed if pool is not None}

    def operator_pool(self, operator: OperatorSpec) -> str | None:
        """The pool of an operator's pods: the one it names, or the first without GPUs."""
        without_gpus = (name for name, pool in self.pools.items() if not pool.has_gpus)
        return operator.pool or next(without_gpus, None)

    @property
    def webhook_ports(self) -> list[int]:
        """Ports of pods that the control plane has to reach."""
        return sorted({*self.network.webhook_ports, *self.operators.webhook_ports})

    def namespace_of(self, job: Job) -> str:
        """The job's namespace: the one it names, or the only one there is."""
        return job.namespace or self.namespaces[0]

    def zones_of(self, pool: NodePoolSpec) -> list[str]:
        """The zones of a pool's nodes."""
        return pool.zones or self.cluster.zones

    @property
    def required_apis(self) -> list[str]:
        """The Google Cloud APIs to turn on."""
        if not self.cluster.enable_apis:
            return []
        return [f"{api}.googleapis.com" for api in sorted({*_APIS, *self.cluster.further_apis})]

    def notes(self) -> Iterator[Finding]:
        """What in the description has no effect, or another one than elsewhere."""
        for name, job in self.jobs.items():
            for place, message in job.notes():
                yield ("jobs", name, *place), message
        for place, message in self.operators.notes():
            yield ("operators", *place), message
        yield from self._security_notes()

    def pod_security(self, namespace: str) -> Level:
        """The strictest Pod Security level that all jobs of a namespace can live under."""
        needs = [need for job in self._jobs_in(namespace).values() if (need := job.security_need())]
        return max(needs, key=lambda need: LEVELS.index(need[0]), default=(LEVELS[0], ""))[0]

    def _jobs_in(self, namespace: str) -> dict[str, Job]:
        return {name: job for name, job in self.jobs.items() if self.namespace_of(job) == namespace}

    def _security_notes(self) -> Iterator[Finding]:
        for index, namespace in enumerate(self.namespaces):
            level = self.pod_security(namespace)
            for name, job in self._jobs_in(namespace).items():
                need = job.security_need()
                if need and need[0] == level:
                    yield (
                        ("namespaces", index),
                        f"{namespace!r} gets Pod Security {level} rather than {LEVELS[0]}, because of the job {name}: "
                        f"{need[1]}",
                    )

    def _pool_of(self, load: Workload) -> str | None:
        if load.pool is not None:
            return load.pool
        fitting = self._candidates(load)
        return fitting[0] if len(fitting) == 1 else None

    def _candidates(self, load: Workload) -> list[str]:
        wants_gpus = load.resources.gpus > 0
        return [name for name, pool in self.pools.items() if pool.has_gpus == wants_gpus]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for job in self.jobs.values():
            job.use_profiles(self.profiles)
        refuse(
            [
                *gke_findings(self),
                *self._namespace_findings(),
                *self._job_findings(),
                *operator_findings(self),
            ]
        )
        return self

    def _namespace_findings(self) -> Iterator[Finding]:
        for index, namespace in enumerate(self.namespaces):
            if namespace in self.namespaces[:index]:
                yield ("namespaces", index), f"{namespace!r} is given twice; remove one"
            if SYSTEM_NAMESPACES.fullmatch(namespace):
                yield (
                    ("namespaces", index),
                    f"{namespace!r} belongs to Kubernetes or GKE, so this stack must not own it; choose another",
                )

    def _job_findings(self) -> Iterator[Finding]:
        for name, job in self.jobs.items():
            yield from ((("jobs", name, *place), said) for place, said in job.name_findings(name))
            yield from ((("jobs", name, *place), said) for place, said in job.as_written(job.settings_findings()))
            if job.namespace is None and len(self.namespaces) > 1:
                known = ", ".join(self.namespaces)
                yield (
                    ("jobs", name, "namespace"),
                    f"is needed, because the environment has several; write one of {known}",
                )
            elif self.namespace_of(job) not in self.namespaces:
                yield (
                    ("jobs", name, "namespace"),
                    f"{job.namespace!r} is not among the environment's namespaces; add it there or write one of "
                    f"{', '.join(self.namespaces)}",
                )
            for load in job.workloads():
                found = job.as_written(self._load_findings(load))
                yield from ((("jobs", name, *place), said) for place, said in found)

        persia = {
            name: (self.namespace_of(job), job) for name, job in self.jobs.items() if isinstance(job, PersiaJobSpec)
        }
        yield from ((("jobs", *place), said) for place, said in shared_nats_findings(persia))

    def _load_findings(self, load: Workload) -> Iterator[Finding]:
        pool_name = self._pool_of(load)
        place = (*load.place, "pool")
        if pool_name is None:
            if load.anywhere:
                return
            kind = "with GPUs" if load.resources.gpus else "without GPUs"
            candidates = self._candidates(load)
            if candidates:
                yield (
                    place,
                    f"is needed, because several pools {kind} could take it; write one of {', '.join(candidates)}",
                )
            else:
                yield place, f"no pool {kind} is there for it, so its pods would stay Pending; add one to pools"
            return
        if pool_name not in self.pools:
            yield place, f"no pool {pool_name!r} is described; write one of {', '.join(self.pools)}"
            return
        yield from self._fit_findings(load, pool_name)

    def _fit_findings(self, load: Workload, pool_name: str) -> Iterator[Finding]:
        pool = self.pools[pool_name]
        labels = pool.node_labels(pool_name)
        for key, value in load.node_selector.items():
            if not _SET_BY_OTHERS.match(key) and labels.get(key) != value:
                yield (
                    (*load.place, "pool"),
                    f"its pods ask for nodes with the label {key}={value}, which those of pool {pool_name} lack, "
                    f"so they would stay Pending for ever; add it to pools.{pool_name}.labels or drop the selector",
                )
        for resource, wanted in load.resources.effective_requests.items():
            offered = pool.allocatable.get(resource)
            if offered is None or wanted > offered:
                binary = resource in ("memory", "ephemeral-storage")
                have = "none" if offered is None else _shown(offered, binary=binary)
                yield (
                    (*load.place, *load.resources_at),
                    f"asks for {_shown(wanted, binary=binary)} {resource}, but a {pool.machine_type} node of pool "
                    f"{pool_name} gives pods {have}, so it would stay Pending for ever; "
                    "ask for less or choose a larger machineType",
                )
        if load.replicas and pool.max_nodes == 0:
            yield (*load.place, "pool"), f"pool {pool_name} has no nodes (count: 0), so its pods would stay Pending"


def _shown(amount: Decimal, *, binary: bool) -> str:
    if binary and amount >= 2**30:
        return f"{amount / 2**30:.2f}Gi"
    return format_quantity(amount, binary=binary)
