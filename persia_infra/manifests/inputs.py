"""Reads the arguments of the commands: names of stacks, or YAML files with objects of the supported kinds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from persia_infra.environment import EnvironmentSpec
from persia_infra.jobs import JOB_KINDS, Job, PersiaJobSpec
from persia_infra.jobs.job import ManifestForm
from persia_infra.kube.objects import KubeObject, ObjectGroup, metadata
from persia_infra.kube.storage import ClaimSpec, PersistentVolumeSpec
from persia_infra.manifests import pod_groups, stateful_set
from persia_infra.manifests.metadata import STATUS_LEFT_OUT, ObjectMetadata
from persia_infra.manifests.persia_stateful_sets import read_recipe
from persia_infra.manifests.pod_groups import PodGroup, read_pod_groups
from persia_infra.nats.objects import nats_objects
from persia_infra.nats.spec import NatsClusterSpec
from persia_infra.spec.base import Finding, Place, Spec
from persia_infra.spec.errors import (
    InputError,
    Problem,
    document_place,
    dotted,
    findings_from,
    nearest,
    problems_from,
    traced,
)
from persia_infra.spec.yaml_files import is_file, read_documents
from persia_infra.stack import CONFIG_KEY, find_project, find_stack, load_stack, shown_path

_Model = type[Job] | type[NatsClusterSpec] | type[PersistentVolumeSpec] | type[ClaimSpec]
_Description = EnvironmentSpec | Job | NatsClusterSpec | PersistentVolumeSpec | ClaimSpec

_OTHER_FORMS: tuple[tuple[ManifestForm, _Model], ...] = (
    (ManifestForm("NatsCluster", "nats.io/v1alpha2"), NatsClusterSpec),
    (ManifestForm("PersistentVolume", "v1", keeps=("labels",)), PersistentVolumeSpec),
    (ManifestForm("PersistentVolumeClaim", "v1", keeps=("labels",)), ClaimSpec),
)
"""The supported manifests other than jobs."""


def _forms() -> dict[str, tuple[ManifestForm, _Model]]:
    """The manifest form and the model for each supported kind."""
    jobs = [(form, kind) for kind in JOB_KINDS for form in kind.MANIFESTS]
    return {form.kind: (form, model) for form, model in (*jobs, *_OTHER_FORMS)}


@dataclass(frozen=True)
class Described:
    """One description, and the place that it was read from."""

    file: str
    prefix: Place
    name: str
    spec: _Description
    about_file: tuple[Problem, ...] = ()
    """Notes on the document that contains the description."""
    origins: Mapping[Place, Place] = field(default_factory=dict)
    """The place of a value in the file, by its place in the description."""

    def notes(self) -> Iterator[Problem]:
        """Notes on what was translated and what has no effect."""
        yield from self.about_file
        for place, message in self.spec.notes():
            yield Problem(self.file, dotted(traced((*self.prefix, *place), self.origins)), message)

    def objects(self) -> ObjectGroup:
        """Returns the Kubernetes objects of a manifest that is read without an environment.

        Raises:
            TypeError: The description is a whole environment, which does not consist of Kubernetes objects alone.
        """
        match self.spec:
            case Job() as job:
                return job.objects(self.name, job.namespace or "default", {})
            case NatsClusterSpec() as nats:
                return nats_objects(nats, self.name, nats.namespace or "default")
            case PersistentVolumeSpec() | ClaimSpec() as storage:
                namespace = storage.namespace or "default" if isinstance(storage, ClaimSpec) else None
                body = {
                    "apiVersion": "v1",
                    "kind": storage.kind,
                    "metadata": {**metadata(self.name, namespace, storage.labels), "labels": storage.labels},
                    "spec": storage.as_kubernetes(),
                }
                return ObjectGroup(storage.kind, (KubeObject("", body),))
        raise TypeError(f"{self.name} describes an environment")


class _Manifest(Spec):
    api_version: str
    kind: str
    metadata: ObjectMetadata
    spec: dict[str, Any]
    status: Any = None


def read_inputs(arguments: list[str]) -> list[Described]:
    """Reads everything that the arguments of a command refer to.

    Raises:
        InputError: At least one of them is invalid; it contains the problems of all.
    """
    descriptions: list[Described] = []
    problems: list[Problem] = []
    for argument in arguments:
        try:
            descriptions += _read(argument)
        except InputError as error:
            problems += error.problems
        except RecursionError:
            problems.append(Problem(argument, "", "is nested too deeply to be read"))
    if problems:
        raise InputError(problems)
    return descriptions


def _read(argument: str) -> list[Described]:
    file = Path(argument)
    if file.suffix not in (".yaml", ".yml") and not is_file(file):
        project = find_project(Path.cwd())
        stack = find_stack(argument, project)
        shown = shown_path(stack, project)
        return [Described(shown, ("environment",), argument, load_stack(stack, shown=shown))]
    documents = read_documents(file)
    if not documents:
        raise InputError([Problem(argument, "", "is empty; add a stack or a manifest")])
    if len(documents) == 1 and isinstance(documents[0], Mapping) and "config" in documents[0]:
        name = file.name.removeprefix("Pulumi.").removesuffix(file.suffix)
        return [Described(argument, ("environment",), name, load_stack(file, shown=argument))]
    descriptions: list[Described] = []
    groups, findings = read_pod_groups(documents)
    findings += _duplicate_findings(documents)
    problems = [Problem(argument, dotted(place), message) for place, message in findings]
    in_recipe = {index for index, document in enumerate(documents) if _is(document, stateful_set.KIND)}
    if in_recipe:
        try:
            job, nats = _read_recipe(documents, file, argument)
        except InputError as error:
            problems += error.problems
        else:
            descriptions.append(job)
            in_recipe |= nats
    for index, document in enumerate(documents):
        if index in in_recipe or _is(document, pod_groups.KIND):
            continue
        try:
            descriptions.append(_read_manifest(document, argument, document_place(documents, index), groups))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return descriptions


def _read_recipe(documents: list[Any], file: Path, shown: str) -> tuple[Described, set[int]]:
    """The PERSIA job that a file's StatefulSets form, and the document of the NatsCluster that became part of it."""
    recipe = read_recipe(documents, file=shown)
    name = file.name.partition(".")[0]
    problems = [
        Problem(shown, "", f"the StatefulSets are read as one job with the file's name: {message}; rename the file")
        for message in _name_findings(name, PersiaJobSpec)
    ]
    notes = [Problem(shown, dotted(place), message) for place, message in recipe.notes]
    nats = set() if recipe.nats_document is None else {recipe.nats_document}
    for index in nats:
        notes += _read_manifest(documents[index], shown, document_place(documents, index)).about_file
    data = {**recipe.spec, **({"namespace": recipe.namespace} if recipe.namespace else {})}
    try:
        spec = PersiaJobSpec.model_validate(data)
    except ValidationError as error:
        findings = findings_from(error, PersiaJobSpec, data)
        problems += [Problem(shown, dotted(traced(place, recipe.origins)), message) for place, message in findings]
        raise InputError(list(dict.fromkeys(problems))) from None
    if problems:
        raise InputError(problems)
    return Described(shown, (), name, spec, tuple(notes), recipe.origins), nats


