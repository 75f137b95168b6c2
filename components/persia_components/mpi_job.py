"""An MPIJob for the MPI operator, with its pods placed and its shares claimed."""

from typing import TYPE_CHECKING

from pulumi_kubernetes import apiextensions

from persia_components._children import child_options, metadata, object_labels
from persia_components._job import JobComponent
from persia_components._run_jobs import job_labels, labelled, share_claims

if TYPE_CHECKING:
    from persia_infra.jobs import MPIJobSpec


class MpiJob(JobComponent["MPIJobSpec"]):
    """The object that the operator turns into a launcher, workers, and the keys between them.

    `pulumi up` does not wait for the training to end.
    """

    _component = "MpiJob"

    def _declare(self, spec: "MPIJobSpec") -> None:
        name, job, namespace = self._name, self._job, self._namespace
        labels = job_labels("mpi", job)
        needed = share_claims(self, name, spec.shares(job), namespace, labels)
        body = spec.object_spec(job, self._placements)
        for role in spec.run_roles():
            described = body["mpiReplicaSpecs"][role.place[-1]]
            described["template"] = labelled(described["template"], object_labels("mpi", job, role.name))
        apiextensions.CustomResource(
            name,
            api_version="kubeflow.org/v2beta1",
            kind="MPIJob",
            metadata=metadata(job, namespace, labels),
            spec=body,
            opts=child_options(self, depends_on=needed),
        )
        self.register_outputs({})
