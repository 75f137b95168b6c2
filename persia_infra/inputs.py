"""What the commands take: the name of a stack, or any YAML file with objects of the kinds that are known."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from persia_infra.environment import EnvironmentSpec
from persia_infra.errors import InputError, Problem, dotted, nearest, problems_from
from persia_infra.jobs import JOB_KINDS, Job, PersiaJobSpec, mpi, paddle, persia_stateful_sets, single_node
from persia_infra.nats import NatsSpec
from persia_infra.spec import DnsLabel, Spec
from persia_infra.stack import CONFIG_KEY, find_project, find_stack, load_stack, shown_path
from persia_infra.storage import ClaimSpec, PersistentVolumeSpec
from persia_infra.yaml_files import read_documents


@dataclass(frozen=True)
class _Kind:
    """What a manifest of one kind is read as."""

    version: str
    model: type[Job] | type[NatsSpec] | type[PersistentVolumeSpec] | type[ClaimSpec]
    old_versions: tuple[str, ...] = ()
    """Read as well, and translated."""


_MANIFESTS = {
    "PersiaJob": _Kind("persia.com/v1", JOB_KINDS["PersiaJob"]),
    "NatsCluster": _Kind("nats.io/v1alpha2", NatsSpec),
    "MPIJob": _Kind(mpi.API_VERSION, JOB_KINDS["MPIJob"], mpi.OLD_API_VERSIONS),
    "PaddleJob": _Kind(paddle.API_VERSION, JOB_KINDS["PaddleJob"]),
    "Job": _Kind(single_node.API_VERSION, JOB_KINDS["Job"]),
    "Pod": _Kind("v1", JOB_KINDS["Job"]),
    "TrainingJob": _Kind("persia-infra/v1", JOB_KINDS["TrainingJob"]),
    "PersistentVolume": _Kind("v1", PersistentVolumeSpec),
    "PersistentVolumeClaim": _Kind("v1", ClaimSpec),
}
_POD_GROUP = "PodGroup"


@dataclass(frozen=True)
class Described:
    """One description, and where it was found."""

    file: str
    prefix: tuple[str | int, ...]
    name: str
    spec: EnvironmentSpec | Job | NatsSpec | PersistentVolumeSpec | ClaimSpec
    about_file: tuple[Problem, ...] = ()
    """What there is to say of the document around the description."""

    def notes(self) -> Iterator[Problem]:
        """What was found worth saying, though nothing is wrong."""
        yield from self.about_file
        for place, message in self.spec.notes():
            yield Problem(self.file, dotted((*self.prefix, *place)), message)


class _Metadata(Spec):
    name: DnsLabel
    namespace: DnsLabel | None = None
    labels: dict[str, str] = Field(default={})
    annotations: dict[str, str] = Field(default={})


class _Manifest(Spec):
    api_version: str
    kind: str
    metadata: _Metadata
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
    if problems:
        raise InputError(problems)
    return found


def _read(argument: str) -> list[Described]:
    file = Path(argument)
    if file.suffix not in (".yaml", ".yml") and not file.is_file():
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
    groups = [document for document in documents if _is(document, _POD_GROUP)]
    in_recipe: set[int] = set()
    if any(_is(document, persia_stateful_sets.KIND) for document in documents):
        job, in_recipe = _read_recipe(documents, file, argument)
        found.append(job)
    for index, document in enumerate(documents):
        prefix = (f"documents[{index}]",) if len(documents) > 1 else ()
        if index in in_recipe:
            continue
        try:
            if document in groups:
                _refuse_unless_some_job_is_meant(document, documents, argument, prefix)
                continue
            found.append(_read_manifest(document, argument, prefix, groups))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def _read_recipe(documents: list[Any], file: Path, shown: str) -> tuple[Described, set[int]]:
    """The PERSIA job that a file's StatefulSets are, and which documents went into it."""
    recipe = persia_stateful_sets.read_recipe(documents, file=shown)
    data = {**recipe.spec, **({"namespace": recipe.namespace} if recipe.namespace else {})}
    try:
        spec = PersiaJobSpec.model_validate(data)
    except ValidationError as error:
        raise InputError(problems_from(error, PersiaJobSpec, data, file=shown)) from None
    notes = tuple(Problem(shown, dotted(place), message) for place, message in recipe.notes)
    used = {index for index, document in enumerate(documents) if _is(document, persia_stateful_sets.KIND)}
    if recipe.nats_document is not None:
        used.add(recipe.nats_document)
    return Described(shown, (), file.name.partition(".")[0], spec, notes), used


def _is(document: object, kind: str) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == kind


def _name(document: object) -> object:
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    return metadata.get("name") if isinstance(metadata, Mapping) else None


def _refuse_unless_some_job_is_meant(
    group: object, documents: list[Any], file: str, prefix: tuple[str | int, ...]
) -> None:
    meant = [one for one in documents if _name(one) == _name(group) and (_is(one, "PaddleJob") or _is(one, "MPIJob"))]
    if not meant:
        said = "no job of this file has its name, so it would group no pods; write gang: true in the job instead"
        raise InputError([Problem(file, dotted((*prefix, "metadata", "name")), said)])


def _in_gang(data: dict[str, Any], name: str, groups: list[Any]) -> dict[str, Any]:
    """The job with what a PodGroup of its name says about it: no operator links the two by itself."""
    group = next((one for one in groups if _name(one) == name), None)
    if group is None:
        return data
    wanted = group.get("spec") or {}
    queue = {"queue": wanted["queue"]} if isinstance(wanted, Mapping) and wanted.get("queue") else {}
    return {**data, "gang": True, **queue}


def _read_manifest(
    document: object, file: str, prefix: tuple[str | int, ...], groups: list[Any] | None = None
) -> Described:
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
    if issubclass(model, Job) and (wrong := list(model.name_findings(manifest.metadata.name))):
        raise InputError([Problem(file, dotted((*prefix, "metadata", "name")), said) for _, said in wrong])
    data = {**manifest.spec, "kind": "Job" if kind == "Pod" else kind}
    if groups:
        data = _in_gang(data, manifest.metadata.name, groups)
        about += [
            Problem(file, dotted(prefix), "its PodGroup groups no pods by itself; the job is declared with gang: true")
            for group in groups
            if _name(group) == manifest.metadata.name
        ]
    if manifest.metadata.namespace and not issubclass(model, NatsSpec):
        data["namespace"] = manifest.metadata.namespace
    try:
        spec = model.model_validate(data)
    except ValidationError as error:
        raise InputError(problems_from(error, model, data, file=file, prefix=(*prefix, "spec"))) from None
    for place, said in spec.settings_findings() if isinstance(spec, Job) else ():
        problem = Problem(file, dotted((*prefix, "spec", *place)), said)
        if place[-1] != "profile":
            raise InputError([problem])
        about.append(replace(problem, message="belongs to an environment; this file is read without its values"))
    return Described(file, (*prefix, "spec"), manifest.metadata.name, spec, tuple(about))
