"""Converts Pulumi property values between their wire form and plain Python.

On the wire a secret is a map with a signature, a value that is not known yet is one of seven fixed strings, and
every number is a double. Assets and archives keep their wire form: no package here reads them.
"""

import base64
import json
import re
from dataclasses import dataclass, field

from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value

from persia_infra.rehearsal.provider.package import UNKNOWN, Properties, PropertyValue, Secret

Path = tuple[str | int, ...]

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWN_TEXTS = {
    _UNKNOWN_TEXT,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
}
_LONG_ENOUGH_TO_FIND_INSIDE = 8


@dataclass
class Secrets:
    """The paths and the texts of the secrets in a request."""

    paths: set[Path] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def joined(self, *others: "Secrets") -> "Secrets":
        return Secrets(
            self.paths.union(*(other.paths for other in others)),
            self.texts.union(*(other.texts for other in others)),
        )

    def note(self, value: PropertyValue) -> None:
        """Adds every text and number in a secret value."""
        if isinstance(value, dict):
            for item in value.values():
                self.note(item)
        elif isinstance(value, list):
            for item in value:
                self.note(item)
        elif isinstance(value, Secret):
            self.note(value.value)
        elif isinstance(value, str | int | float) and not isinstance(value, bool) and str(value):
            self.texts.add(str(value))

    def give_away(self, value: PropertyValue) -> bool:
        """Whether a text is a secret, or contains a secret of at least eight characters."""
        if not isinstance(value, str):
            return False
        return any(value == text or (len(text) >= _LONG_ENOUGH_TO_FIND_INSIDE and text in value) for text in self.texts)

    def hidden(self, text: str) -> str:
        """Returns the text with every secret replaced, also where it is escaped or in base64."""
        for secret in sorted(self.texts, key=len, reverse=True):
            forms = {secret, json.dumps(secret)[1:-1], base64.b64encode(secret.encode()).decode()}
            for form in sorted(forms, key=len, reverse=True):
                pattern = re.escape(form)
                if len(form) < _LONG_ENOUGH_TO_FIND_INSIDE:
                    pattern = rf"(?<!\w){pattern}(?!\w)"
                text = re.sub(pattern, "[secret]", text)
        return text


def decode(struct: Struct) -> tuple[Properties, Secrets]:
    """Returns plain values, and the secrets among them."""
    secrets = Secrets()
    return {name: _decode(value, (name,), secrets) for name, value in struct.fields.items()}, secrets


def encode(properties: Properties, secrets: Secrets | None = None) -> Struct:
    """Returns the wire form; values at the paths of secrets, or with their texts, become secrets again."""
    secrets = secrets or Secrets()
    struct = Struct()
    for name, value in properties.items():
        _encode(value, (name,), secrets, struct.fields[name])
    return struct


def _decode(value: Value, path: Path, secrets: Secrets) -> PropertyValue:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWN_TEXTS else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_decode(item, (*path, index), secrets) for index, item in enumerate(value.list_value.values)]
    if kind != "struct_value":
        return None
    fields = value.struct_value.fields
    signature = fields[_SIGNATURE].string_value if _SIGNATURE in fields else ""
    if signature not in (_SECRET, _OUTPUT):
        return {name: _decode(item, (*path, name), secrets) for name, item in fields.items()}
    plain = _decode(fields["value"], path, secrets) if "value" in fields else UNKNOWN
    if signature == _SECRET or (signature == _OUTPUT and "secret" in fields and fields["secret"].bool_value):
        secrets.paths.add(path)
        secrets.note(plain)
    return plain


def _encode(value: PropertyValue, path: Path, secrets: Secrets, into: Value) -> None:
    if isinstance(value, Secret) or path in secrets.paths or secrets.give_away(value):
        wrapped = into.struct_value.fields
        wrapped[_SIGNATURE].string_value = _SECRET
        _encode_plain(_unwrapped(value), path, Secrets(), wrapped["value"])
    else:
        _encode_plain(value, path, secrets, into)


def _encode_plain(value: PropertyValue, path: Path, secrets: Secrets, into: Value) -> None:
    if value is None:
        into.null_value = NULL_VALUE
    elif value is UNKNOWN:
        into.string_value = _UNKNOWN_TEXT
    elif isinstance(value, bool):
        into.bool_value = value
    elif isinstance(value, int | float):
        into.number_value = value
    elif isinstance(value, str):
        into.string_value = value
    elif isinstance(value, dict):
        into.struct_value.SetInParent()
        for name, item in value.items():
            _encode(item, (*path, name), secrets, into.struct_value.fields[name])
    elif isinstance(value, list | tuple):
        into.list_value.SetInParent()
        for index, item in enumerate(value):
            _encode(item, (*path, index), secrets, into.list_value.values.add())
    else:
        raise TypeError(f"{path}: {type(value).__name__} is not a valid property value")


def _unwrapped(value: PropertyValue) -> PropertyValue:
    if isinstance(value, Secret):
        return _unwrapped(value.value)
    if isinstance(value, dict):
        return {name: _unwrapped(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_unwrapped(item) for item in value]
    return value
