"""A training in one pod, as a Job of Kubernetes itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import pulumi
from pulumi_kubernetes import batch, meta

from persia_components._children import child_options, object_labels, token
from persia_components._run_jobs import in_gang, job_labels, labelled, pod_group, share_claims

if TYPE_CHECKING:
    from persia_infra.jobs import SingleNodeJobSpec
    from persia_infra.pools import Placement


class SingleNodeJob(pulumi.ComponentResource):
    """One pod that is started again until it has succeeded.

    `pulumi up` does not wait for the training to end.
    """

    def __init__(
        self,
        name: str,
        spec: "SingleNodeJobSpec",
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
            placements: The pool of its pod, under the role `training`.
            opts: Of the component.
        """
        super().__init__(token("SingleNodeJob"), name, None, opts)
        job = object_name or name
        labels = job_labels("training", job)
        needed = share_claims(self, name, spec.shares(job), namespace, labels)
        body = spec.object_spec(job, placements or {})
        if spec.needs_volcano:
            needed.append(pod_group(self, name, job, namespace, labels=labels, members=1, queue=spec.queue))
            body["template"] = in_gang(body["template"], job)
        body["template"] = labelled(body["template"], object_labels("training", job, "training"))
        batch.v1.Job(
            name,
            metadata=meta.v1.ObjectMetaArgs(
                name=job,
                namespace=namespace,
                labels=labels,
                # Otherwise an update of the stack would take as long as the training.
                annotations={"pulumi.com/skipAwait": "true"},
            ),
            spec=cast("Any", body),
            opts=child_options(self, depends_on=needed),
        )
        self.register_outputs({})
