"""Files that are written into a PERSIA job, and the job as one object of its operator."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.kube_objects import Objects
from tests.support.persia_pods import container, env, pod


class TestInlineConfiguration:
    @pytest.fixture
    def inline(self, ads: Callable[..., Objects], description: dict[str, Any]) -> Callable[[str], Objects]:
        paths = description["jobs"]["ads"]["persiaEnv"]
        entries = {key: path for key, path in paths.items() if key.endswith("_ENTRY")}
        return lambda text: ads(persiaEnv=entries, globalConfig={"common_config": {}}, embeddingConfig=text)

    def test_files_are_mounted_where_the_variables_say(self, inline: Callable[[str], Objects]) -> None:
        job = inline("slots_config: {a: {dim: 8}}\n")
        config = job.hashed("ConfigMap", "ads-config")

        assert set(config["data"]) == {"global_config.yaml", "embedding_config.yaml"}
        assert env(job, "embedding-ps")["PERSIA_GLOBAL_CONFIG"] == "/etc/persia/global_config.yaml"
        assert {"name": "persia-config", "configMap": {"name": config["metadata"]["name"]}} in pod(job, "embedding-ps")[
            "volumes"
        ]
        assert {"name": "persia-config", "mountPath": "/etc/persia", "readOnly": True} in container(
            job, "embedding-ps"
        )["volumeMounts"]
        assert ("ConfigMap", config["metadata"]["name"]) in job.needs("StatefulSet", "ads-embedding-ps")

    def test_a_changed_file_rolls_the_pods(self, inline: Callable[[str], Objects]) -> None:
        before, again, after = (
            inline(text).hashed("ConfigMap", "ads-config")["metadata"]["name"]
            for text in (
                "slots_config: {a: {dim: 4}}\n",
                "slots_config: {a: {dim: 4}}\n",
                "slots_config: {a: {dim: 8}}\n",
            )
        )

        assert before == again
        assert before != after

    def test_only_the_roles_that_read_the_files_have_them(self, inline: Callable[[str], Objects]) -> None:
        before, after = (inline(f"slots_config: {{a: {{dim: {dim}}}}}\n") for dim in (4, 8))

        for role, rolls in (("embedding-ps", True), ("embedding-worker", True), ("nn-worker", False)):
            assert (pod(before, role) != pod(after, role)) is rolls, role


class TestInlineScripts:
    @pytest.fixture
    def scripted(self, ads: Callable[..., Objects], description: dict[str, Any]) -> Callable[[str], Objects]:
        found = description["jobs"]["ads"]
        paths = {key: path for key, path in found["persiaEnv"].items() if key.endswith("_CONFIG")}

        def build(text: str) -> Objects:
            worker = {**found["nnWorker"], "script": text}
            return ads(persiaEnv=paths, nnWorker=worker, dataloader={**found["dataloader"], "script": "load()"})

        return build

    def test_a_script_is_mounted_where_the_launcher_looks_for_it(self, scripted: Callable[[str], Objects]) -> None:
        job = scripted("train()\n")
        config = job.hashed("ConfigMap", "ads-nn-worker-script")

        assert config["data"] == {"train.py": "train()\n"}
        assert env(job, "nn-worker")["PERSIA_NN_WORKER_ENTRY"] == "/etc/persia-script/train.py"
        mount = {"name": "nn-worker-script", "mountPath": "/etc/persia-script", "readOnly": True}
        assert mount in container(job, "nn-worker")["volumeMounts"]

    def test_a_changed_script_rolls_its_own_role_alone(self, scripted: Callable[[str], Objects]) -> None:
        before, after = scripted("train()\n"), scripted("train(2)\n")

        assert pod(before, "nn-worker") != pod(after, "nn-worker")
        assert pod(before, "dataloader") == pod(after, "dataloader")


class TestThroughTheOperator:
    def test_the_job_is_one_object_in_persias_own_words(
        self, ads: Callable[..., Objects], description: dict[str, Any]
    ) -> None:
        job = ads(mode="operator", enableMetrics=False)
        own = job.one("PersiaJob", "ads")

        assert job.names("StatefulSet") == {"ads-nats"}
        described = description["jobs"]["ads"]
        spec = own.body["spec"]
        assert spec["persiaEnv"] == described["persiaEnv"]
        assert spec["enableMetrics"] is False
        assert spec["env"] == [{"name": "PERSIA_NATS_URL", "value": "nats://ads-nats:4222"}]
        assert spec["embeddingParameterServer"] == described["embeddingParameterServer"]
        assert spec["nnWorker"]["resources"]["limits"]["nvidia.com/gpu"] == "1", "its definition takes text only"
        assert {"name": "shared-memory", "mountPath": "/dev/shm"} in spec["nnWorker"]["volumeMounts"]  # noqa: S108
        assert own.type_token == "kubernetes:persia.com/v1:PersiaJob"
        assert ("StatefulSet", "ads-nats") in job.needs("PersiaJob", "ads")

    def test_inline_files_are_volumes_of_the_object(
        self, ads: Callable[..., Objects], description: dict[str, Any]
    ) -> None:
        paths = description["jobs"]["ads"]["persiaEnv"]
        entries = {key: path for key, path in paths.items() if key.endswith("_ENTRY")}
        job = ads(mode="operator", persiaEnv=entries, globalConfig={}, embeddingConfig="slots_config: {a: {dim: 8}}")
        spec = job.body("PersiaJob", "ads")["spec"]
        config = job.hashed("ConfigMap", "ads-config")["metadata"]["name"]

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
