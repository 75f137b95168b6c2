"""Every object that components would declare, found by running them in this process without an engine.

Values that only the cloud knows appear as references: `${persia-cluster.endpoint}`.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pulumi.runtime import Mocks, mocks, stack
from pulumi_kubernetes import apiextensions

from persia_components._children import metadata
from persia_components.environment import JOB_COMPONENTS, Environment
from persia_components.nats import NatsCluster

if TYPE_CHECKING:
    from persia_infra.environment import EnvironmentSpec
    from persia_infra.jobs import Job
    from persia_infra.kube.storage import ClaimSpec, PersistentVolumeSpec
    from persia_infra.nats.spec import NatsClusterSpec

_COMPUTED = {
    "gcp:container/cluster:Cluster": ("endpoint", "name"),
    "gcp:compute/network:Network": ("name",),
    "gcp:compute/router:Router": ("name",),
    "gcp:container/nodePool:NodePool": ("name",),
    "gcp:serviceaccount/account:Account": ("email",),
}
_FIRST_KEYS = ("apiVersion", "kind", "type", "name", "namespace", "metadata", "image", "command", "args", "key")
_ORDER = ("gcp:", "pulumi:", "kubernetes:core/v1:Namespace", "kubernetes:core/v1:ConfigMap", "kubernetes:")


@dataclass(frozen=True)
class Declared:
    """A resource with the inputs that the engine would be given."""

    type: str
    name: str
    inputs: dict[str, Any]

    @property
    def document(self) -> dict[str, Any]:
        """A Kubernetes object as it is; anything else under its Pulumi type and logical name."""
        if self.type.startswith("kubernetes:"):
            return self.inputs
        return {"type": self.type, "name": self.name, "properties": self.inputs}


def declared_by(program: Callable[[], object], *, stack_name: str) -> list[Declared]:
    """Runs a program that makes components and returns what it declared, in a stable order.

    Raises:
        Exception: Whatever the program raised.
    """
    recorder = _Recorder()
    failure: list[BaseException] = []

    def run() -> None:
        # Pulumi keeps its state in context variables and the event loop of a thread: one of its own leaves
        # the caller's alone.
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
    return sorted(recorder.declared, key=_position)


def declared_for(
    name: str, spec: "EnvironmentSpec | Job | NatsClusterSpec | PersistentVolumeSpec | ClaimSpec"
) -> list[Declared]:
    """What one description leads to: a whole environment, or a job, NATS cluster or volume by itself."""
    from persia_infra.environment import EnvironmentSpec
    from persia_infra.kube.storage import ClaimSpec, PersistentVolumeSpec
    from persia_infra.nats.spec import NatsClusterSpec

    def program() -> None:
        if isinstance(spec, EnvironmentSpec):
            Environment(name, spec)
        elif isinstance(spec, NatsClusterSpec):
            NatsCluster(name, spec, namespace=spec.namespace or "default")
        elif isinstance(spec, PersistentVolumeSpec | ClaimSpec):
            namespace = spec.namespace or "default" if spec.kind == "PersistentVolumeClaim" else None
            apiextensions.CustomResource(
                name,
                api_version="v1",
                kind=spec.kind,
                metadata=metadata(name, namespace, spec.labels),
                spec=spec.object_spec(),
            )
        else:
            JOB_COMPONENTS[spec.kind](name, spec, namespace=spec.namespace or "default")  # type: ignore[arg-type]

    return declared_by(program, stack_name=name)


def _discard(_made: object) -> None:
    return None


def _position(one: Declared) -> tuple[int, str, str]:
    rank = next(index for index, prefix in enumerate(_ORDER) if one.type.startswith(prefix))
    return rank, one.type, one.name


def _key_position(key: str) -> tuple[int, str]:
    return (_FIRST_KEYS.index(key) if key in _FIRST_KEYS else len(_FIRST_KEYS)), key


class _Recorder(Mocks):
    def __init__(self) -> None:
        self.declared: list[Declared] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if not args.custom:
            return None, args.inputs
        self.declared.append(Declared(args.typ, args.name, _plain(args.inputs)))
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
    """A value without what the wire did to it: no order of keys, whole numbers as floats, secrets in envelopes."""
    if isinstance(value, Mapping):
        if "4dabf18193072939515e22adb298388d" in value:
            return "[secret]"
        return {key: _plain(value[key]) for key in sorted(value, key=_key_position)}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
