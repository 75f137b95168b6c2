"""Every manifest under examples/manifests of these kinds is fine, and renders as recorded."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from persia_infra.kube.objects import documents
from persia_infra.manifests.inputs import Described, read_inputs
from persia_infra.spec.errors import InputError
from persia_infra.spec.yaml_files import write_documents
from tests.support.environments import assert_refused
from tests.support.golden import assert_recorded
from tests.support.project import PROJECT

ROOT = PROJECT
GOLDEN = ROOT / "tests" / "golden" / "manifests"
FOLDERS = ("mpi", "paddle", "persia", "training")
MANIFESTS = sorted(file for folder in FOLDERS for file in (ROOT / "examples" / "manifests" / folder).glob("*.yaml"))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_renders_as_recorded(file: Path) -> None:
    found = read_inputs([str(file)])
    notes = [f"# {note.path}: {note.message}\n" for one in found for note in one.notes()]
    text = "".join(notes) + write_documents(rendered(found))

    assert_recorded(GOLDEN / file.parent.name / file.name, text)


def test_the_example_manifests_are_found() -> None:
    assert len(MANIFESTS) >= 7


JOB = "apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nmetadata: {name: a}\nspec: {worker: {replicas: 1, "
JOB += "template: {spec: {containers: [{name: p}]}}}%s}\n"
VOLUME = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: %s\n"
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: %s\n"
GROUP = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: 1}\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            JOB.replace("batch.paddlepaddle.org/v1", "kubeflow.org/v1") % "",
            "apiVersion: 'kubeflow.org/v1' is not a supported version of PaddleJob",
        ),
        (JOB.replace("name: a", "name: A") % "", "metadata.name: 'A' is not a valid name"),
        (JOB.replace("name: a", f"name: {'a' * 51}") % "", "metadata.name: the name has 51 characters"),
        (
            f"apiVersion: nats.io/v1alpha2\nkind: NatsCluster\nmetadata: {{name: {'a' * 55}}}\nspec: {{size: 3}}\n",
            "metadata.name: the name has 55 characters, so its Service's name",
        ),
        (JOB % ", cleanPodPolicy: Later", "spec.cleanPodPolicy: not one of the values it can have"),
        (JOB % ", workers: {}", "spec.workers: unknown key, which would have no effect; did you mean 'worker'?"),
        (f"{JOB % ''}---\n{GROUP % 'b'}", "documents[1].metadata.name: no job in this file has this name"),
        (f"{JOB % ''}---\n{GROUP.replace('{minMember: 1}', '7') % 'a'}", "documents[1].spec: must be a mapping"),
        (
            f"{JOB % ', queue: research'}---\n{GROUP.replace('minMember: 1', 'queue: other') % 'a'}",
            "documents[1].spec.queue: differs from the job's own queue; remove one of them",
        ),
        (
            f"{JOB % ''}---\n{JOB % ''}",
            "documents[1].metadata.name: another PaddleJob in this file has the same name, so only one would exist; "
            "rename one",
        ),
        (
            "apiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata: {name: a}\nspec: {gpus: 2}\n",
            (
                "apiVersion: 'kubeflow.org/v1alpha1' is not a supported version of MPIJob",
                "spec.mpiReplicaSpecs: is required and missing",
                "spec.gpus: unknown key",
            ),
        ),
        (
            VOLUME % "{accessModes: [ReadWriteOnce], capacity: {}, nfs: {server: s, path: /}}",
            "spec.capacity.storage: is",
        ),
        (
            VOLUME % "{accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}",
            "spec: needs exactly one source",
        ),
        (VOLUME % "{accessModes: [Sometimes], capacity: {storage: 1Gi}}", "spec.accessModes[0]: not one of the values"),
        (CLAIM % "{accessModes: [ReadWriteOnce], resources: {}}", "spec.resources.requests.storage: is required"),
        (CLAIM % "{accessModes: [], resources: {requests: {storage: 1Gi}}}", "spec.accessModes: is empty"),
    ],
)
def test_a_wrong_manifest_is_refused_with_exactly_the_expected_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str | tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.yaml").write_text(text)

    with pytest.raises(InputError) as caught:
        read_inputs(["m.yaml"])

    assert_refused(caught.value.problems, line, prefix="m.yaml: ")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("A_b", "metadata.name: 'A_b' is not a valid name"),
        ("a" * 51, "metadata.name: the name has 51 characters"),
    ],
)
def test_a_wrong_name_does_not_hide_the_other_errors_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.yaml").write_text(JOB.replace("name: a}", f"name: {name}}}", 1) % ", cleanPodPolicy: Later, workers: {}")

    with pytest.raises(InputError) as caught:
        read_inputs(["m.yaml"])

    expected = (line, "spec.cleanPodPolicy: not one of the values it can have", "spec.workers: unknown key")
    assert_refused(caught.value.problems, expected, prefix="m.yaml: ")


def test_a_profile_is_not_known_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(JOB % ", profile: large, cleanPodPolicy: Never")

    (found,) = read_inputs([str(tmp_path / "m.yaml")])

    assert [(note.path, note.message) for note in found.notes()] == [
        ("spec.profile", "names a profile of an environment; this file is read without the profile's values")
    ]


PRINTED = {
    "uid": "0b7f",
    "resourceVersion": "42",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "generation": 2,
    "managedFields": [{"manager": "kubectl"}],
    "finalizers": ["example.com/clean-up"],
    "ownerReferences": [{"kind": "Workflow", "name": "w"}],
    "selfLink": "/apis",
}


def with_metadata(file: Path, **metadata: Any) -> str:
    documents = [copy.deepcopy(one) for one in yaml.safe_load_all(file.read_text())]
    for document in documents:
        document["metadata"].update(metadata)
    return yaml.safe_dump_all(documents, sort_keys=False)


def rendered(found: list[Described]) -> list[Any]:
    return [document for described in found for document in documents([(described.name, described.objects())])]


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_what_kubectl_prints_is_left_out_with_one_note_per_document(file: Path, tmp_path: Path) -> None:
    printed = tmp_path / file.name
    printed.write_text(with_metadata(file, **PRINTED))

    plain, found = read_inputs([str(file)]), read_inputs([str(printed)])

    assert rendered(found) == rendered(plain)
    more = {(n.path, n.message) for one in found for n in one.notes()}
    more -= {(n.path, n.message) for one in plain for n in one.notes()}
    assert more
    for path, message in more:
        assert path.endswith("metadata")
        assert message.startswith(", ".join(PRINTED))
    assert len(more) == len({path for path, _ in more})


@pytest.mark.parametrize(
    ("manifest", "lines"),
    [
        (
            JOB.replace("{name: a}", "{name: a, labels: {team: ads}, annotations: {a: b}}"),
            {
                "metadata.labels": "is left out: the declared objects have labels of their own",
                "metadata.annotations": "is left out: the declared objects have no annotations from the manifest",
            },
        ),
        (JOB + "status: {phase: Running}\n", {"status": "has no effect: Kubernetes sets it"}),
        (JOB + "status: {}\n", {}),
        (JOB.replace("{name: a}", "{name: a, labels: null, creationTimestamp: null}"), {}),
        (
            JOB.replace("{name: a}", "{name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}"),
            {
                "metadata": "the annotation kubectl.kubernetes.io/last-applied-configuration is left out: "
                "it belongs to the existing object, not to a new one"
            },
        ),
        (
            JOB.replace("replicas: 1", "replicas: 1, pool: gpu"),
            {
                "spec.worker.pool": "names a pool of an environment; this file is read without one, "
                "so the pods may run on any node"
            },
        ),
    ],
)
def test_what_has_no_effect_is_reported(tmp_path: Path, manifest: str, lines: dict[str, str]) -> None:
    (tmp_path / "m.yaml").write_text(manifest % ", cleanPodPolicy: Never")

    (found,) = read_inputs([str(tmp_path / "m.yaml")])

    assert {note.path: note.message for note in found.notes()} == lines


def test_pools_in_manifests_of_every_kind_are_reported_as_without_effect(
    tmp_path: Path, run_jobs: dict[str, Any], description: dict[str, Any]
) -> None:
    persia = description["jobs"]["ads"]
    persia["nnWorker"]["pool"], persia["nats"] = "gpu", {"pool": "gpu"}
    versions = {"MPIJob": "kubeflow.org/v2beta1", "Job": "batch/v1", "TrainingJob": "persia-infra/v1"}
    jobs = [run_jobs["mpi"], run_jobs["single"], run_jobs["training"]]
    documents = [{"apiVersion": versions[job["kind"]], "kind": job.pop("kind"), "spec": job} for job in jobs]
    documents.append({"apiVersion": "persia.com/v1", "kind": persia.pop("kind"), "spec": persia})
    documents.append({"apiVersion": "nats.io/v1alpha2", "kind": "NatsCluster", "spec": {"pool": "gpu"}})
    file = tmp_path / "m.yaml"
    file.write_text(yaml.safe_dump_all([{**document, "metadata": {"name": "a"}} for document in documents]))

    said = [note.path for one in read_inputs([str(file)]) for note in one.notes() if note.path.endswith("pool")]

    assert said == [
        "documents[0].spec.mpiReplicaSpecs.Worker.pool",
        "documents[1].spec.pool",
        "documents[2].spec.pool",
        "documents[3].spec.nnWorker.pool",
        "documents[3].spec.nats.pool",
        "documents[4].spec.pool",
    ]


def test_a_pod_keeps_its_labels_and_annotations(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    pod = ROOT / "examples" / "manifests" / "training" / "pod.yaml"
    file.write_text(with_metadata(pod, labels={"team": "ads"}, annotations={"cost": "research"}))

    (found,) = read_inputs([str(file)])

    (job,) = rendered([found])
    made = job["spec"]["template"]["metadata"]
    assert (made["labels"]["team"], made["annotations"]["cost"]) == ("ads", "research")
    assert [note.path for note in found.notes()] == ["spec"]


def test_errors_of_a_pod_are_reported_at_their_places_in_the_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pod = (ROOT / "examples" / "manifests" / "training" / "pod.yaml").read_text()
    Path("m.yaml").write_text(pod.replace("image:", "imgae:"))

    with pytest.raises(InputError) as caught:
        read_inputs(["m.yaml"])

    assert str(caught.value).startswith("m.yaml: spec.containers[0].imgae: unknown key")


def test_volumes_keep_the_labels_that_claims_select_them_by(tmp_path: Path) -> None:
    volume = VOLUME % "{accessModes: [ReadWriteMany], capacity: {storage: 1Gi}, nfs: {server: s, path: /}}"
    (tmp_path / "m.yaml").write_text(volume.replace("{name: v}", "{name: v, labels: {data: imagenet}}"))

    (found,) = read_inputs([str(tmp_path / "m.yaml")])

    assert rendered([found])[0]["metadata"]["labels"] == {"data": "imagenet"}
    assert list(found.notes()) == []