def _name_findings(name: str, model: type[Job] | type[NatsClusterSpec]) -> list[str]:
    try:
        ObjectMetadata(name=name)
    except ValidationError as error:
        return [message for _, message in findings_from(error, ObjectMetadata, {"name": name})]
    return [message for _, message in model.name_findings(name)]


def _is(document: object, kind: str) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == kind


def _duplicate_findings(documents: list[Any]) -> Iterator[Finding]:
    """Objects of the same kind and name, of which Kubernetes would keep only the last."""
    seen: set[tuple[object, ...]] = set()
    for index, document in enumerate(documents):
        metadata = document.get("metadata") if isinstance(document, Mapping) else None
        if isinstance(metadata, Mapping):
            parts = (document.get("kind"), metadata.get("namespace"), metadata.get("name"))
            identity = tuple(str(part) for part in parts)
            if identity in seen:
                yield (
                    (*document_place(documents, index), "metadata", "name"),
                    f"another {identity[0]} in this file has the same name, so only one would exist; rename one",
                )
            seen.add(identity)


def _read_manifest(document: object, file: str, prefix: Place, groups: Sequence[PodGroup] = ()) -> Described:
    fields, form, model = _form_of(document, file, prefix)
    problems: list[Problem] = []
    notes: list[Problem] = []
    manifest = None
    try:
        manifest = _Manifest.model_validate(fields)
    except ValidationError as error:
        problems += problems_from(error, _Manifest, fields, file=file, prefix=prefix)
    described = fields.get("spec")
    if not isinstance(described, Mapping):
        raise InputError(problems)
    data = {**described, "kind": model.model_fields["kind"].default}
    if manifest:
        name, namespace = manifest.metadata.name, manifest.metadata.namespace
        version = (*prefix, "apiVersion")
        problems += [Problem(file, dotted(version), message) for message in _version_findings(manifest, form)]
        if manifest.api_version in form.old_api_versions:
            notes.append(Problem(file, dotted(version), f"{manifest.api_version} {form.old_version_note}"))
        if issubclass(model, Job | NatsClusterSpec):
            place = dotted((*prefix, "metadata", "name"))
            problems += [Problem(file, place, message) for message in _name_findings(name, model)]
        for group in groups if issubclass(model, Job) and model.TAKES_POD_GROUP else ():
            if group.name == name:
                data, about_group = group.gang(data)
                notes += [Problem(file, dotted(place), message) for place, message in about_group]
        if namespace:
            data["namespace"] = namespace
    at = (*prefix, "spec")
    try:
        spec = model.model_validate(data)
    except ValidationError as error:
        raise InputError([*problems, *problems_from(error, model, data, file=file, prefix=at)]) from None
    if isinstance(spec, Job):
        findings = spec.as_written(spec.settings_findings())
        problems += [Problem(file, dotted((*at, *place)), message) for place, message in findings]
        without_values = "names a profile of an environment; this file is read without the profile's values"
        profiles = spec.as_written(spec.unknown_profiles())
        notes += [Problem(file, dotted((*at, *place)), without_values) for place, _ in profiles]
    if problems or manifest is None:
        raise InputError(problems)
    notes += [Problem(file, dotted((*prefix, *place)), message) for place, message in _left_out(manifest, form, spec)]
    return Described(file, at, manifest.metadata.name, _labelled(spec, manifest, form), tuple(notes))


