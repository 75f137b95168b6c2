"""Reads Volcano PodGroups that are in the same file as jobs.

No operator links the two by itself, so the job with the group's name is declared as a gang, in the group's queue.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, ValidationError

from persia_infra.jobs import JOB_KINDS
from persia_infra.manifests.metadata import ObjectMetadata
from persia_infra.operators.volcano.kinds import PodGroupSpec
from persia_infra.spec.base import Finding, Place, Spec
from persia_infra.spec.errors import document_place, findings_from

KIND = "PodGroup"


class _Document(Spec):
    api_version: Literal["scheduling.volcano.sh/v1beta1"]
    kind: Literal["PodGroup"]
    metadata: ObjectMetadata
    spec: PodGroupSpec = PodGroupSpec.defaults()
    status: Any = Field(default=None)


@dataclass(frozen=True)
class PodGroup:
    """A PodGroup and its place in the file."""

    place: Place
    name: str
    spec: PodGroupSpec

    def gang(self, job: Mapping[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
        """Returns the job's description as a gang, and notes on the group."""
        notes = [(self.place, "has no effect by itself; the job with its name is declared with gang: true instead")]
        for name, field in PodGroupSpec.model_fields.items():
            if name != "queue" and getattr(self.spec, name) is not None:
                note = "is left out: it follows from the pods of the job"
                notes.append(((*self.place, "spec", field.alias or name), note))
        queue = {"queue": self.spec.queue} if self.spec.queue else {}
        return {**job, **queue, "gang": True}, notes


def read_pod_groups(documents: Sequence[Any]) -> tuple[list[PodGroup], list[Finding]]:
    """Returns the PodGroups among a file's documents, and findings about them."""
    groups: list[PodGroup] = []
    findings: list[Finding] = []
    for index, document in enumerate(documents):
        if not isinstance(document, Mapping) or document.get("kind") != KIND:
            continue
        place = document_place(documents, index)
        try:
            read = _Document.model_validate(document)
        except ValidationError as error:
            findings += [((*place, *at), message) for at, message in findings_from(error, _Document, document)]
            continue
        groups.append(PodGroup(place, read.metadata.name, read.spec))
        findings += _mismatches(groups[-1], documents)
    return groups, findings


def _mismatches(group: PodGroup, documents: Sequence[Any]) -> Iterator[Finding]:
    kinds = {form.kind for job in JOB_KINDS if job.TAKES_POD_GROUP for form in job.MANIFESTS}
    jobs = [document for document in documents if isinstance(document, Mapping) and document.get("kind") in kinds]
    namesakes = [job for job in jobs if _value(job, "metadata", "name") == group.name]
    if not namesakes:
        message = "no job in this file has this name, so it would have no effect; write gang: true in the job instead"
        yield (*group.place, "metadata", "name"), message
    for job in namesakes:
        queue = _value(job, "spec", "queue")
        if queue and group.spec.queue and queue != group.spec.queue:
            yield (*group.place, "spec", "queue"), "differs from the job's own queue; remove one of them"


def _value(document: Mapping[str, Any], section: str, key: str) -> object:
    values = document.get(section)
    return values.get(key) if isinstance(values, Mapping) else None
