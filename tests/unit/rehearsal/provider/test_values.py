"""Property values on the wire: round trips, and secrets that stay secret."""

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from persia_infra.rehearsal.provider.package import UNKNOWN, Secret
from persia_infra.rehearsal.provider.values import Secrets, decode, encode

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
UNKNOWN_NUMBER = "3eeb2bf0-c639-47a8-9e75-3b44932eb421"

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def wire(properties: dict[str, Any]) -> Struct:
    struct = Struct()
    struct.update(properties)
    return struct


def secret(value: object) -> dict[str, object]:
    return {SIGNATURE: SECRET, "value": value}


@given(st.dictionaries(st.text(max_size=5), plain, max_size=4))
def test_plain_values_come_back_as_they_were(properties: dict[str, object]) -> None:
    assert decode(encode(properties)) == (properties, Secrets())


def test_a_secret_is_plain_to_the_package_and_wrapped_again_at_the_same_place() -> None:
    properties, secrets = decode(wire({"spec": {"env": [{"value": secret("hush")}]}, "open": "x"}))
    assert properties == {"spec": {"env": [{"value": "hush"}]}, "open": "x"}
    answer = MessageToDict(encode({**properties, "status": "ok"}, secrets))
    assert answer == {"spec": {"env": [{"value": secret("hush")}]}, "open": "x", "status": "ok"}


def test_a_secret_that_the_server_moved_elsewhere_is_still_a_secret() -> None:
    _, secrets = decode(wire({"password": secret("correct-horse")}))
    answer = MessageToDict(encode({"url": "nats://me:correct-horse@here", "list": ["correct-horse"]}, secrets))
    assert answer == {"url": secret("nats://me:correct-horse@here"), "list": [secret("correct-horse")]}


def test_secrets_of_two_requests_are_joined() -> None:
    _, first = decode(wire({"a": secret("one")}))
    _, second = decode(wire({"b": secret("two")}))
    answer = MessageToDict(encode({"a": "x", "b": "y", "c": "one"}, first.joined(second)))
    assert answer == {"a": secret("x"), "b": secret("y"), "c": secret("one")}


def test_a_package_may_mark_a_value_as_secret() -> None:
    assert MessageToDict(encode({"data": Secret({"a": "b"})})) == {"data": secret({"a": "b"})}


def test_secrets_inside_a_secret_are_wrapped_once() -> None:
    _, secrets = decode(wire({"data": {"a": secret("b")}}))
    assert MessageToDict(encode({"data": Secret({"a": "b"})}, secrets)) == {"data": secret({"a": "b"})}


def test_every_kind_of_unknown_is_the_same_to_a_package() -> None:
    properties, _ = decode(wire({"count": UNKNOWN_NUMBER, "hidden": secret(UNKNOWN_NUMBER)}))
    assert properties == {"count": UNKNOWN, "hidden": UNKNOWN}


@pytest.mark.parametrize(
    ("secret_text", "message", "shown"),
    [
        ("correct-horse", 'invalid value "correct-horse!"', 'invalid value "[secret]!"'),
        ("correct-horse", "Y29ycmVjdC1ob3JzZQ== is bad", "[secret] is bad"),
        ("two\nlines and more", 'value "two\\nlines and more"', 'value "[secret]"'),
        ("a", "a name can't be: a", "[secret] name can't be: [secret]"),
        ("a", "a bad value", "[secret] bad value"),
    ],
)
def test_secrets_are_removed_from_messages(secret_text: str, message: str, shown: str) -> None:
    _, secrets = decode(wire({"x": secret(secret_text)}))
    assert secrets.hidden(message) == shown
