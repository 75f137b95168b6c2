"""The simulated kubernetes package under the real engine, on the real API server, controllers and scheduler."""

import base64
import copy
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes
import pytest
from pulumi import automation

from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.rehearsal.provider.kubernetes import Kubernetes
from persia_infra.rehearsal.provider.server import ProviderServer

Program = Callable[[], None]
# The arguments below are plain dictionaries: these tests are about the provider, not about the SDK's types.
k8s: Any = pulumi_kubernetes
PASSWORD = "correct-horse-battery"
LABELS = {"app": "probe"}


@pytest.fixture(scope="module")
def port(control_plane: ControlPlane) -> Iterator[int]:
    """The provider, on a control plane that has one node."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "provider-probe", "labels": {"probe": "provider"}},
        "status": {
            resources: {"cpu": "8", "memory": "32Gi", "pods": "50"} for resources in ("allocatable", "capacity")
        },
    }
    kubectl(control_plane, "create", "-f", "-", stdin=json.dumps(node))
    server = ProviderServer(Kubernetes)
    yield server.port
    server.stop()
    kubectl(control_plane, "delete", "node", "provider-probe")


class Project:
    """One Pulumi project with a state of its own, driven as the CLI would be."""

    def __init__(self, folder: Path, control_plane: ControlPlane, port: int) -> None:
        self.control_plane = control_plane
        self._folder = folder
        self.namespace = f"probe-{os.urandom(3).hex()}"
        self.kubectl("create", "namespace", self.namespace)
        (folder / "state").mkdir()
        self._stack = automation.create_stack(
            "dev",
            project_name="probe",
            program=lambda: None,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(folder),
                env_vars={
                    "PATH": control_plane.environment["PATH"],
                    "PULUMI_BACKEND_URL": f"file://{folder}/state",
                    "PULUMI_HOME": str(folder / "home"),
                    "PULUMI_CONFIG_PASSPHRASE": "only for this test",
                    "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{port}",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                },
            ),
        )

    def up(self, program: Program) -> dict[str, int]:
        """What was done, by kind of step."""
        return _counted(self._stack.up(program=program).summary.resource_changes)

    def preview(self, program: Program) -> dict[str, int]:
        return _counted(self._stack.preview(program=program).change_summary)

    def refused(self, program: Program) -> str:
        """The CLI's words about an update that fails."""
        try:
            self._stack.up(program=program)
        except automation.CommandError as error:
            said = str(error)
        else:
            raise AssertionError("the update succeeded")
        return said

    def refresh(self, program: Program) -> dict[str, int]:
        return _counted(self._stack.refresh(program=program).summary.resource_changes)

    def destroy(self) -> None:
        self._stack.destroy()

    def outputs(self) -> automation.OutputMap:
        return self._stack.outputs()

    def resource(self, kind: str) -> dict[str, Any]:
        found = [item for item in self.state()["resources"] if item["type"].endswith(f":{kind}")]
        assert len(found) == 1, f"{len(found)} resources of kind {kind}"
        return found[0]

    def state(self) -> dict[str, Any]:
        """As it is on disk; the Automation API would decrypt it."""
        return json.loads((self._folder / "state/.pulumi/stacks/probe/dev.json").read_text())["checkpoint"]["latest"]

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return kubectl(self.control_plane, "--namespace", self.namespace, *arguments, stdin=stdin)

    def live(self, kind: str, name: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def metadata(self, name: str, **more: Any) -> dict[str, Any]:
        return {"namespace": self.namespace, "name": name, **more}


def kubectl(control_plane: ControlPlane, *arguments: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        ["kubectl", *arguments],
        env=control_plane.environment,
        input=stdin,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _counted(changes: Any) -> dict[str, int]:
    """Without the stack's own entry: it is made by the first update and stays the same from then on."""
    counts = {str(getattr(op, "value", op)): count for op, count in (changes or {}).items()}
    own = "same" if "same" in counts else "create"
    return {op: count - (op == own) for op, count in counts.items() if count - (op == own)}


@pytest.fixture
def project(
    tmp_path: Path, control_plane: ControlPlane, port: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    """What a test leaves behind goes with its namespace; the state goes with its folder."""
    for name in ("PATH", "KUBECONFIG"):
        monkeypatch.setenv(name, control_plane.environment[name])
    project = Project(tmp_path, control_plane, port)
    yield project
    kubectl(control_plane, "delete", "namespace", project.namespace, "--wait=false")


def pod_template(label: str = "probe", image: str = "registry.example/web:1", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}}
    return {
        "metadata": {"labels": {"app": label}},
        "spec": {
            "containers": [container],
            "nodeSelector": {"probe": "provider"},
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def deployment(project: Project, replicas: int = 1, label: str = "probe", **spec: Any) -> Program:
    def program() -> None:
        selector = {"matchLabels": {"app": label}}
        k8s.apps.v1.Deployment(
            "web",
            metadata=project.metadata("web"),
            spec={"replicas": replicas, "selector": selector, "template": pod_template(label), **spec},
        )

    return program


def config_map(project: Project, metadata: dict[str, Any] | None = None, **content: Any) -> Program:
    def program() -> None:
        k8s.core.v1.ConfigMap("settings", metadata={"namespace": project.namespace, **(metadata or {})}, **content)

    return program


def nothing() -> None:
    """A program that declares nothing."""


class TestTheLifeOfAnObject:
    def test_is_previewed_created_and_then_left_alone(self, project: Project) -> None:
        program = deployment(project, replicas=2)
        assert project.preview(program) == {"create": 1}
        assert project.up(program) == {"create": 1}
        assert project.live("deployment", "web")["status"]["availableReplicas"] == 2
        assert project.up(program) == {"same": 1}

    def test_is_updated_in_place_and_loses_what_the_program_no_longer_says(self, project: Project) -> None:
        project.up(deployment(project, minReadySeconds=1))
        before = project.live("deployment", "web")
        assert project.up(deployment(project, replicas=2)) == {"update": 1}
        after = project.live("deployment", "web")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"]["replicas"] == 2
        assert "minReadySeconds" not in after["spec"]

    def test_is_replaced_when_the_api_server_says_a_field_is_immutable(self, project: Project) -> None:
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

    def test_is_replaced_when_its_selector_changes(self, project: Project) -> None:
        project.up(deployment(project))
        assert project.up(deployment(project, label="other")) == {"replace": 1}
        assert project.live("deployment", "web")["spec"]["selector"]["matchLabels"] == {"app": "other"}

    def test_what_was_changed_behind_its_back_shows_and_is_put_back(self, project: Project) -> None:
        program = deployment(project)
        project.up(program)
        assert project.refresh(program) == {"same": 1}
        project.kubectl("set", "image", "deployment/web", "main=registry.example/web:2")
        project.kubectl("scale", "deployment/web", "--replicas=2")
        assert project.refresh(program) == {"update": 1}
        assert project.up(program) == {"update": 1}
        spec = project.live("deployment", "web")["spec"]
        assert spec["replicas"] == 1
        assert spec["template"]["spec"]["containers"][0]["image"] == "registry.example/web:1"

    def test_what_was_deleted_behind_its_back_is_made_again(self, project: Project) -> None:
        program = config_map(project, data={"a": "1"})
        project.up(program)
        project.kubectl("delete", "configmap", project.resource("ConfigMap")["outputs"]["metadata"]["name"])
        assert project.refresh(program) == {"delete": 1}
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
        assert project.up(program) == {"same": 1}

    def test_delete_waits_until_the_object_is_gone(self, project: Project) -> None:
        def held() -> None:
            k8s.core.v1.ConfigMap(
                "held",
                metadata=project.metadata("held", finalizers=["example.com/hold"]),
                opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(delete="2s")),
            )

        project.up(held)
        said = project.refused(nothing)
        assert f"ConfigMap {project.namespace}/held: still there after 2 s" in said
        assert "example.com/hold" in said
        removal = '[{"op": "remove", "path": "/metadata/finalizers"}]'
        project.kubectl("patch", "configmap", "held", "--type=json", f"-p={removal}")
        assert project.up(nothing) == {"delete": 1}

    def test_a_namespace_and_what_is_in_it_in_one_up(self, project: Project) -> None:
        name = f"{project.namespace}-inner"

        def program() -> None:
            space = k8s.core.v1.Namespace("space", metadata={"name": name})
            k8s.core.v1.ConfigMap("settings", metadata={"namespace": space.metadata["name"], "name": "settings"})

        assert project.preview(program) == {"create": 2}
        assert project.up(program) == {"create": 2}
        assert project.up(nothing) == {"delete": 2}
        assert project.kubectl("get", "namespace", name, "--ignore-not-found") == ""


class TestNames:
    def test_a_made_up_name_stays_the_same(self, project: Project) -> None:
        project.up(config_map(project))
        name = project.resource("ConfigMap")["outputs"]["metadata"]["name"]
        assert name.startswith("settings-")
        assert len(name) == len("settings-") + 8
        assert project.up(config_map(project, {"labels": {"a": "b"}})) == {"update": 1}
        assert project.resource("ConfigMap")["outputs"]["metadata"]["name"] == name

    def test_a_replaced_object_with_a_made_up_name_gets_another(self, project: Project) -> None:
        project.up(config_map(project, data={"value": "1"}))
        before = project.resource("ConfigMap")["outputs"]["metadata"]["name"]
        assert project.up(config_map(project, data={"value": "2"})) == {"replace": 1}
        after = project.resource("ConfigMap")["outputs"]["metadata"]["name"]
        assert after != before
        assert project.live("configmap", after)["data"] == {"value": "2"}


class TestDefinitions:
    def test_a_kind_and_an_object_of_it_in_one_up(self, project: Project) -> None:
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
        assert project.up(program) == {"same": 2}
        project.destroy()
        assert project.kubectl("get", "crd", f"trials.{group}", "--ignore-not-found") == ""


class TestRefusals:
    def test_the_api_servers_own_words_reach_the_user(self, project: Project) -> None:
        def program() -> None:
            k8s.core.v1.Service(
                "bad", metadata=project.metadata("Bad_Name"), spec={"ports": [{"port": 700000}], "clusterIP": "None"}
            )

        said = project.refused(program)
        assert f"Service {project.namespace}/Bad_Name: Service" in said
        assert "must be no more than 65535" in said or "must be between 1 and 65535" in said
        assert "spec.ports[0].port" in said
        assert "metadata.name" in said

    def test_a_type_that_only_the_official_plugin_knows(self, project: Project) -> None:
        def program() -> None:
            k8s.core.v1.ConfigMapPatch("patch", metadata=project.metadata("settings"))

        assert "pulumi plugin install resource kubernetes" in project.refused(program)


class TestSecrets:
    def test_are_neither_in_the_state_nor_in_the_outputs_in_plain_text(self, project: Project) -> None:
        def program() -> None:
            token = k8s.core.v1.Secret("token", metadata=project.metadata("token"), string_data={"password": PASSWORD})
            pulumi.export("data", token.data)
            annotations = {"note": pulumi.Output.secret(PASSWORD)}
            k8s.core.v1.ConfigMap("settings", metadata=project.metadata("settings", annotations=annotations))

        project.up(program)
        encoded = base64.b64encode(PASSWORD.encode()).decode()
        assert project.live("secret", "token")["data"] == {"password": encoded}
        assert project.outputs()["data"].secret
        assert project.refresh(program) == {"same": 2}
        state = json.dumps(project.state())
        assert PASSWORD not in state
        assert encoded not in state
        assert project.up(program) == {"same": 2}

    def test_are_not_in_refusals(self, project: Project) -> None:
        def program() -> None:
            labels = {"note": pulumi.Output.secret(PASSWORD + "!")}
            k8s.core.v1.ConfigMap("settings", metadata=project.metadata("settings", labels=labels))

        said = project.refused(program)
        assert "metadata.labels: Invalid value" in said
        assert "[secret]" in said
        assert PASSWORD not in said


class TestWaiting:
    def test_every_kind_comes_up(self, project: Project) -> None:
        def program() -> None:
            selected = {"selector": {"matchLabels": LABELS}, "template": pod_template()}
            k8s.apps.v1.StatefulSet(
                "set", metadata=project.metadata("set"), spec={"serviceName": "set", "replicas": 2, **selected}
            )
            k8s.apps.v1.DaemonSet("daemon", metadata=project.metadata("daemon"), spec=selected)
            k8s.batch.v1.Job(
                "job", metadata=project.metadata("job"), spec={"template": pod_template(restartPolicy="Never")}
            )
            k8s.core.v1.Pod("pod", metadata=project.metadata("pod"), spec=pod_template()["spec"])
            k8s.core.v1.Service(
                "service", metadata=project.metadata("service"), spec={"selector": LABELS, "ports": [{"port": 80}]}
            )
            k8s.core.v1.Service(
                "headless",
                metadata=project.metadata("headless"),
                spec={"selector": {"app": "nobody"}, "clusterIP": "None", "ports": [{"port": 80}]},
            )
            late = k8s.storage.v1.StorageClass(
                "late",
                metadata={"name": project.namespace},
                provisioner="example.com/none",
                volume_binding_mode="WaitForFirstConsumer",
            )
            k8s.core.v1.PersistentVolumeClaim(
                "disk",
                metadata=project.metadata("disk"),
                spec={
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": late.metadata["name"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            )

        assert project.up(program) == {"create": 8}
        assert project.live("statefulset", "set")["status"]["readyReplicas"] == 2
        assert project.live("job", "job")["status"]["succeeded"] == 1
        assert project.up(program) == {"same": 8}
        project.destroy()
        assert project.kubectl("get", "all,pvc", "--output=name") == ""

    def test_a_job_that_fails_is_kept_and_tried_again(self, project: Project) -> None:
        def program() -> None:
            template = pod_template(restartPolicy="Never", nodeSelector={"probe": "nowhere"})
            k8s.batch.v1.Job(
                "job", metadata=project.metadata("job"), spec={"activeDeadlineSeconds": 1, "template": template}
            )

        said = project.refused(program)
        assert f"[Job {project.namespace}/job]: failed: DeadlineExceeded" in said
        assert project.resource("Job")["initErrors"]
        assert "DeadlineExceeded" in project.refused(program)

    def test_a_pod_that_fits_nowhere_is_named_with_the_schedulers_reason(self, project: Project) -> None:
        def program() -> None:
            k8s.apps.v1.StatefulSet(
                "set",
                metadata=project.metadata("set", annotations={"pulumi.com/timeoutSeconds": "3"}),
                spec={
                    "serviceName": "set",
                    "selector": {"matchLabels": LABELS},
                    "template": pod_template(nodeSelector={"probe": "nowhere"}),
                },
            )

        said = project.refused(program)
        assert f"[StatefulSet {project.namespace}/set]: not up after 3 s: 0 of 1 pods are ready" in said
        assert f"[Pod {project.namespace}/set-0]: Unschedulable: 0/" in said
        assert project.resource("StatefulSet")["id"] == f"{project.namespace}/set"


class TestProviders:
    def test_two_providers_with_different_kubeconfigs(self, project: Project) -> None:
        kubeconfig = json.loads(project.control_plane.kubeconfig.read_text())
        elsewhere = copy.deepcopy(kubeconfig)
        elsewhere["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"

        def program(*, both: bool) -> None:
            here = k8s.Provider("here", kubeconfig=json.dumps(kubeconfig), namespace=project.namespace)
            k8s.core.v1.ConfigMap("here", metadata={"name": "here"}, opts=pulumi.ResourceOptions(provider=here))
            if both:
                away = k8s.Provider("away", kubeconfig=json.dumps(elsewhere))
                k8s.core.v1.ConfigMap("away", metadata={"name": "away"}, opts=pulumi.ResourceOptions(provider=away))

        project.up(lambda: program(both=False))
        said = project.refused(lambda: program(both=True))
        assert "ConfigMap default/away: the Kubernetes API server https://127.0.0.1:1 can't be reached" in said
        assert project.live("configmap", "here")["metadata"]["name"] == "here"