def _form_of(document: object, file: str, prefix: Place) -> tuple[Mapping[str, Any], ManifestForm, _Model]:
    forms = _forms()
    if not isinstance(document, Mapping):
        message = (
            f"is neither a stack (config with {CONFIG_KEY}) nor a Kubernetes object; write one of {', '.join(forms)}"
        )
        raise InputError([Problem(file, dotted(prefix), message)])
    if "kind" not in document:
        message = f"has no 'kind', and no config with {CONFIG_KEY} either; write one of {', '.join(forms)}"
        raise InputError([Problem(file, dotted(prefix), message)])
    kind = str(document["kind"])
    if kind not in forms:
        message = f"{kind!r} is not a supported kind; {nearest(kind, list(forms))}"
        raise InputError([Problem(file, dotted((*prefix, "kind")), message)])
    return document, *forms[kind]


def _version_findings(manifest: _Manifest, form: ManifestForm) -> Iterator[str]:
    if manifest.api_version not in (form.api_version, *form.old_api_versions):
        yield (
            f"{manifest.api_version!r} is not a supported version of {form.kind}, so its fields may mean something "
            f"else; write {form.api_version}"
        )


def _left_out(manifest: _Manifest, form: ManifestForm, spec: _Description) -> Iterator[Finding]:
    """Notes on the parts of a manifest that have no effect without an environment."""
    for place, message in manifest.metadata.notes(kept=form.keeps):
        yield ("metadata", *place), message
    if manifest.status:
        yield ("status",), STATUS_LEFT_OUT
    message = "names a pool of an environment; this file is read without one, so the pods may run on any node"
    pools: list[Finding] = []
    if isinstance(spec, Job):
        pools += spec.as_written(((*load.place, "pool"), message) for load in spec.workloads() if load.pool)
    elif isinstance(spec, NatsClusterSpec) and spec.pool:
        pools.append((("pool",), message))
    yield from ((("spec", *place), text) for place, text in dict.fromkeys(pools))


def _labelled(spec: _Description, manifest: _Manifest, form: ManifestForm) -> _Description:
    """The description with the metadata that its kind keeps."""
    metadata = manifest.metadata
    if isinstance(spec, Job) and form.keeps:
        return spec.with_manifest_metadata(metadata.labels, metadata.own_annotations)
    if isinstance(spec, PersistentVolumeSpec | ClaimSpec):
        return spec.model_copy(update={"labels": metadata.labels})
    return spec
