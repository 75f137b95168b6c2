"""The answers to the engine over gRPC, from a package that each test controls."""

# ruff: noqa: ARG002

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from google.rpc import status_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from persia_infra.rehearsal.provider.package import (
    CheckFailure,
    Difference,
    InitializationFailed,
    Properties,
    ProviderError,
    Seed,
    Urn,
)
from persia_infra.rehearsal.provider.server import ProviderServer

URN = "urn:pulumi:dev::project::toy:index:Thing::first"
SIGNATURE = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


class Toy:
    """A package that returns its inputs; `trouble` selects a failure."""

    name = "toy"
    version = "1.2.3"
    names_by_configuration = True

    def __init__(self) -> None:
        self.trouble = ""

    def configure(self, variables: Properties) -> None:
        self.trouble = variables.get("trouble", "")
        if self.trouble == "configure":
            raise ProviderError(f"bad token {variables['token']}")

    def check(self, urn: Urn, olds: Properties, news: Properties, seed: bytes) -> tuple[Properties, list[CheckFailure]]:
        assert isinstance(seed, Seed)
        failures = [CheckFailure("size", f"{news['size']} is too big")] if news.get("size") else []
        return news | {"name": f"{urn.name}/{urn.type}/{seed.proposed_name}/{seed.naming}"}, failures

    def diff(
        self, urn: Urn, object_id: str, old_inputs: Properties, old_outputs: Properties, news: Properties
    ) -> Difference:
        return Difference({"spec.a[0]": "update-replace", "b": "add"}, True) if old_inputs != news else Difference()

    def create(self, urn: Urn, inputs: Properties, *, preview: bool, timeout: float) -> tuple[str, Properties]:
        if self.trouble == "refused":
            raise ProviderError(f"no room for {inputs['token']}")
        if self.trouble == "late":
            raise InitializationFailed("id-1", {"token": inputs["token"]}, inputs, [f"saw {inputs['token']}", "two"])
        if self.trouble == "defect":
            raise KeyError(inputs["token"])
        return "" if preview else "id-1", inputs | {"timeout": timeout}

    def read(
        self, urn: Urn, object_id: str, inputs: Properties, outputs: Properties
    ) -> tuple[Properties, Properties] | None:
        return None if object_id == "gone" else (inputs, outputs)

    def update(self, *arguments: Any, **options: Any) -> Properties:
        return arguments[4]

    def delete(self, *arguments: Any, **options: Any) -> None: ...

    def invoke(self, token: str, arguments: Properties) -> Properties:
        return {"token": token, **arguments}

    def cancel(self) -> None: ...


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    server = ProviderServer(Toy)
    yield server
    server.stop()


class Engine(provider_pb2_grpc.ResourceProviderStub):
    """The engine's side of one provider, with its own connection."""

    def __init__(self, port: int) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])
        super().__init__(self.channel)

    def configured(self, **variables: Any) -> "Engine":
        self.Configure(pb.ConfigureRequest(args=wire(variables)))
        return self


@pytest.fixture
def engine(server: ProviderServer) -> Iterator[Engine]:
    engine = Engine(server.port)
    yield engine
    engine.channel.close()


def wire(properties: dict[str, Any]) -> Struct:
    struct = Struct()
    struct.update(properties)
    return struct


def hidden(value: str) -> dict[str, str]:
    return {**SIGNATURE, "value": value}


def refusal(call: Any) -> Any:
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value


def test_the_handshake_accepts_secrets_and_naming_rules(engine: Engine) -> None:
    answer = engine.Handshake(pb.ProviderHandshakeRequest())
    assert answer.accept_secrets
    assert answer.supports_autonaming_configuration
    assert engine.GetPluginInfo(Empty()).version == "1.2.3"


def test_check_passes_the_naming_rules_on_and_hides_secrets_in_failures(engine: Engine) -> None:
    options = pb.CheckRequest.AutonamingOptions(proposed_name="best", mode=pb.CheckRequest.AutonamingOptions.ENFORCE)
    request = pb.CheckRequest(urn=URN, news=wire({"size": hidden("12345678")}), autonaming=options)
    answer = engine.configured().Check(request)
    assert MessageToDict(answer.inputs) == {"size": hidden("12345678"), "name": "first/toy:index:Thing/best/enforce"}
    assert [failure.reason for failure in answer.failures] == ["[secret] is too big"]


