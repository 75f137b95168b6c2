"""Messages of the simulated kubernetes package, and secrets that they must not contain."""

import base64
import copy
import json

import pulumi

from tests.support.provider_project import Project, k8s

PASSWORD = "correct-horse-battery"


class TestRefusals:
    def test_the_user_sees_the_message_of_the_api_server(self, project: Project) -> None:
        def program() -> None:
            k8s.core.v1.Service(
                "bad", metadata=project.metadata("Bad_Name"), spec={"ports": [{"port": 700000}], "clusterIP": "None"}
            )

        message = project.refused(program)
        assert f"Service {project.namespace}/Bad_Name: Service" in message
        assert "must be no more than 65535" in message or "must be between 1 and 65535" in message
        assert "spec.ports[0].port" in message
        assert "metadata.name" in message

    def test_a_type_of_the_official_plugin_alone_is_refused(self, project: Project) -> None:
        def program() -> None:
            k8s.core.v1.ConfigMapPatch("patch", metadata=project.metadata("settings"))

        assert "pulumi plugin install resource kubernetes" in project.refused(program)


class TestSecrets:
    def test_secrets_are_encrypted_in_state_and_outputs(self, project: Project) -> None:
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

    def test_secrets_are_not_in_refusals(self, project: Project) -> None:
        def program() -> None:
            labels = {"note": pulumi.Output.secret(PASSWORD + "!")}
            k8s.core.v1.ConfigMap("settings", metadata=project.metadata("settings", labels=labels))

        message = project.refused(program)
        assert "metadata.labels: Invalid value" in message
        assert "[secret]" in message
        assert PASSWORD not in message


class TestProviders:
    def test_a_provider_of_another_cluster_is_refused(self, project: Project) -> None:
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
        message = project.refused(lambda: program(both=True))
        assert "the server https://127.0.0.1:1 is not the cluster of this rehearsal" in message
        assert project.live("configmap", "here")["metadata"]["name"] == "here"
