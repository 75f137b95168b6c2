"""Training jobs of every kind."""

import pulumi

from persia_components._objects import ObjectsComponent, namespace_value
from persia_infra.jobs import Job as JobSpec
from persia_infra.jobs.job import Placements


class Job(ObjectsComponent):
    """A training job of any kind, with everything that it needs: Services, claims, NATS and its gang.

    `pulumi up` does not wait for the training to end.
    """

    def __init__(
        self,
        name: str,
        spec: JobSpec,
        *,
        namespace: pulumi.Input[str],
        object_name: str | None = None,
        placements: Placements | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declares the job.

        Args:
            name: The component's name, which the logical names of its children start with.
            spec: The job: a PersiaJobSpec, MPIJobSpec, PaddleJobSpec, SingleNodeJobSpec or TrainingJobSpec.
            namespace: The namespace of its objects.
            object_name: The job's name in Kubernetes; `name` when absent.
            placements: The pool of each role; a role without an entry may run on any node.
            opts: Options of the component.
        """
        text, values = namespace_value(namespace)
        super().__init__(name, spec.objects(object_name or name, text, placements or {}), values=values, opts=opts)
