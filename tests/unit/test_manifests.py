"""Every manifest under examples/manifests of these kinds is fine, and renders as recorded."""

import os
from pathlib import Path

import pytest
from persia_components.render import declared_for

from persia_infra.errors import InputError
from persia_infra.inputs import read_inputs
from persia_infra.yaml_files import write_documents

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "manifests"
FOLDERS = ("mpi", "paddle", "persia", "training")
MANIFESTS = sorted(file for folder in FOLDERS for file in (ROOT / "examples" / "manifests" / folder).glob("*.yaml"))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_renders_as_recorded(file: Path) -> None:
    """Set PERSIA_INFRA_REGENERATE=1 to record it anew, and read the difference."""
    found = read_inputs([str(file)])
    notes = [f"# {note.path}: {note.message}\n" for one in found for note in one.notes()]
    objects = [declared.document for one in found for declared in declared_for(one.name, one.spec)]
    text = "".join(notes) + write_documents(objects)
    golden = GOLDEN / file.parent.name / file.name
    if os.environ.get("PERSIA_INFRA_REGENERATE") == "1":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text)

    assert text == golden.read_text()


def test_there_are_manifests() -> None:
    assert len(MANIFESTS) >= 7


JOB = "apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nmetadata: {name: a}\nspec: {worker: {replicas: 1, "
JOB += "template: {spec: {containers: [{name: p}]}}}%s}\n"
VOLUME = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: %s\n"
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: %s\n"
GROUP = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: 1}\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (JOB.replace("batch.paddlepaddle.org/v1", "kubeflow.org/v1") % "", "apiVersion: a PaddleJob of this version"),
        (JOB.replace("name: a", "name: A") % "", "metadata.name: 'A' is no DNS label"),
        (JOB.replace("name: a", f"name: {'a' * 51}") % "", "metadata.name: the name has 51 characters"),
        (JOB % ", cleanPodPolicy: Later", "spec.cleanPodPolicy: not one of the values it can have"),
        (JOB % ", workers: {}", "spec.workers: unknown key, which would have no effect; did you mean 'worker'?"),
        (f"{JOB % ''}---\n{GROUP % 'b'}", "documents[1].metadata.name: no job of this file has its name"),
        (
            "apiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata: {name: a}\nspec: {gpus: 2}\n",
            "apiVersion: a MPIJob of this version is not known",
        ),
        (
            VOLUME % "{accessModes: [ReadWriteOnce], capacity: {}, nfs: {server: s, path: /}}",
            "spec.capacity.storage: is",
        ),
        (VOLUME % "{accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}", "spec: needs exactly one of nfs"),
        (VOLUME % "{accessModes: [Sometimes], capacity: {storage: 1Gi}}", "spec.accessModes[0]: not one of the values"),
        (CLAIM % "{accessModes: [ReadWriteOnce], resources: {}}", "spec.resources.requests.storage: is required"),
        (CLAIM % "{accessModes: [], resources: {requests: {storage: 1Gi}}}", "spec.accessModes: is empty"),
    ],
)
def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.yaml").write_text(text)

    with pytest.raises(InputError) as caught:
        read_inputs(["m.yaml"])

    assert any(str(one).startswith(f"m.yaml: {line}") for one in caught.value.problems), caught.value.problems


def test_a_profile_is_not_known_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(JOB % ", profile: large, cleanPodPolicy: Never")

    (found,) = read_inputs([str(tmp_path / "m.yaml")])

    assert [(note.path, note.message) for note in found.notes()] == [
        ("spec.profile", "belongs to an environment; this file is read without its values")
    ]
