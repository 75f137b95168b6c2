"""The staging stack's cluster and pools by the real engine: from zero, what replaces what, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from persia_infra.rehearsal.engine import Engine
from persia_infra.rehearsal.rehearse import Rehearsal
from tests.support.cluster_access import kubectl, wait_for
from tests.support.project import PROJECT
from tests.support.stack_file import edit

POOL_LABEL = "cloud.google.com/gke-nodepool"


def outputs_of(engine: Engine) -> dict[str, Any]:
    process = engine.start("stack", "output", "--json", "--stack", engine.stack)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    return json.loads(said)


def nodes(rehearsal: Rehearsal) -> dict[str, int]:
    """By the pool's name in the stack."""
    found: dict[str, int] = {}
    for node in rehearsal.observer.get("/api/v1/nodes")["items"]:
        pool = node["metadata"]["labels"]["persia-infra/pool"]
        found[pool] = found.get(pool, 0) + 1
    return found


@pytest.fixture(scope="class")
def staging(rehearsal: Rehearsal) -> Iterator[Engine]:
    """Its pools alone: the jobs have tests of their own."""
    engine = rehearsal.engine(PROJECT, "staging")
    edit(engine.stack_file, "jobs", value={})
    yield engine
    edit(engine.stack_file, "cluster", "deletionProtection", value=False)
    up = engine.up()
    assert up.ok, up.errors
    assert engine.destroy().ok


class TestStaging:
    """These tests build on each other, in this order."""

    def test_gpu_pools_start_empty(self, staging: Engine, rehearsal: Rehearsal) -> None:
        up = staging.up()
        assert up.ok, up.errors
        assert nodes(rehearsal) == {"cpu": 2}

    def test_what_it_exports_is_enough_to_run_on_its_pools(
        self, staging: Engine, rehearsal: Rehearsal, tmp_path: Path
    ) -> None:
        exported = outputs_of(staging)
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(exported["kubeconfig"])
        as_exported = ("--kubeconfig", str(kubeconfig))
        assert "certificate-authority-data" not in exported["kubeconfig"], "it is for the DNS endpoint"
        pods = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"on-{pool}", "namespace": "default"},
                "spec": {
                    "nodeSelector": exported["pools"][pool]["nodeSelector"],
                    "tolerations": exported["pools"][pool]["tolerations"],
                    "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
                },
            }
            for pool in ("l4", "a100")
        ]

        def phases() -> list[str]:
            found = rehearsal.observer.get("/api/v1/namespaces/default/pods")["items"]
            return [pod["status"]["phase"] for pod in found]

        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
        kubectl(rehearsal.control_plane, *as_exported, "apply", "-f", "-", stdin=listed)
        try:
            wait_for("pods on both pools", phases, until=lambda seen: seen == ["Running"] * 2)
            assert nodes(rehearsal) == {"cpu": 2, "l4": 1, "a100": 1}
            self.installer_runs_on_the_pool_that_asked_for_it(rehearsal)
        finally:
            kubectl(rehearsal.control_plane, *as_exported, "delete", "pods", "--all", "--namespace", "default")

    @staticmethod
    def installer_runs_on_the_pool_that_asked_for_it(rehearsal: Rehearsal) -> None:
        def places() -> list[str]:
            pods = rehearsal.observer.get("/api/v1/namespaces/kube-system/pods")["items"]
            return [pod["spec"].get("nodeName", "") for pod in pods if pod["status"]["phase"] == "Running"]

        (place,) = wait_for("one installer", places, until=lambda seen: len(seen) == 1)
        node = rehearsal.observer.get(f"/api/v1/nodes/{place}")
        assert node["metadata"]["labels"]["persia-infra/pool"] == "a100"

    def test_another_machine_type_makes_the_new_pool_before_the_old_one_goes(
        self, staging: Engine, rehearsal: Rehearsal
    ) -> None:
        before = outputs_of(staging)["poolNames"]["cpu"]
        edit(staging.stack_file, "pools", "cpu", "machineType", value="n2-standard-16")
        steps: list[str] = []

        def note(event: dict[str, Any]) -> None:
            done = event.get("resOutputsEvent")
            if done and done["metadata"]["op"] not in ("same", "read"):
                steps.append(f"{done['metadata']['op']} {done['metadata']['type']}")

        up = staging.up(on_event=note)

        assert up.ok, up.errors
        pool = "gcp:container/nodePool:NodePool"
        changed = [step for step in steps if step.endswith(pool)]
        assert changed[0] == f"create-replacement {pool}"
        assert changed[-1] == f"delete-replaced {pool}"
        assert not any("cluster:Cluster" in step for step in steps)
        assert outputs_of(staging)["poolNames"]["cpu"] != before
        found = rehearsal.observer.get("/api/v1/nodes")["items"]
        kinds = {
            node["metadata"]["labels"]["node.kubernetes.io/instance-type"]
            for node in found
            if node["metadata"]["labels"]["persia-infra/pool"] == "cpu"
        }
        assert kinds == {"n2-standard-16"}

    def test_what_would_replace_a_protected_cluster_is_refused_in_preview(self, staging: Engine) -> None:
        edit(staging.stack_file, "cluster", "deletionProtection", value=True)
        up = staging.up()
        assert up.ok, up.errors
        edit(staging.stack_file, "cluster", "multiNetworking", value=True)

        process = staging.start("preview", "--stack", staging.stack)
        said, _ = process.communicate()

        assert process.returncode
        assert "marked for protection" in said
        lines = [line for line in said.splitlines() if "gcp:container:Cluster" in line]
        assert any("replace" in line and "enableMultiNetworking" in line for line in lines), said
        edit(staging.stack_file, "cluster", "multiNetworking", value=False)
        assert staging.preview("--expect-no-changes").ok

    def test_the_preview_of_a_destroy_names_the_protected_cluster(self, staging: Engine) -> None:
        process = staging.start("destroy", "--preview-only", "--stack", staging.stack)
        said, _ = process.communicate()

        assert process.returncode
        assert "staging-cluster" in said
        assert "protect" in said

    def test_the_simulated_api_refuses_in_preview_with_its_own_field_names(self, staging: Engine) -> None:
        """The description can't say this; a program that uses Google's resources directly can."""
        program = staging.project_folder / "stacks" / "__main__.py"
        original = program.resolve()
        program.unlink()
        program.write_text(
            original.read_text()
            + "\nfrom pulumi_gcp import container\n"
            + "container.NodePool('own', cluster='c', location='us-central1', project='p', node_count=1,\n"
            + "    node_config=container.NodePoolNodeConfigArgs(image_type='DEBIAN', taints=[\n"
            + "        container.NodePoolNodeConfigTaintArgs(key='a', value='b', effect='NoSchedule')]))\n"
        )
        try:
            preview = staging.preview()
        finally:
            program.unlink()
            program.symlink_to(original)

        assert not preview.ok
        assert any("INVALID_ARGUMENT: nodePool.config.taints[0].effect" in error for error in preview.errors)
