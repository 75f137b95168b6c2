"""The dev stack by the real CLI on the real control plane, from the first up to the last object gone."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from persia_infra.rehearsal.engine import Engine
from persia_infra.rehearsal.rehearse import Rehearsal
from tests.support.project import PROJECT
from tests.support.stack_file import edit

NAMESPACE = "training"


def stateful_sets(rehearsal: Rehearsal) -> dict[str, dict[str, Any]]:
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
    return {item["metadata"]["name"]: item for item in rehearsal.observer.get(path)["items"]}


def pod_ids(rehearsal: Rehearsal) -> dict[str, str]:
    items = rehearsal.observer.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


@pytest.fixture(scope="module")
def objects_before(rehearsal: Rehearsal) -> set[str]:
    return rehearsal.observer.objects()


@pytest.fixture(scope="module")
def dev(rehearsal: Rehearsal, objects_before: set[str]) -> Iterator[Engine]:
    assert not any(kind.startswith("nodes ") for kind in objects_before)
    engine = rehearsal.engine(PROJECT, "dev")
    yield engine
    assert engine.destroy().ok


class TestLifecycle:
    """These tests build on each other, in this order."""

    def test_preview_of_an_environment_that_does_not_exist_yet(self, dev: Engine, rehearsal: Rehearsal) -> None:
        before = rehearsal.observer.objects()
        preview = dev.preview()
        assert preview.ok, preview.errors
        assert set(preview.changes) == {"create"}
        assert rehearsal.observer.objects() == before

    def test_up_brings_every_pod_up(self, dev: Engine, rehearsal: Rehearsal) -> None:
        up = dev.up()
        assert up.ok, up.errors
        pods = rehearsal.observer.pods()
        assert pods.all_running, pods.pending
        assert pods.wanted > 0
        assert all(count > 0 for count in rehearsal.observer.nodes().values())

    def test_second_up_changes_nothing(self, dev: Engine) -> None:
        assert dev.preview("--expect-no-changes").ok
        up = dev.up("--expect-no-changes")
        assert up.ok, up.errors
        assert up.changed == ()

    def test_refresh_of_what_nobody_touched_is_clean(self, dev: Engine) -> None:
        refresh = dev.refresh("--expect-no-changes")
        assert refresh.ok, refresh.errors

    def test_one_change_is_made_in_place(self, dev: Engine, rehearsal: Rehearsal) -> None:
        pods = pod_ids(rehearsal)
        edit(dev.stack_file, "jobs", "adult-income", "embeddingWorker", "replicas", value=2)
        up = dev.up()
        assert up.ok, up.errors
        assert {change.split()[0] for change in up.changed} == {"update"}
        now = pod_ids(rehearsal)
        assert set(now) - set(pods) == {"adult-income-embedding-worker-1"}
        # The workers that were there are told how many they are now; nobody else restarts.
        others = {name: uid for name, uid in pods.items() if "embedding-worker" not in name}
        assert {name: now[name] for name in others} == others

    def test_change_made_behind_its_back_is_seen_and_put_right(self, dev: Engine, rehearsal: Rehearsal) -> None:
        name = next(name for name in stateful_sets(rehearsal) if "embedding-worker" in name)
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{name}"
        rehearsal.observer.patch(path, {"spec": {"replicas": 1}})
        refresh = dev.refresh()
        assert refresh.ok, refresh.errors
        assert refresh.changes["update"] == 1
        up = dev.up()
        assert up.ok, up.errors
        assert stateful_sets(rehearsal)[name]["spec"]["replicas"] == 2
        assert dev.refresh("--expect-no-changes").ok

    def test_destroy_leaves_no_object(self, dev: Engine, rehearsal: Rehearsal, objects_before: set[str]) -> None:
        destroy = dev.destroy()
        assert destroy.ok, destroy.errors
        assert dev.resources() == []
        assert rehearsal.observer.objects() - objects_before == set()


def test_up_after_a_killed_engine_converges_with_nothing_doubled(rehearsal: Rehearsal) -> None:
    engine = rehearsal.engine(PROJECT, "dev")
    process = engine.start("up", "--yes", "--skip-preview", "--stack", "dev")
    try:
        while not stateful_sets(rehearsal):
            assert process.poll() is None, process.output
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    try:
        engine.cancel()
        up = engine.up()
        assert up.ok, up.errors
        assert rehearsal.observer.pods().all_running
        made = Counter(entry["type"] for entry in engine.resources())
        assert len(stateful_sets(rehearsal)) == made["kubernetes:apps/v1:StatefulSet"]
        assert len(rehearsal.observer.nodes()) == made["gcp:container/nodePool:NodePool"]
        assert engine.up("--expect-no-changes").ok
    finally:
        assert engine.destroy().ok


def test_state_holds_no_credentials(rehearsal: Rehearsal) -> None:
    token = json.loads(rehearsal.control_plane.kubeconfig.read_text())["users"][0]["user"]["token"].encode()
    states = list(rehearsal.control_plane.folder.glob("engine-*/state/**/*.json"))
    assert states
    assert not [file for file in states if token in file.read_bytes()]
