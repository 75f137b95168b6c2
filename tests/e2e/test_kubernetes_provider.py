"""Objects of the simulated kubernetes package, with the real engine, API server and controllers."""

import pulumi

from tests.support.inline_stack import Program
from tests.support.provider_project import Project, config_map, deployment, k8s, nothing


class TestObjects:
    def test_an_object_is_previewed_created_and_then_unchanged(self, project: Project) -> None:
        program = deployment(project, replicas=2)
        assert project.preview(program) == {"create": 1}
        assert project.up(program) == {"create": 1}
        assert project.live("deployment", "web")["status"]["availableReplicas"] == 2
        assert project.up(program) == {}

    def test_an_update_removes_what_the_program_no_longer_declares(self, project: Project) -> None:
        project.up(deployment(project, minReadySeconds=1))
        before = project.live("deployment", "web")
        assert project.up(deployment(project, replicas=2)) == {"update": 1}
        after = project.live("deployment", "web")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"]["replicas"] == 2
        assert "minReadySeconds" not in after["spec"]

    def test_an_object_is_replaced_if_the_api_server_calls_a_field_immutable(self, project: Project) -> None:
        def claim(mode: str) -> Program:
            def program() -> None:
                k8s.core.v1.PersistentVolumeClaim(
                    "disk",
                    metadata=project.metadata("disk", annotations={"pulumi.com/skipAwait": "true"}),
                    spec={
                        "accessModes": ["ReadWriteOnce"],
                        "volumeMode": mode,
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                )

            return program

        project.up(claim("Filesystem"))
        before = project.live("pvc", "disk")["metadata"]["uid"]
        assert project.preview(claim("Block")) == {"replace": 1}
        assert project.up(claim("Block")) == {"replace": 1}
        after = project.live("pvc", "disk")
        assert after["metadata"]["uid"] != before
        assert after["spec"]["volumeMode"] == "Block"

    def test_a_deployment_is_replaced_if_its_selector_changes(self, project: Project) -> None:
        project.up(deployment(project))
        assert project.up(deployment(project, label="other")) == {"replace": 1}
        assert project.live("deployment", "web")["spec"]["selector"]["matchLabels"] == {"app": "other"}

    def test_a_change_outside_of_pulumi_is_shown_and_reverted(self, project: Project) -> None:
        program = deployment(project)
        project.up(program)
        assert project.refresh() == {}
        project.kubectl("set", "image", "deployment/web", "main=registry.example/web:2")
        project.kubectl("scale", "deployment/web", "--replicas=2")
        assert project.refresh() == {"update": 1}
        assert project.up(program) == {"update": 1}
        spec = project.live("deployment", "web")["spec"]
        assert spec["replicas"] == 1
        assert spec["template"]["spec"]["containers"][0]["image"] == "registry.example/web:1"

    def test_an_object_deleted_outside_of_pulumi_is_created_again(self, project: Project) -> None:
        program = config_map(project, data={"a": "1"})
        project.up(program)
        project.kubectl("delete", "configmap", project.resource("ConfigMap")["outputs"]["metadata"]["name"])
        assert project.refresh() == {"delete": 1}
        assert project.up(program) == {"create": 1}

    def test_an_existing_object_is_imported(self, project: Project) -> None:
        project.kubectl("create", "deployment", "web", "--image=registry.example/web:1")

        def program() -> None:
            container = {"name": "web", "image": "registry.example/web:1"}
            k8s.apps.v1.Deployment(
                "web",
                metadata=project.metadata("web", labels={"app": "web"}),
                spec={
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
                },
                opts=pulumi.ResourceOptions(import_=f"{project.namespace}/web"),
            )

        assert project.up(program) == {"import": 1}
        assert project.up(program) == {}

    def test_delete_waits_until_the_object_is_gone(self, project: Project) -> None:
        def held() -> None:
            k8s.core.v1.ConfigMap(
                "held",
                metadata=project.metadata("held", finalizers=["example.com/hold"]),
                opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(delete="2s")),
            )

        project.up(held)
        message = project.refused(nothing)
        assert f"ConfigMap {project.namespace}/held: still there after 2 s" in message
        assert "example.com/hold" in message
        removal = '[{"op": "remove", "path": "/metadata/finalizers"}]'
        project.kubectl("patch", "configmap", "held", "--type=json", f"-p={removal}")
        assert project.up(nothing) == {"delete": 1}

    def test_a_namespace_and_its_objects_can_be_created_in_one_up(self, project: Project) -> None:
        name = f"{project.namespace}-inner"

        def program() -> None:
            space = k8s.core.v1.Namespace("space", metadata={"name": name})
            k8s.core.v1.ConfigMap("settings", metadata={"namespace": space.metadata["name"], "name": "settings"})

        assert project.preview(program) == {"create": 2}
        assert project.up(program) == {"create": 2}
        assert project.up(nothing) == {"delete": 2}
        assert project.kubectl("get", "namespace", name, "--ignore-not-found") == ""


class TestNames:
    def test_an_automatic_name_stays_the_same(self, project: Project) -> None:
        project.up(config_map(project))
        name = project.resource("ConfigMap")["outputs"]["metadata"]["name"]
        assert name.startswith("settings-")
        assert len(name) == len("settings-") + 8
        assert project.up(config_map(project, {"labels": {"a": "b"}})) == {"update": 1}
        assert project.resource("ConfigMap")["outputs"]["metadata"]["name"] == name

    def test_a_replaced_object_with_an_automatic_name_gets_a_new_one(self, project: Project) -> None:
        project.up(config_map(project, data={"value": "1"}))
        before = project.resource("ConfigMap")["outputs"]["metadata"]["name"]
        assert project.up(config_map(project, data={"value": "2"})) == {"replace": 1}
        after = project.resource("ConfigMap")["outputs"]["metadata"]["name"]
        assert after != before
        assert project.live("configmap", after)["data"] == {"value": "2"}


class TestDefinitions:
    def test_a_kind_and_an_object_of_it_can_be_created_in_one_up(self, project: Project) -> None:
        group = f"{project.namespace}.example.com"
        spec_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec_schema}}},
        }

        def program() -> None:
            kind = k8s.apiextensions.v1.CustomResourceDefinition(
                "kind",
                metadata={"name": f"trials.{group}"},
                spec={
                    "group": group,
                    "scope": "Namespaced",
                    "names": {"plural": "trials", "kind": "Trial"},
                    "versions": [version],
                },
            )
            k8s.apiextensions.CustomResource(
                "trial",
                api_version=f"{group}/v1",
                kind="Trial",
                metadata=project.metadata("first"),
                spec={"steps": 3},
                opts=pulumi.ResourceOptions(depends_on=[kind]),
            )

        assert project.preview(program) == {"create": 2}
        assert project.up(program) == {"create": 2}
        assert project.live(f"trials.{group}", "first")["spec"] == {"steps": 3}
        assert project.up(program) == {}
        project.destroy()
        assert project.kubectl("get", "crd", f"trials.{group}", "--ignore-not-found") == ""
