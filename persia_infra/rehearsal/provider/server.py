"""The gRPC server that speaks Pulumi's provider protocol for one package.

The engine opens one connection for each provider of the program (default or explicit, in preview and in
update), so a configured provider is identified by the peer of its connection.

Remote components, methods, schemas and parameterized packages are out of scope: a rehearsal only needs plain
resources.
"""

import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Literal, NoReturn

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.rpc import status_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb

from persia_infra.kube.api import ApiError
from persia_infra.rehearsal.provider.package import (
    InitializationFailed,
    Package,
    ProviderError,
    Seed,
    Urn,
)
from persia_infra.rehearsal.provider.peers import OnlyFrom
from persia_infra.rehearsal.provider.values import Secrets, decode, encode

Context = grpc.ServicerContext
_LOG = logging.getLogger(__name__)
_THREADS = 128
_LARGEST_MESSAGE = 400 * 1024 * 1024
_NAMING: dict[int, Literal["propose", "enforce", "disable"]] = {0: "propose", 1: "enforce", 2: "disable"}
_CHANGES = {
    "add": pb.PropertyDiff.ADD,
    "delete": pb.PropertyDiff.DELETE,
    "update": pb.PropertyDiff.UPDATE,
    "add-replace": pb.PropertyDiff.ADD_REPLACE,
    "delete-replace": pb.PropertyDiff.DELETE_REPLACE,
    "update-replace": pb.PropertyDiff.UPDATE_REPLACE,
}


class _Refusal(Exception):
    def __init__(self, text: str, detail: AnyMessage | None = None) -> None:
        super().__init__(text)
        self.text, self.detail = text, detail


@contextmanager
def _refusals(secrets: Secrets) -> Iterator[None]:
    """Turns the exceptions of a package into answers to the engine, without the secrets of the request."""
    try:
        yield
    except (ProviderError, ApiError) as error:
        raise _Refusal(secrets.hidden(str(error))) from None
    except InitializationFailed as error:
        reasons = [secrets.hidden(reason) for reason in error.reasons]
        detail = AnyMessage()
        detail.Pack(
            pb.ErrorResourceInitFailed(
                id=error.object_id,
                properties=encode(error.outputs, secrets),
                inputs=encode(error.inputs, secrets),
                reasons=reasons,
            )
        )
        raise _Refusal("; ".join(reasons) or "the object exists but is not ready", detail) from None
    except Exception as error:
        _LOG.error("%s", secrets.hidden("".join(traceback.format_exception(error))))
        text = f"{type(error).__name__}: {error}; this is a bug of the simulated provider, please report it"
        raise _Refusal(secrets.hidden(text)) from None


class _Refusals(grpc.ServerInterceptor):
    """Answers with an error status if a method raises a refusal."""

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        handler = continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return handler
        method = handler.unary_unary

        def answer(request: Message, context: Context) -> Message:
            try:
                return method(request, context)
            except _Refusal as refusal:
                text, detail = refusal.text, refusal.detail
            _abort(context, text, detail)

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def _abort(context: Context, text: str, detail: AnyMessage | None) -> NoReturn:
    if detail is not None:
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=text, details=[detail])
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, text)


