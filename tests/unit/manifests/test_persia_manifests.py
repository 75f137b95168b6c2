"""Manifests of PERSIA and NATS as users have them: what they mean, and what is said of those that are wrong."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from persia_infra.jobs import PersiaJobSpec
from persia_infra.manifests.inputs import Described, read_inputs
from persia_infra.spec.errors import InputError
from tests.support.environments import put
from tests.support.persia_bad_manifests import BAD, DELETED
from tests.support.project import PROJECT
from tests.support.stateful_sets_bad_manifests import BAD_SETS, CONTAINER, SETS

EXAMPLES = PROJECT / "examples" / "manifests" / "persia"


def documents(example: str) -> list[Any]:
    # Loaded one by one, so that what YAML shares by an anchor is not changed twice.
    return [copy.deepcopy(one) for one in yaml.safe_load_all((EXAMPLES / example).read_text())]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Any]], list[Described]]:
    monkeypatch.chdir(tmp_path)

    def run(content: list[Any]) -> list[Described]:
        Path("f.yaml").write_text(yaml.safe_dump_all(content, sort_keys=False))
        return read_inputs(["f.yaml"])

    return run


@pytest.mark.parametrize(("example", "place", "value", "line"), BAD + BAD_SETS, ids=lambda part: str(part)[:60])
def test_a_wrong_manifest_is_refused_with_exactly_one_line(
    read: Callable[[list[Any]], list[Described]], example: str, place: str, value: Any, line: str
) -> None:
    content = documents(example)
    if value is DELETED:
        put(content, place)
    else:
        put(content, place, value)
    if example == SETS and place == "0/metadata/name":
        put(content, f"0/{CONTAINER}/args", ["/workspace/launch.sh"])

    with pytest.raises(InputError) as refused:
        read(content)

    assert [str(problem) for problem in refused.value.problems] == [f"f.yaml: {line}"]


def test_stateful_sets_of_2021_are_the_whole_job(read: Callable[[list[Any]], list[Described]]) -> None:
    (job,) = read(documents(SETS))

    assert isinstance(job.spec, PersiaJobSpec)
    replicas = {key: role.replicas for key, role in job.spec.roles.items()}
    assert replicas == {"nnWorker": 8, "dataloader": 240, "embeddingWorker": 100, "embeddingParameterServer": 120}
    assert job.spec.nn_worker is not None
    assert (job.spec.nn_worker.nproc_per_node, job.spec.nn_worker.resources.limits["nvidia.com/gpu"]) == (8, "8")
    assert job.spec.own_nats is not None
    assert job.spec.own_nats.size == 60
    assert job.spec.own_nats.server_resources.limits == {"memory": "32Gi", "cpu": "4"}
    assert job.spec.persia_env.dataloader_entry == "/workspace/persia-exp/data_compose.py"


def test_what_is_lost_of_stateful_sets_is_reported_once_per_field(read: Callable[[list[Any]], list[Described]]) -> None:
    content = documents(SETS)
    put(content, "1/spec/podManagementPolicy", "Parallel")
    put(content, "2/spec/updateStrategy", {"type": "OnDelete"})
    put(content, "2/spec/template/metadata/annotations", {"team": "ads"})
    put(content, "2/metadata/annotations", {"team": "ads"})
    put(content, "2/metadata/uid", "0b7f")
    put(content, f"3/{CONTAINER}/ports", [{"containerPort": 8888}])
    content[3]["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "PERSIA_PORT", "value": "8888"})
    put(content, f"3/{CONTAINER}/args", ["python", "server.py", "embserver"])

    (job,) = read(content)

    everywhere, first_three = "documents[0,1,2,3]", "documents[0,1,2]"
    container = "spec.template.spec.containers[0]"
    assert [note.path for note in job.notes() if note.path] == [
        "documents[0].metadata.name",
        "documents[1].metadata.name",
        "documents[1].spec.podManagementPolicy",
        "documents[2].metadata.name",
        "documents[2].metadata.annotations",
        "documents[2].metadata",
        "documents[2].spec.updateStrategy",
        "documents[2].spec.template.metadata.annotations",
        "documents[3].metadata.name",
        f"documents[3].{container}.ports",
        f"documents[3].{container}.args",
        f"documents[3].{container}.env",
        f"{first_three}.{container}.args",
        f"{everywhere}.metadata.labels",
        f"{everywhere}.spec.serviceName",
        f"{everywhere}.spec.selector",
        f"{everywhere}.spec.template.metadata.labels",
        f"{everywhere}.status",
        f"{everywhere}.{container}.env",
        "documents[4]",
        "documents[4].spec.resources",
    ]
    messages = {note.message for note in job.notes()}
    assert len(messages) >= 20
    assert "uid is left out: it belongs to the existing object, not to a new one" in messages
    assert "PERSIA_PORT has no effect: persia-launcher starts the role on PERSIA's own port" in messages


def test_what_kubernetes_fills_in_is_no_loss(read: Callable[[list[Any]], list[Described]]) -> None:
    content = documents(SETS)
    before = list(read(content)[0].notes())
    put(content, "0/spec/template/spec/dnsPolicy", "ClusterFirst")
    put(content, "0/spec/template/spec/terminationGracePeriodSeconds", 30)
    put(content, f"0/{CONTAINER}/terminationMessagePath", "/dev/termination-log")
    put(content, f"0/{CONTAINER}/volumeMounts", None)

    assert list(read(content)[0].notes()) == before


NO_VOLUME = "no volume is mounted at /workspace/persia-exp in {}; mount one unless the image contains the files"


@pytest.mark.parametrize(
    ("mounted", "lines"),
    [
        ([], [NO_VOLUME.format("embeddingWorker, embeddingParameterServer, nnWorker, dataloader")]),
        ([0, 2, 3], [NO_VOLUME.format("dataloader")]),
        ([0, 1, 2, 3], []),
    ],
)
def test_paths_that_no_volume_is_mounted_over_are_reported(
    read: Callable[[list[Any]], list[Described]], mounted: list[int], lines: list[str]
) -> None:
    content = documents(SETS)
    for index in mounted:
        share = {"name": "workspace", "nfs": {"server": "10.1.0.2", "path": "/workspace"}}
        put(content, f"{index}/spec/template/spec/volumes", [share])
        put(content, f"{index}/{CONTAINER}/volumeMounts", [{"name": "workspace", "mountPath": "/workspace"}])

    (job,) = read(content)

    assert [note.message for note in job.notes() if "no volume is mounted" in note.message] == lines


def test_the_namespace_of_the_roles_is_the_jobs(read: Callable[[list[Any]], list[Described]]) -> None:
    content = documents(SETS)
    for index in (0, 1, 3, 4):
        put(content, f"{index}/metadata/namespace", "ads")

    (job,) = read(content)

    assert isinstance(job.spec, PersiaJobSpec)
    assert job.spec.namespace == "ads"


@pytest.mark.parametrize(
    ("index", "line"),
    [
        (
            2,
            "documents[2].metadata.namespace: differs from the other roles', but a job has only one namespace; make "
            "them equal",
        ),
        (
            4,
            "documents[4].metadata.namespace: differs from the namespace of the roles, but a job and its NATS share "
            "one; make them equal",
        ),
    ],
)
def test_two_namespaces_are_refused(read: Callable[[list[Any]], list[Described]], index: int, line: str) -> None:
    content = documents(SETS)
    put(content, "0/metadata/namespace", "ads")
    put(content, f"{index}/metadata/namespace", "search")

    with pytest.raises(InputError) as refused:
        read(content)

    assert str(refused.value) == f"f.yaml: {line}"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("My Job.yml", "'My Job' is not a valid name"),
        (f"{'a' * 60}.yaml", "the name has 60 characters"),
        ("7.yaml", "'7' is not a valid name"),
    ],
)
def test_a_file_whose_name_no_job_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(file).write_text((EXAMPLES / SETS).read_text())

    with pytest.raises(InputError) as refused:
        read_inputs([file])

    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"{file}: the StatefulSets are read as one job with the file's name: {said}")
    assert line.endswith("; rename the file")


def test_every_document_is_reported_besides_the_stateful_sets(read: Callable[[list[Any]], list[Described]]) -> None:
    content = documents(SETS)
    put(content, "0/spec/replicas", "many")
    put(content, "4/spec/size", "sixty")

    with pytest.raises(InputError) as refused:
        read(content)

    assert [problem.path for problem in refused.value.problems] == [
        "documents[0].spec.replicas",
        "documents[4].spec.size",
    ]


def test_paths_in_the_containers_variables_win_over_the_recipes(
    read: Callable[[list[Any]], list[Described]],
) -> None:
    content = documents(SETS)
    given = {"name": "PERSIA_GLOBAL_CONFIG", "value": "/nfs/global.yml"}
    content[2]["spec"]["template"]["spec"]["containers"][0]["env"].append(given)

    (job,) = read(content)

    assert isinstance(job.spec, PersiaJobSpec)
    assert job.spec.global_config_path == "/nfs/global.yml"


def test_a_nats_that_is_not_in_the_file_stays_where_it_is(read: Callable[[list[Any]], list[Described]]) -> None:
    (job,) = read(documents(SETS)[:4])

    assert isinstance(job.spec, PersiaJobSpec)
    assert job.spec.own_nats is None
    assert job.spec.given_nats_url is not None
    assert job.spec.given_nats_url.value == "nats://persia-bus:4222"
