"""A PaddleJob for the Paddle operator, with its pods placed and its shares claimed."""

from typing import TYPE_CHECKING

from pulumi_kubernetes import apiextensions

from persia_components._children import child_options, metadata, object_labels
from persia_components._job import JobComponent
from persia_components._run_jobs import job_labels, labelled, share_claims

if TYPE_CHECKING:
    from persia_infra.jobs import PaddleJobSpec


class PaddleJob(JobComponent["PaddleJobSpec"]):
    """The object that the operator turns into parameter servers and workers.

    The operator puts a finalizer on it, so it must go while the operator still runs; `pulumi up` does not wait
    for the training to end.
    """

    _component = "PaddleJob"

    def _declare(self, spec: "PaddleJobSpec") -> None:
        name, job, namespace = self._name, self._job, self._namespace
        labels = job_labels("paddle", job)
        needed = share_claims(self, name, spec.shares(job), namespace, labels)
        body = spec.object_spec(job, self._placements)
        for role in spec.run_roles():
            pods = body[role.name]
            pods["template"] = labelled(pods["template"], object_labels("paddle", job, role.name))
        described = metadata(job, namespace, labels)
        # Deleted in the foreground, its pods would go first, and its operator would make them again and again.
        described.annotations = {"pulumi.com/deletionPropagationPolicy": "background"}
        apiextensions.CustomResource(
            name,
            api_version="batch.paddlepaddle.org/v1",
            kind="PaddleJob",
            metadata=described,
            spec=body,
            opts=child_options(self, depends_on=needed),
        )
        self.register_outputs({})
