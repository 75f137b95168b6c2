"""The Pulumi program of every stack: its configuration describes the environment, and this declares it."""

import atexit
import gc

import pulumi
from persia_components import Environment

from persia_infra.spec.errors import InputError
from persia_infra.stack import parse_environment

# The providers' classes are a million objects that live as long as the program: looking through them for garbage,
# and once more at its end, would add a second to every preview.
gc.disable()
atexit.register(gc.freeze)

stack = pulumi.get_stack()
try:
    spec = parse_environment(
        pulumi.Config("persia-infra").get_object("environment"), file=f"stacks/Pulumi.{stack}.yaml"
    )
except InputError as error:
    # Pulumi shows the text of a RunError alone, without a traceback.
    raise pulumi.RunError(str(error)) from None

for name, value in Environment(stack, spec).exports().items():
    pulumi.export(name, value)
