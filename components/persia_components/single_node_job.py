"""A training in one pod, as a Job of Kubernetes itself."""

from typing import TYPE_CHECKING, Any, cast

from pulumi_kubernetes import batch, meta

from persia_components._children import child_options, object_labels
from persia_components._job import JobComponent
from persia_components._run_jobs import in_gang, job_labels, labelled, pod_group, share_claims

if TYPE_CHECKING:
    from persia_infra.jobs import SingleNodeJobSpec


class SingleNodeJob(JobComponent["SingleNodeJobSpec"]):
    """One pod that is started again until it has succeeded.

    Its role is called `training`; `pulumi up` does not wait for it to end.
    """

    _component = "SingleNodeJob"

    def _declare(self, spec: "SingleNodeJobSpec") -> None:
        name, job, namespace = self._name, self._job, self._namespace
        labels = job_labels("training", job)
        needed = share_claims(self, name, spec.shares(job), namespace, labels)
        body = spec.object_spec(job, self._placements)
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
