"""Lists every resource that a stack would declare, by running its components in this process without an engine.

Values that only the cloud knows appear as references: `${persia-cluster.endpoint}`.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi.runtime import Mocks, mocks, stack

from persia_components.environment import Environment
from persia_infra.environment import EnvironmentSpec
from persia_infra.kube.objects import ordered, render_position

_COMPUTED = {
    "gcp:container/cluster:Cluster": ("endpoint", "name"),
    "gcp:compute/network:Network": ("name",),
    "gcp:compute/router:Router": ("name",),
    "gcp:container/nodePool:NodePool": ("name",),
    "gcp:serviceaccount/account:Account": ("email",),
}
_SECRET_KEY = "4dabf18193072939515e22adb298388d"  # noqa: S105
"""The key that marks a secret in Pulumi's protocol."""


@dataclass(frozen=True)
class Declared:
    """A resource with the inputs that the engine would get."""

    type: str
    name: str
    inputs: dict[str, Any]

    @property
    def document(self) -> dict[str, Any]:
        """A Kubernetes object as it is; any other resource with its Pulumi type and logical name."""
        if self.type.startswith("kubernetes:"):
            return self.inputs
        return {"type": self.type, "name": self.name, "properties": self.inputs}


def declared_by(program: Callable[[], object], *, stack_name: str) -> list[Declared]:
    """Runs a program that declares components, and returns their resources in a stable order.

    Raises:
        Exception: Any exception that the program raises.
    """
    recorder = _Recorder()
    failure: list[BaseException] = []

    def run() -> None:
        # Pulumi keeps its state in context variables and in the event loop of a thread, so running in a new thread
        # does not affect the caller's state.
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            mocks.set_mocks(recorder, project="persia-infra", stack=stack_name)
            loop.run_until_complete(stack.run_pulumi_func(lambda: _discard(program())))
        except BaseException as error:
            failure.append(error)
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="render")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return sorted(recorder.declared, key=lambda resource: render_position(resource.type, resource.name))


def declared_for(name: str, spec: EnvironmentSpec) -> list[Declared]:
    """Returns the resources that an environment declares."""
    return declared_by(lambda: Environment(name, spec), stack_name=name)


def _discard(_result: object) -> None:
    return None


class _Recorder(Mocks):
    def __init__(self) -> None:
        self.declared: list[Declared] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if not args.custom:
            return None, args.inputs
        self.declared.append(Declared(args.typ, args.name, ordered(_plain(args.inputs))))
        state = {**{key: f"${{{args.name}.{key}}}" for key in _COMPUTED.get(args.typ, ())}, **args.inputs}
        if args.typ == "gcp:container/cluster:Cluster":
            state["masterAuth"] = {"clusterCaCertificate": f"${{{args.name}.masterAuth.clusterCaCertificate}}"}
            state["controlPlaneEndpointsConfig"] = {
                "dnsEndpointConfig": {
                    "endpoint": f"${{{args.name}.controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint}}"
                }
            }
        return f"${{{args.name}.id}}", state

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:  # noqa: ARG002
        return {}, None


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Undoes what Pulumi's protocol does to values: integers become floats, and secrets are wrapped."""
    if isinstance(value, Mapping):
        if _SECRET_KEY in value:
            return "[secret]"
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
