"""Files that are written into a PERSIA job, and the job as one object of its operator."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.persia_pods import container, env, pod


class TestInlineConfiguration:
    @pytest.fixture
    def inline(self, run_ads: Callable[..., Any], description: dict[str, Any]) -> Callable[[str], Any]:
        paths = description["jobs"]["ads"]["persiaEnv"]
        entries = {key: path for key, path in paths.items() if key.endswith("_ENTRY")}
        return lambda text: run_ads(persiaEnv=entries, globalConfig={"common_config": {}}, embeddingConfig=text)

    def test_files_are_mounted_where_the_variables_say(self, inline: Callable[[str], Any]) -> None:
        recording = inline("slots_config: {a: {dim: 8}}\n")
        config = recording.one("ConfigMap", "dev-ads-config").inputs

        assert set(config["data"]) == {"global_config.yaml", "embedding_config.yaml"}
        assert env(recording, "embedding-ps")["PERSIA_GLOBAL_CONFIG"] == "/etc/persia/global_config.yaml"
        assert {"name": "persia-config", "configMap": {"name": config["metadata"]["name"]}} in pod(
            recording, "embedding-ps"
        )["volumes"]
        assert {"name": "persia-config", "mountPath": "/etc/persia", "readOnly": True} in container(
            recording, "embedding-ps"
        )["volumeMounts"]
        assert "dev-ads-config" in recording.one("StatefulSet", "dev-ads-embedding-ps").depends_on

    def test_a_changed_file_rolls_the_pods(self, inline: Callable[[str], Any]) -> None:
        before, again, after = (
            inline(text).one("ConfigMap", "dev-ads-config").inputs["metadata"]["name"]
            for text in (
                "slots_config: {a: {dim: 4}}\n",
                "slots_config: {a: {dim: 4}}\n",
                "slots_config: {a: {dim: 8}}\n",
            )
        )

        assert before == again
        assert before != after

    def test_only_the_roles_that_read_the_files_have_them(self, inline: Callable[[str], Any]) -> None:
        before, after = (inline(f"slots_config: {{a: {{dim: {dim}}}}}\n") for dim in (4, 8))

        for role, rolls in (("embedding-ps", True), ("embedding-worker", True), ("nn-worker", False)):
            assert (pod(before, role) != pod(after, role)) is rolls, role


class TestInlineScripts:
    @pytest.fixture
    def scripted(self, run_ads: Callable[..., Any], description: dict[str, Any]) -> Callable[[str], Any]:
        found = description["jobs"]["ads"]
        paths = {key: path for key, path in found["persiaEnv"].items() if key.endswith("_CONFIG")}

        def build(text: str) -> Any:
            worker = {**found["nnWorker"], "script": text}
            return run_ads(persiaEnv=paths, nnWorker=worker, dataloader={**found["dataloader"], "script": "load()"})

        return build

    def test_it_is_where_the_launcher_looks(self, scripted: Callable[[str], Any]) -> None:
        recording = scripted("train()\n")
        config = recording.one("ConfigMap", "dev-ads-nn-worker-script").inputs

        assert config["data"] == {"train.py": "train()\n"}
        assert env(recording, "nn-worker")["PERSIA_NN_WORKER_ENTRY"] == "/etc/persia-script/train.py"
        mount = {"name": "nn-worker-script", "mountPath": "/etc/persia-script", "readOnly": True}
        assert mount in container(recording, "nn-worker")["volumeMounts"]

    def test_a_changed_script_rolls_its_own_role_alone(self, scripted: Callable[[str], Any]) -> None:
        before, after = scripted("train()\n"), scripted("train(2)\n")

        assert pod(before, "nn-worker") != pod(after, "nn-worker")
        assert pod(before, "dataloader") == pod(after, "dataloader")


class TestThroughTheOperator:
    def test_the_job_is_one_object_in_persias_own_words(
        self, run_ads: Callable[..., Any], description: dict[str, Any]
    ) -> None:
        recording = run_ads(mode="operator", enableMetrics=False)
        made = recording.one("persia.com/v1:PersiaJob", "dev-ads")

        assert recording.names("StatefulSet") == {"dev-ads-nats-servers"}
        described = description["jobs"]["ads"]
        spec = made.inputs["spec"]
        assert spec["persiaEnv"] == described["persiaEnv"]
        assert spec["enableMetrics"] is False
        assert spec["env"] == [{"name": "PERSIA_NATS_URL", "value": "nats://ads-nats:4222"}]
        assert spec["embeddingParameterServer"] == described["embeddingParameterServer"]
        assert spec["nnWorker"]["resources"]["limits"]["nvidia.com/gpu"] == "1", "its definition takes text only"
        assert {"name": "shared-memory", "mountPath": "/dev/shm"} in spec["nnWorker"]["volumeMounts"]  # noqa: S108
        assert "dev-ads-nats" in made.depends_on

    def test_inline_files_are_volumes_of_the_object(
        self, run_ads: Callable[..., Any], description: dict[str, Any]
    ) -> None:
        paths = description["jobs"]["ads"]["persiaEnv"]
        entries = {key: path for key, path in paths.items() if key.endswith("_ENTRY")}
        recording = run_ads(
            mode="operator", persiaEnv=entries, globalConfig={}, embeddingConfig="slots_config: {a: {dim: 8}}"
        )
        spec = recording.one("persia.com/v1:PersiaJob", "dev-ads").inputs["spec"]
        config = recording.one("ConfigMap", "dev-ads-config").inputs["metadata"]["name"]

        assert {"name": "persia-config", "configMap": {"name": config}} in spec["volumes"]
        assert spec["persiaEnv"]["PERSIA_GLOBAL_CONFIG"] == "/etc/persia/global_config.yaml"
        mounted = {
            role: [mount["name"] for mount in spec[role]["volumeMounts"]]
            for role in ("embeddingWorker", "embeddingParameterServer", "dataloader")
        }
        assert mounted == {
            "embeddingWorker": ["data", "persia-config"],
            "embeddingParameterServer": ["data", "persia-config"],
            "dataloader": ["data"],
        }