class ProviderServicer(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine for one package; `make` returns an unconfigured provider of it."""

    def __init__(self, make: Callable[[], Package]) -> None:
        self._make = make
        self._blank = make()
        self._providers: dict[str, Package] = {}
        self._latest: Package = self._blank
        self._lock = threading.Lock()

    def _provider(self, context: Context) -> Package:
        with self._lock:
            return self._providers.get(context.peer(), self._latest)

    def _names_by_configuration(self) -> bool:
        return bool(getattr(self._blank, "names_by_configuration", False))

    # The provider itself

    def Handshake(self, request: pb.ProviderHandshakeRequest, context: Context) -> pb.ProviderHandshakeResponse:  # noqa: N802, ARG002
        return pb.ProviderHandshakeResponse(
            accept_secrets=True, supports_autonaming_configuration=self._names_by_configuration()
        )

    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> Empty:  # noqa: N802, ARG002
        return Empty()

    def GetPluginInfo(self, request: Empty, context: Context) -> plugin_pb2.PluginInfo:  # noqa: N802, ARG002
        return plugin_pb2.PluginInfo(version=self._blank.version)

    def GetSchema(self, request: pb.GetSchemaRequest, context: Context) -> pb.GetSchemaResponse:  # noqa: N802, ARG002
        return pb.GetSchemaResponse(schema=f'{{"name": "{self._blank.name}", "version": "{self._blank.version}"}}')

    def CheckConfig(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:  # noqa: N802, ARG002
        return pb.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: pb.DiffRequest, context: Context) -> pb.DiffResponse:  # noqa: N802, ARG002
        olds, _ = decode(request.old_inputs if request.old_inputs.fields else request.olds)
        news, _ = decode(request.news)
        changed = sorted(name for name in olds.keys() | news.keys() if olds.get(name) != news.get(name))
        some = pb.DiffResponse.DIFF_SOME if changed else pb.DiffResponse.DIFF_NONE
        return pb.DiffResponse(changes=some, diffs=changed)

    def Configure(self, request: pb.ConfigureRequest, context: Context) -> pb.ConfigureResponse:  # noqa: N802
        variables, secrets = decode(request.args)
        if not request.args.fields:
            variables = {name.rsplit(":", 1)[-1]: value for name, value in request.variables.items()}
        provider = self._make()
        with _refusals(secrets):
            provider.configure(variables)
        with self._lock:
            self._providers[context.peer()] = provider
            self._latest = provider
        return pb.ConfigureResponse(
            acceptSecrets=True,
            supportsPreview=True,
            supports_autonaming_configuration=self._names_by_configuration(),
        )

    def Cancel(self, request: Empty, context: Context) -> Empty:  # noqa: N802, ARG002
        self._provider(context).cancel()
        return Empty()

    def cancel_all(self) -> None:
        """Ends the waits of every provider."""
        with self._lock:
            providers = [*self._providers.values(), self._blank]
        for provider in providers:
            provider.cancel()

    # The life of a resource

    def Check(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:  # noqa: N802
        olds, _ = decode(request.olds)
        news, secrets = decode(request.news)
        seed = Seed(request.randomSeed)
        if request.HasField("autonaming"):
            seed.proposed_name = request.autonaming.proposed_name
            seed.naming = _NAMING[request.autonaming.mode]
        with _refusals(secrets):
            inputs, failures = self._provider(context).check(Urn(request.urn), olds, news, seed)
        return pb.CheckResponse(
            inputs=encode(inputs, Secrets(secrets.paths)),
            failures=[
                pb.CheckFailure(property=failure.property, reason=secrets.hidden(failure.reason))
                for failure in failures
            ],
        )

    def Diff(self, request: pb.DiffRequest, context: Context) -> pb.DiffResponse:  # noqa: N802
        old_outputs, known = decode(request.olds)
        old_inputs, known_inputs = decode(request.old_inputs)
        news, secrets = decode(request.news)
        with _refusals(secrets.joined(known, known_inputs)):
            difference = self._provider(context).diff(Urn(request.urn), request.id, old_inputs, old_outputs, news)
        some = bool(difference.detailed)
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if some else pb.DiffResponse.DIFF_NONE,
            replaces=difference.replaces,
            diffs=sorted({_first_name(path) for path in difference.detailed}),
            deleteBeforeReplace=difference.delete_before_replace,
            hasDetailedDiff=some,
            detailedDiff={
                path: pb.PropertyDiff(kind=_CHANGES[kind], inputDiff=True) for path, kind in difference.detailed.items()
            },
        )

    def Create(self, request: pb.CreateRequest, context: Context) -> pb.CreateResponse:  # noqa: N802
        inputs, secrets = decode(request.properties)
        with _refusals(secrets):
            object_id, outputs = self._provider(context).create(
                Urn(request.urn), inputs, preview=request.preview, timeout=request.timeout
            )
            return pb.CreateResponse(id=object_id, properties=encode(outputs, secrets))

    def Read(self, request: pb.ReadRequest, context: Context) -> pb.ReadResponse:  # noqa: N802
        outputs, known = decode(request.properties)
        inputs, secrets = decode(request.inputs)
        secrets = secrets.joined(known)
        with _refusals(secrets):
            current = self._provider(context).read(Urn(request.urn), request.id, inputs, outputs)
            if current is None:
                return pb.ReadResponse(id="", properties=Struct())
            inputs, outputs = current
            return pb.ReadResponse(id=request.id, properties=encode(outputs, secrets), inputs=encode(inputs, secrets))

    def Update(self, request: pb.UpdateRequest, context: Context) -> pb.UpdateResponse:  # noqa: N802
        old_outputs, known = decode(request.olds)
        old_inputs, known_inputs = decode(request.old_inputs)
        news, secrets = decode(request.news)
        every_secret = Secrets(secrets.paths, secrets.joined(known, known_inputs).texts)
        with _refusals(every_secret):
            outputs = self._provider(context).update(
                Urn(request.urn),
                request.id,
                old_inputs,
                old_outputs,
                news,
                preview=request.preview,
                timeout=request.timeout,
            )
            return pb.UpdateResponse(properties=encode(outputs, secrets))

    def Delete(self, request: pb.DeleteRequest, context: Context) -> Empty:  # noqa: N802
        outputs, secrets = decode(request.properties)
        inputs, known = decode(request.old_inputs)
        with _refusals(secrets.joined(known)):
            self._provider(context).delete(Urn(request.urn), request.id, inputs, outputs, timeout=request.timeout)
        return Empty()

    # Functions and what is out of scope

    def Invoke(self, request: pb.InvokeRequest, context: Context) -> pb.InvokeResponse:  # noqa: N802
        arguments, secrets = decode(request.args)
        with _refusals(secrets):
            answer = self._provider(context).invoke(request.tok, arguments)
        response = pb.InvokeResponse()
        getattr(response, "return").CopyFrom(encode(answer, secrets))
        return response

    def Construct(self, request: pb.ConstructRequest, context: Context) -> NoReturn:  # noqa: N802, ARG002
        raise _Refusal(self._out_of_scope(request.type))

    def Call(self, request: pb.CallRequest, context: Context) -> NoReturn:  # noqa: N802, ARG002
        raise _Refusal(self._out_of_scope(request.tok))

    def _out_of_scope(self, token: str) -> str:
        name = self._blank.name
        return (
            f"{token}: the simulated {name} provider has no remote components or methods, so this cannot be "
            f"rehearsed; install the official plugin: pulumi plugin install resource {name}"
        )


def _first_name(path: str) -> str:
    return path.split(".", 1)[0].split("[", 1)[0]


class ProviderServer:
    """A package that is served on a free loopback port, to processes of one user."""

    def __init__(self, make: Callable[[], Package], uid: int | None = None) -> None:
        self._servicer = ProviderServicer(make)
        only_from = OnlyFrom(os.getuid() if uid is None else uid)
        self._server = grpc.server(
            ThreadPoolExecutor(max_workers=_THREADS),
            interceptors=[only_from, _Refusals()],
            options=[
                ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
                ("grpc.max_send_message_length", _LARGEST_MESSAGE),
                ("grpc.so_reuseport", 0),
            ],
        )
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(self._servicer, self._server)
        self.port = only_from.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def stop(self) -> None:
        """Ends all waits, gives running calls a moment to answer, and closes the port."""
        self._servicer.cancel_all()
        self._server.stop(grace=2).wait()
