"""The Google Cloud APIs that an environment needs."""

import pulumi
from pulumi_gcp import projects

from persia_components._children import child_options, token
from persia_infra.environment import EnvironmentSpec


class ProjectApis(pulumi.ComponentResource):
    """APIs turned on in the project; they stay on when the environment is deleted, as others may use them too."""

    def __init__(self, name: str, spec: EnvironmentSpec, *, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("ProjectApis"), name, None, opts)
        for api in spec.required_apis:
            projects.Service(
                f"{name}-{api.partition('.')[0]}",
                project=spec.project,
                service=api,
                disable_on_destroy=False,
                opts=child_options(self),
            )
        self.register_outputs({"apis": spec.required_apis})