def test_diff_lists_replacements_by_path(engine: Engine) -> None:
    engine.configured()
    answer = engine.Diff(pb.DiffRequest(urn=URN, old_inputs=wire({"a": 1}), news=wire({"a": 2})))
    assert answer.changes == pb.DiffResponse.DIFF_SOME
    assert list(answer.replaces) == ["spec.a[0]"]
    assert sorted(answer.diffs) == ["b", "spec"]
    assert answer.deleteBeforeReplace
    assert answer.detailedDiff["spec.a[0]"].kind == pb.PropertyDiff.UPDATE_REPLACE
    same = engine.Diff(pb.DiffRequest(urn=URN, old_inputs=wire({"a": 1}), news=wire({"a": 1})))
    assert same.changes == pb.DiffResponse.DIFF_NONE


def test_a_secret_input_is_a_secret_output(engine: Engine) -> None:
    properties = wire({"token": hidden("correct-horse"), "open": "x"})
    answer = engine.configured().Create(pb.CreateRequest(urn=URN, properties=properties, timeout=7))
    assert answer.id == "id-1"
    assert MessageToDict(answer.properties) == {"token": hidden("correct-horse"), "open": "x", "timeout": 7.0}


@pytest.mark.parametrize(
    ("trouble", "message"),
    [("refused", "no room for [secret]"), ("defect", "KeyError: '[secret]'; this is a bug")],
)
def test_a_refusal_does_not_contain_secrets(engine: Engine, trouble: str, message: str) -> None:
    engine.configured(trouble=trouble)
    properties = wire({"token": hidden("correct-horse")})
    error = refusal(lambda: engine.Create(pb.CreateRequest(urn=URN, properties=properties)))
    assert error.details().startswith(message)
    assert "correct-horse" not in error.details()


def test_an_object_that_is_not_ready_is_kept_with_its_reasons(engine: Engine) -> None:
    engine.configured(trouble="late")
    properties = wire({"token": hidden("correct-horse")})
    error = refusal(lambda: engine.Create(pb.CreateRequest(urn=URN, properties=properties)))
    status = status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    failed = pb.ErrorResourceInitFailed()
    assert status.details[0].Unpack(failed)
    assert failed.id == "id-1"
    assert list(failed.reasons) == ["saw [secret]", "two"]
    assert MessageToDict(failed.properties) == {"token": hidden("correct-horse")}
    assert MessageToDict(failed.inputs) == {"token": hidden("correct-horse")}


def test_a_refused_configuration_does_not_contain_secrets(engine: Engine) -> None:
    error = refusal(lambda: engine.configured(trouble="configure", token=hidden("correct-horse")))
    assert error.details() == "bad token [secret]"


def test_each_connection_has_its_own_provider(server: ProviderServer, engine: Engine) -> None:
    other = Engine(server.port).configured(trouble="refused")
    engine.configured()
    request = pb.CreateRequest(urn=URN, properties=wire({"token": "x"}))
    assert "no room" in refusal(lambda: other.Create(request)).details()
    assert engine.Create(request).id == "id-1"
    other.channel.close()


def test_reading_a_deleted_object_returns_no_id(engine: Engine) -> None:
    assert engine.configured().Read(pb.ReadRequest(urn=URN, id="gone")).id == ""
    assert engine.Read(pb.ReadRequest(urn=URN, id="here")).id == "here"


def test_invokes_reach_the_package(engine: Engine) -> None:
    answer = engine.configured().Invoke(pb.InvokeRequest(tok="toy:index:f", args=wire({"a": 1})))
    assert MessageToDict(getattr(answer, "return")) == {"token": "toy:index:f", "a": 1.0}


def test_remote_components_are_refused_with_an_alternative(engine: Engine) -> None:
    error = refusal(lambda: engine.Construct(pb.ConstructRequest(type="toy:index:Group")))
    assert error.details().startswith("toy:index:Group: the simulated toy provider has no remote components")
