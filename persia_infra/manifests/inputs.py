"""What the commands take: the name of a stack, or any YAML file with objects of the kinds that are known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from persia_infra.environment import EnvironmentSpec
from persia_infra.jobs import JOB_KINDS, Job, PersiaJobSpec, SingleNodeJobSpec, mpi, paddle, single_node
from persia_infra.kube.pod_templates import TemplateMetadata
from persia_infra.kube.storage import ClaimSpec, PersistentVolumeSpec
from persia_infra.manifests import pod_groups, stateful_set
from persia_infra.manifests.metadata import STATUS_LEFT_OUT, ObjectMetadata
from persia_infra.manifests.persia_stateful_sets import read_recipe
from persia_infra.manifests.pod_groups import PodGroup, read_pod_groups
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


@dataclass(frozen=True)
class _Kind:
    """What a manifest of one kind is read as."""

    version: str
    model: type[Job] | type[NatsClusterSpec] | type[PersistentVolumeSpec] | type[ClaimSpec]
    old_versions: tuple[str, ...] = ()
    """Read as well, and translated."""


_MANIFESTS = {
    "PersiaJob": _Kind("persia.com/v1", JOB_KINDS["PersiaJob"]),
    "NatsCluster": _Kind("nats.io/v1alpha2", NatsClusterSpec),
    "MPIJob": _Kind(mpi.API_VERSION, JOB_KINDS["MPIJob"], mpi.OLD_API_VERSIONS),
    "PaddleJob": _Kind(paddle.API_VERSION, JOB_KINDS["PaddleJob"]),
    "Job": _Kind(single_node.API_VERSION, JOB_KINDS["Job"]),
    "Pod": _Kind("v1", JOB_KINDS["Job"]),
    "TrainingJob": _Kind("persia-infra/v1", JOB_KINDS["TrainingJob"]),
    "PersistentVolume": _Kind("v1", PersistentVolumeSpec),
    "PersistentVolumeClaim": _Kind("v1", ClaimSpec),
}
_KEPT = {"Pod": ("labels", "annotations"), "PersistentVolume": ("labels",), "PersistentVolumeClaim": ("labels",)}
"""Metadata that the object which is declared has too."""

_Description = EnvironmentSpec | Job | NatsClusterSpec | PersistentVolumeSpec | ClaimSpec


@dataclass(frozen=True)
class Described:
    """One description, and where it was found."""

    file: str
    prefix: Place
    name: str
    spec: _Description
    about_file: tuple[Problem, ...] = ()
    """What there is to say of the document around the description."""
    origins: Mapping[Place, Place] = field(default_factory=dict)
    """Where the file says what the description has elsewhere."""

    def notes(self) -> Iterator[Problem]:
        """What was found worth saying, though nothing is wrong."""
        yield from self.about_file
        for place, message in self.spec.notes():
            yield Problem(self.file, dotted(traced((*self.prefix, *place), self.origins)), message)


class _Manifest(Spec):
    api_version: str
    kind: str
    metadata: ObjectMetadata
    spec: dict[str, Any]
    status: Any = None


def read_inputs(arguments: list[str]) -> list[Described]:
    """Everything that the arguments of a command name.

    Raises:
        InputError: With the problems of all of them.
    """
    found: list[Described] = []
    problems: list[Problem] = []
    for argument in arguments:
        try:
            found += _read(argument)
        except InputError as error:
            problems += error.problems
        except RecursionError:
            problems.append(Problem(argument, "", "is nested too deeply to be read"))
    if problems:
        raise InputError(problems)
    return found


def _read(argument: str) -> list[Described]:
    file = Path(argument)
    if file.suffix not in (".yaml", ".yml") and not is_file(file):
        project = find_project(Path.cwd())
        stack = find_stack(argument, project)
        shown = shown_path(stack, project)
        return [Described(shown, ("environment",), argument, load_stack(stack, shown=shown))]
    documents = read_documents(file)
    if not documents:
        raise InputError([Problem(argument, "", "is empty; it describes nothing")])
    if len(documents) == 1 and isinstance(documents[0], Mapping) and "config" in documents[0]:
        name = file.name.removeprefix("Pulumi.").removesuffix(file.suffix)
        return [Described(argument, ("environment",), name, load_stack(file, shown=argument))]
    found: list[Described] = []
    problems: list[Problem] = []
    groups, wrong = read_pod_groups(documents)
    wrong += _refuse_doubled(documents)
    problems += [Problem(argument, dotted(place), said) for place, said in wrong]
    in_recipe = {index for index, document in enumerate(documents) if _is(document, stateful_set.KIND)}
    if in_recipe:
        try:
            job, nats = _read_recipe(documents, file, argument)
        except InputError as error:
            problems += error.problems
        else:
            found.append(job)
            in_recipe |= nats
    for index, document in enumerate(documents):
        if index in in_recipe or _is(document, pod_groups.KIND):
            continue
        try:
            found.append(_read_manifest(document, argument, document_place(documents, index), groups))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return found


def _read_recipe(documents: list[Any], file: Path, shown: str) -> tuple[Described, set[int]]:
    """The PERSIA job that a file's StatefulSets are, and which NatsCluster went into it."""
    recipe = read_recipe(documents, file=shown)
    name = file.name.partition(".")[0]
    problems = [
        Problem(shown, "", f"its StatefulSets are one job, which has the file's name: {said}; rename the file")
        for said in _name_findings(name, PersiaJobSpec)
    ]
    notes = [Problem(shown, dotted(place), message) for place, message in recipe.notes]
    nats = set() if recipe.nats_document is None else {recipe.nats_document}
    for index in nats:
        notes += _read_manifest(documents[index], shown, document_place(documents, index)).about_file
    data = {**recipe.spec, **({"namespace": recipe.namespace} if recipe.namespace else {})}
    try:
        spec = PersiaJobSpec.model_validate(data)
    except ValidationError as error:
        found = findings_from(error, PersiaJobSpec, data)
        problems += [Problem(shown, dotted(traced(place, recipe.origins)), message) for place, message in found]
        raise InputError(list(dict.fromkeys(problems))) from None
    if problems:
        raise InputError(problems)
    return Described(shown, (), name, spec, tuple(notes), recipe.origins), nats


