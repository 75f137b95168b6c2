"""One training environment: project, network, cluster, node pools, namespaces, operators and jobs.

The checks across these parts are here: for example, every pod has a pool and fits on its nodes.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from persia_infra.gke.cluster import ClusterSpec
from persia_infra.gke.fit import misfits
from persia_infra.gke.network import NetworkSpec
from persia_infra.gke.pools import NodePoolSpec
from persia_infra.gke.rules import gke_findings
from persia_infra.jobs import JOB_KINDS, AnyJob, Job, Workload
from persia_infra.jobs.job import DeployedJob
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.placement import Placement
from persia_infra.kube.pod_security import LEVELS, Level
from persia_infra.kube.requests import Amounts
from persia_infra.operators import OperatorSpec, OperatorsSpec, operators_model
from persia_infra.operators.operator import SYSTEM_NAMESPACES
from persia_infra.operators.rules import operator_findings
from persia_infra.spec.base import DnsLabel, Finding, Spec, matching, refuse

_SET_BY_OTHERS = re.compile(r"([a-z0-9.-]+\.)?(kubernetes\.io|k8s\.io|cloud\.google\.com)/")
"""Node labels that Kubernetes and GKE set, whose values depend on the machine."""

_APIS = ("cloudresourcemanager", "compute", "container", "iam")
if TYPE_CHECKING:
    _Operators = OperatorsSpec
else:
    # The model has one key for each operator in the list, which a type checker cannot see.
    _Operators = operators_model()


class EnvironmentSpec(Spec):
    """The description of one training environment, which is one stack."""

    project: Annotated[
        str,
        matching(
            r"[a-z][a-z0-9-]{4,28}[a-z0-9]",
            "project id; write the id (6 to 30 lower-case letters, digits and '-'), not the name or number",
        ),
    ]
    """The id of the Google Cloud project."""
    region: Annotated[str, matching(r"[a-z]+-[a-z]+[0-9]+", "Google Cloud region; write one such as us-central1")]
    """The Google Cloud region of the cluster, such as us-central1."""
    network: NetworkSpec = NetworkSpec.defaults()
    """The VPC network: address ranges of a new one, or an existing one."""
    cluster: ClusterSpec
    """The GKE cluster."""
    pools: dict[DnsLabel, NodePoolSpec] = Field(min_length=1)
    """The node pools, by name."""
    namespaces: list[DnsLabel] = Field(default=["training"], min_length=1)
    """The namespaces that the stack creates for jobs; `training` by default."""
    profiles: dict[DnsLabel, RunSettings] = Field(default={})
    """Run settings that administrators define, by name; they take precedence over the settings of a run."""
    operators: _Operators = _Operators.defaults()
    """The operators to install; none by default."""
    jobs: dict[DnsLabel, AnyJob] = Field(default={})
    """The training jobs, by name."""

    def placements(self, job_name: str) -> dict[str, Placement]:
        """The pool of each role of a job; roles that may run on any node can be missing."""
        pools = ((load.role, self._pool_of(load)) for load in self.jobs[job_name].workloads(job_name))
        return {role: self.pools[pool].placement(pool) for role, pool in pools if pool is not None}

    def job_objects(self, job_name: str) -> ObjectGroup:
        """The Kubernetes objects of a job."""
        job = self.jobs[job_name]
        return job.objects(job_name, self.namespace_of(job), self.placements(job_name))

    def operator_pool(self, operator: OperatorSpec) -> str | None:
        """The pool of an operator's pods: the one it names, or the first without GPUs."""
        without_gpus = (name for name, pool in self.pools.items() if not pool.has_gpus)
        return operator.pool or next(without_gpus, None)

    def operator_objects(self, operator: OperatorSpec) -> ObjectGroup:
        """The Kubernetes objects of an operator."""
        pool = self.operator_pool(operator)
        placement = self.pools[pool].placement(pool) if pool else None
        return operator.objects(volcano_installed=self.operators.volcano_installed, placement=placement)

    def misfits(self, pool_name: str, requests: Amounts) -> Iterator[str]:
        """What a pod asks for beyond what a node of the pool offers, as one message per resource."""
        return misfits(self.pools[pool_name], pool_name, requests)

    @property
    def webhook_ports(self) -> list[int]:
        """The ports of pods that the control plane has to reach."""
        return sorted({*self.network.webhook_ports, *self.operators.webhook_ports})

    def namespace_of(self, job: Job) -> str:
        """The job's namespace: the one it names, or the environment's only one."""
        return job.namespace or self.namespaces[0]

    def zones_of(self, pool: NodePoolSpec) -> list[str]:
        """The zones of a pool's nodes."""
        return pool.zones or self.cluster.zones

    @property
    def required_apis(self) -> list[str]:
        """The Google Cloud APIs to enable."""
        if not self.cluster.enable_apis:
            return []
        return [f"{api}.googleapis.com" for api in sorted({*_APIS, *self.cluster.further_apis})]

    def deployed_jobs(self) -> list[DeployedJob]:
        """The jobs as they are expected in the cluster."""
        volcano = self.operators.volcano_installed
        return [DeployedJob(name, self.namespace_of(job), job, volcano) for name, job in self.jobs.items()]

    def notes(self) -> Iterator[Finding]:
        """Notes on fields that have no effect, or an effect that a reader may not expect."""
        for name, job in self.jobs.items():
            for place, message in job.notes():
                yield ("jobs", name, *place), message
        for place, message in self.operators.notes():
            yield ("operators", *place), message
        yield from self._security_notes()

    def pod_security(self, namespace: str) -> Level:
        """The strictest Pod Security level that allows all jobs of a namespace."""
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
                        f"{namespace!r} gets the Pod Security level {level} instead of {LEVELS[0]} because of the job "
                        f"{name}: "
                        f"{need[1]}",
                    )

    def _pool_of(self, load: Workload) -> str | None:
        if load.pool is not None:
            return load.pool
        candidates = self._candidates(load)
        return candidates[0] if len(candidates) == 1 else None

    def _candidates(self, load: Workload) -> list[str]:
        wants_gpus = load.gpus > 0
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
                    f"{namespace!r} belongs to Kubernetes or GKE, so a stack must not own it; choose another name",
                )

    def _job_findings(self) -> Iterator[Finding]:
        for name, job in self.jobs.items():
            for place, message in self._findings_of_job(name, job):
                yield ("jobs", name, *place), message
        for kind in JOB_KINDS:
            of_kind = {name: (self.namespace_of(job), job) for name, job in self.jobs.items() if isinstance(job, kind)}
            yield from ((("jobs", *place), message) for place, message in kind.findings_between(of_kind))

    def _findings_of_job(self, name: str, job: Job) -> Iterator[Finding]:
        yield from job.name_findings(name)
        yield from job.as_written([*job.settings_findings(), *job.unknown_profiles()])
        if job.namespace is None and len(set(self.namespaces)) > 1:
            known = ", ".join(self.namespaces)
            yield ("namespace",), f"is required, because the environment has several namespaces; write one of {known}"
        elif self.namespace_of(job) not in self.namespaces:
            yield (
                ("namespace",),
                f"{job.namespace!r} is not among the environment's namespaces; add it there or write one of "
                f"{', '.join(self.namespaces)}",
            )
        for load in job.workloads(name):
            yield from job.as_written(self._load_findings(load))

    def _load_findings(self, load: Workload) -> Iterator[Finding]:
        pool_name = self._pool_of(load)
        place = (*load.place, "pool")
        if pool_name is None:
            if load.anywhere:
                return
            kind = "with GPUs" if load.gpus else "without GPUs"
            candidates = self._candidates(load)
            if candidates:
                yield (
                    place,
                    f"is required, because there are several pools {kind}; write one of {', '.join(candidates)}",
                )
            else:
                yield place, f"there is no pool {kind}, so its pods would stay Pending; add one to pools"
            return
        if pool_name not in self.pools:
            yield place, f"there is no pool {pool_name!r}; write one of {', '.join(self.pools)}"
            return
        yield from self._fit_findings(load, pool_name)

    def _fit_findings(self, load: Workload, pool_name: str) -> Iterator[Finding]:
        pool = self.pools[pool_name]
        labels = pool.node_labels(pool_name)
        for key, value in load.template.spec.node_selector.items():
            if not _SET_BY_OTHERS.match(key) and labels.get(key) != value:
                yield (
                    (*load.place, "pool"),
                    f"its pods require the node label {key}={value}, which the nodes of pool {pool_name} lack, "
                    f"so they would stay Pending forever; add it to pools.{pool_name}.labels or remove the selector",
                )
        for message in self.misfits(pool_name, load.requests):
            yield (*load.place, *load.resources_at), message
        if load.replicas and pool.max_nodes == 0:
            yield (
                (*load.place, "pool"),
                f"pool {pool_name} has no nodes (count: 0), so its pods would stay Pending; raise the count",
            )
