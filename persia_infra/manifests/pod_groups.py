"""PodGroups of Volcano's that stand beside the jobs of a file.

No operator links the two by itself, so the job of the group's name is declared as a gang, in the group's queue.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, ValidationError

from persia_infra.manifests.metadata import ObjectMetadata
from persia_infra.operators.volcano_kinds import PodGroupSpec
from persia_infra.spec.base import Finding, Place, Spec
from persia_infra.spec.errors import document_place, findings_from

KIND = "PodGroup"
KINDS_OF_JOBS = ("PaddleJob", "MPIJob")


class _Document(Spec):
    api_version: Literal["scheduling.volcano.sh/v1beta1"]
    kind: Literal["PodGroup"]
    metadata: ObjectMetadata
    spec: PodGroupSpec = PodGroupSpec()
    status: Any = Field(default=None)


@dataclass(frozen=True)
class PodGroup:
    """A group, and where in the file it is."""

    place: Place
    name: str
    spec: PodGroupSpec

    def gang(self, job: Mapping[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
        """The job's description as a gang, and what there is to say of the group."""
        told = [(self.place, "groups no pods by itself; the job of its name is declared with gang: true instead")]
        for name, field in PodGroupSpec.model_fields.items():
            if name != "queue" and getattr(self.spec, name) is not None:
                said = "is left out: the job's own count and pods decide"
                told.append(((*self.place, "spec", field.alias or name), said))
        queue = {"queue": self.spec.queue} if self.spec.queue else {}
        return {**job, **queue, "gang": True}, told


def read_pod_groups(documents: Sequence[Any]) -> tuple[list[PodGroup], list[Finding]]:
    """The groups among a file's documents, and what is wrong with them."""
    groups: list[PodGroup] = []
    wrong: list[Finding] = []
    for index, document in enumerate(documents):
        if not isinstance(document, Mapping) or document.get("kind") != KIND:
            continue
        place = document_place(documents, index)
        try:
            read = _Document.model_validate(document)
        except ValidationError as error:
            wrong += [((*place, *at), said) for at, said in findings_from(error, _Document, document)]
            continue
        groups.append(PodGroup(place, read.metadata.name, read.spec))
        wrong += _mismatches(groups[-1], documents)
    return groups, wrong


def _mismatches(group: PodGroup, documents: Sequence[Any]) -> Iterator[Finding]:
    jobs = [one for one in documents if isinstance(one, Mapping) and one.get("kind") in KINDS_OF_JOBS]
    meant = [one for one in jobs if _said(one, "metadata", "name") == group.name]
    if not meant:
        said = "no job of this file has its name, so it would group no pods; write gang: true in the job instead"
        yield (*group.place, "metadata", "name"), said
    for job in meant:
        queue = _said(job, "spec", "queue")
        if queue and group.spec.queue and queue != group.spec.queue:
            yield (*group.place, "spec", "queue"), "is another queue than the job's own; keep one of them"


def _said(document: Mapping[str, Any], part: str, key: str) -> object:
    found = document.get(part)
    return found.get(key) if isinstance(found, Mapping) else None
