"""Manifests of PERSIA and NATS as users have them: what they mean, and what is said of those that are wrong."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from persia_infra.errors import InputError
from persia_infra.inputs import Described, read_inputs
from persia_infra.jobs import PersiaJobSpec
from tests.unit.conftest import put
from tests.unit.persia_bad_manifests import BAD, CONTAINER, DELETED, SETS

EXAMPLES = Path(__file__).parents[2] / "examples" / "manifests" / "persia"


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


@pytest.mark.parametrize(("example", "place", "value", "line"), BAD, ids=lambda part: str(part)[:60])
def test_bad_manifests_are_said_in_one_line(
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


def test_there_are_enough_of_them() -> None:
    assert len(BAD) >= 40


def test_stateful_sets_of_2021_are_the_whole_job(read: Callable[[list[Any]], list[Described]]) -> None:
    (job,) = read(documents(SETS))

    assert isinstance(job.spec, PersiaJobSpec)
    replicas = {key: role.replicas for key, role in job.spec.roles.items()}
    assert replicas == {"nnWorker": 8, "dataloader": 240, "embeddingWorker": 100, "embeddingParameterServer": 120}
    assert job.spec.nn_worker is not None
    assert (job.spec.nn_worker.nproc_per_node, job.spec.nn_worker.resources.gpus) == (8, 8)
    assert job.spec.own_nats is not None
    assert job.spec.own_nats.size == 60
    assert job.spec.own_nats.server_resources.limits == {"memory": "32Gi", "cpu": "4"}
    assert job.spec.persia_env.dataloader_entry == "/workspace/persia-exp/data_compose.py"
    said = [note.path for note in job.notes()]
    assert len(said) == len(set(said)) + 3, "each once; only what is said of the launch script has no place of its own"
    assert sum(path.endswith("status") for path in said) == 4


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
