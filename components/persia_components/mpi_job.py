"""An MPIJob for the MPI operator, with its pods placed and its shares claimed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes import apiextensions

from persia_components._children import child_options, metadata, object_labels, token
from persia_components._run_jobs import job_labels, labelled, share_claims

if TYPE_CHECKING:
    from persia_infra.jobs import MPIJobSpec
    from persia_infra.pools import Placement


class MpiJob(pulumi.ComponentResource):
    """The object that the operator turns into a launcher, workers, and the keys between them.

    `pulumi up` does not wait for the training to end.
    """

    def __init__(
        self,
        name: str,
        spec: "MPIJobSpec",
        *,
        namespace: pulumi.Input[str],
        object_name: str | None = None,
        placements: "Mapping[str, Placement] | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declares the job.

        Args:
            name: Of the component, and the beginning of its children's logical names.
            spec: The description.
            namespace: Where its objects are.
            object_name: The job's name in Kubernetes; `name` when absent.
            placements: The pool of each role; a role that is missing goes wherever its pods may.
            opts: Of the component.
        """
        super().__init__(token("MpiJob"), name, None, opts)
        job = object_name or name
        labels = job_labels("mpi", job)
        needed = share_claims(self, name, spec.shares(job), namespace, labels)
        body = spec.object_spec(job, placements or {})
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
