"""The Pulumi program of every stack: declares the environment that the stack's configuration describes."""

import pulumi
from persia_components import Environment
from persia_components.startup import skip_garbage_collection

from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment

skip_garbage_collection()
stack = pulumi.get_stack()
try:
    spec = parse_environment(
        pulumi.Config("persia-infra").get_object("environment"), file=f"stacks/Pulumi.{stack}.yaml"
    )
except InputError as error:
    # Pulumi shows only the message of a RunError, without a traceback.
    raise pulumi.RunError(str(error)) from None

for name, value in Environment(stack, spec).exports().items():
    pulumi.export(name, value)
