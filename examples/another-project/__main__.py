"""An environment in another project, with an object of the project's own in its cluster."""

import pulumi
from components.motd import Motd
from persia_components import Environment

from persia_infra.environment import EnvironmentSpec

spec = EnvironmentSpec.model_validate(pulumi.Config().require_object("environment"))
environment = Environment("lab", spec)
Motd("lab-motd", environment.kubeconfig, text="Spot nodes may disappear at any time: write checkpoints.")
pulumi.export("cluster", environment.cluster_name)
