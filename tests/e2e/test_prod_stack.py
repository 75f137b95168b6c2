"""The prod stack at its full size on the real control plane."""

from collections.abc import Iterator

import pytest

from persia_infra.rehearsal.engine import Engine
from persia_infra.rehearsal.rehearse import Rehearsal
from tests.support.project import PROJECT
from tests.support.stack_file import edit

JOB, NAMESPACE = "criteo", "training"
WANTED = {"nn-worker": 8, "dataloader": 240, "embedding-worker": 100, "embedding-ps": 120, "nats": 60}


def running(rehearsal: Rehearsal, role: str) -> dict[str, str]:
    """Names and ids of the role's pods that run."""
    selector = f"app.kubernetes.io/component={role}"
    found = rehearsal.observer.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}")["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found if pod["status"].get("phase") == "Running"}


@pytest.fixture(scope="module")
def prod(rehearsal: Rehearsal) -> Iterator[Engine]:
    engine = rehearsal.engine(PROJECT, "prod")
    edit(engine.stack_file, "cluster", "deletionProtection", value=False)
    yield engine
    assert engine.destroy().ok


class TestFullSize:
    """These tests build on each other, in this order."""

    def test_one_up_brings_all_528_pods_up(self, prod: Engine, rehearsal: Rehearsal) -> None:
        up = prod.up()
        assert up.ok, up.errors
        assert rehearsal.observer.pods().all_running
        assert {role: len(running(rehearsal, role)) for role in WANTED} == WANTED
        assert sum(WANTED.values()) == 528
        nodes = rehearsal.observer.nodes()
        assert sum(nodes.values()) >= 138
        by_pool = {name.removeprefix("prod-").rpartition("-")[0]: count for name, count in nodes.items()}
        assert (by_pool["nn"], by_pool["embedding-worker"], by_pool["embedding-ps"]) == (8, 100, 30)

    def test_a_second_up_changes_nothing(self, prod: Engine) -> None:
        up = prod.up("--expect-no-changes")
        assert up.ok, up.errors

    def test_more_middleware_touches_nothing_else(self, prod: Engine, rehearsal: Rehearsal) -> None:
        others = {role: running(rehearsal, role) for role in WANTED if role != "embedding-worker"}
        edit(prod.stack_file, "jobs", JOB, "embeddingWorker", "replicas", value=110)

        up = prod.up()

        assert up.ok, up.errors
        assert [change.split()[0] for change in up.changed] == ["update"]
        assert up.changed[0].endswith("embedding-worker")
        assert len(running(rehearsal, "embedding-worker")) == 110
        assert {role: running(rehearsal, role) for role in others} == others
