"""What the simulated kubernetes package says, of whom, and what it keeps secret."""

import base64
import copy
import json

import pulumi

from tests.support.provider_project import Project, k8s

PASSWORD = "correct-horse-battery"


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
        assert project.refresh() == {}
        state = project.state_on_disk()
        assert PASSWORD not in state
        assert encoded not in state
        assert project.up(program) == {}

    def test_are_not_in_refusals(self, project: Project) -> None:
        def program() -> None:
            labels = {"note": pulumi.Output.secret(PASSWORD + "!")}
            k8s.core.v1.ConfigMap("settings", metadata=project.metadata("settings", labels=labels))

        said = project.refused(program)
        assert "metadata.labels: Invalid value" in said
        assert "[secret]" in said
        assert PASSWORD not in said


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