def _name_findings(name: str, model: type[Job] | type[NatsClusterSpec]) -> list[str]:
    try:
        ObjectMetadata(name=name)
    except ValidationError as error:
        return [said for _, said in findings_from(error, ObjectMetadata, {"name": name})]
    return [said for _, said in model.name_findings(name)]


def _is(document: object, kind: str) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == kind


def _refuse_doubled(documents: list[Any]) -> Iterator[Finding]:
    """Of two objects of one kind and name, Kubernetes would keep the last."""
    seen: set[tuple[object, ...]] = set()
    for index, document in enumerate(documents):
        metadata = document.get("metadata") if isinstance(document, Mapping) else None
        if isinstance(metadata, Mapping):
            one = tuple(str(value) for value in (document.get("kind"), metadata.get("namespace"), metadata.get("name")))
            if one in seen:
                yield (
                    (*document_place(documents, index), "metadata", "name"),
                    f"is that of another {one[0]} of this file; rename one",
                )
            seen.add(one)


def _read_manifest(document: object, file: str, prefix: Place, groups: Sequence[PodGroup] = ()) -> Described:
    if not isinstance(document, Mapping) or "kind" not in document:
        said = f"is neither a stack (config with {CONFIG_KEY}) nor an object with a kind; known: "
        raise InputError([Problem(file, dotted(prefix), said + ", ".join(_MANIFESTS))])
    kind = str(document["kind"])
    if kind not in _MANIFESTS:
        said = f"nothing is known of this kind; {nearest(kind, list(_MANIFESTS))}"
        raise InputError([Problem(file, dotted((*prefix, "kind")), said)])
    known = _MANIFESTS[kind]
    model, about = known.model, []
    try:
        manifest = _Manifest.model_validate(document)
    except ValidationError as error:
        raise InputError(problems_from(error, _Manifest, document, file=file, prefix=prefix)) from None
    if manifest.api_version in known.old_versions:
        said = (
            f"{manifest.api_version} is served by no operator that runs on today's Kubernetes; it is declared as "
            f"{known.version}, which reaches the workers by SSH, so the image needs an SSH server"
        )
        about.append(Problem(file, dotted((*prefix, "apiVersion")), said))
    elif manifest.api_version != known.version:
        said = f"a {kind} of this version is not known, so its fields may mean something else; write {known.version}"
        raise InputError([Problem(file, dotted((*prefix, "apiVersion")), said)])
    if issubclass(model, Job | NatsClusterSpec) and (wrong := _name_findings(manifest.metadata.name, model)):
        raise InputError([Problem(file, dotted((*prefix, "metadata", "name")), said) for said in wrong])
    is_pod = kind == "Pod"
    data = {**manifest.spec, "kind": "Job" if is_pod else kind}
    for group in groups:
        if group.name == manifest.metadata.name and kind in pod_groups.KINDS_OF_JOBS:
            data, told = group.gang(data)
            about += [Problem(file, dotted(place), said) for place, said in told]
    if manifest.metadata.namespace:
        data["namespace"] = manifest.metadata.namespace
    try:
        spec = model.model_validate(data)
    except ValidationError as error:
        raise InputError(problems_from(error, model, data, file=file, prefix=(*prefix, "spec"))) from None
    for place, said in spec.as_written(spec.settings_findings()) if isinstance(spec, Job) else ():
        problem = Problem(file, dotted((*prefix, "spec", *place)), said)
        if place[-1] != "profile":
            raise InputError([problem])
        about.append(replace(problem, message="belongs to an environment; this file is read without its values"))
    about += [Problem(file, dotted((*prefix, *place)), said) for place, said in _left_out(manifest, spec)]
    return Described(file, (*prefix, "spec"), manifest.metadata.name, _labelled(spec, manifest), tuple(about))


def _left_out(manifest: _Manifest, spec: _Description) -> Iterator[Finding]:
    """What of a manifest has no effect when its file is read by itself."""
    for place, said in manifest.metadata.notes(kept=_KEPT.get(manifest.kind, ())):
        yield ("metadata", *place), said
    if manifest.status:
        yield ("status",), STATUS_LEFT_OUT
    said = "belongs to an environment; this file is read without it, so any node with room will do"
    pools: list[Finding] = []
    if isinstance(spec, Job):
        pools += spec.as_written(((*load.place, "pool"), said) for load in spec.workloads() if load.pool)
    elif isinstance(spec, NatsClusterSpec) and spec.pool:
        pools.append((("pool",), said))
    yield from ((("spec", *place), said) for place, said in dict.fromkeys(pools))


def _labelled(spec: _Description, manifest: _Manifest) -> _Description:
    """The description with what its kind keeps of the metadata."""
    metadata = manifest.metadata
    if manifest.kind == "Pod" and isinstance(spec, SingleNodeJobSpec) and (metadata.labels or metadata.own_annotations):
        kept = TemplateMetadata(labels=metadata.labels, annotations=metadata.own_annotations)
        return spec.model_copy(update={"template": spec.template.model_copy(update={"metadata": kept})})
    if isinstance(spec, PersistentVolumeSpec | ClaimSpec):
        return spec.model_copy(update={"labels": metadata.labels})
    return spec
