"""Where one structural schema takes what another one would refuse."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
OPEN = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
_LOWER_IS_LAXER = ("minimum", "minLength", "minItems", "minProperties")
_HIGHER_IS_LAXER = ("maximum", "maxLength", "maxItems", "maxProperties")
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def laxer(ours: Schema, theirs: Schema, path: str = "") -> Iterator[tuple[str, str]]:
    """Places where `ours` takes what `theirs` refuses, or has what `theirs` does not know; each with what differs."""
    if theirs.get(OPEN) and "properties" not in theirs:
        return
    if (mine := _kind(ours)) != (other := _kind(theirs)) and not (other == "int or string" and mine in _EITHER):
        yield path, f"is {mine}, upstream {other}"
        return
    yield from ((path, said) for said in _value_differences(ours, theirs))
    if mine == "array":
        yield from laxer(ours["items"], theirs["items"], f"{path}[]")
    elif mine == "object":
        yield from _object_differences(ours, theirs, path)


_EITHER = ("integer", "string")


def unknown_to_us(ours: Schema, theirs: Schema, path: str = "") -> Iterator[tuple[str, str]]:
    """Upstream's fields that `ours` does not name, each with what the API server does to it: keeps or prunes."""
    if _kind(ours) == "array" == _kind(theirs):
        yield from unknown_to_us(ours["items"], theirs["items"], f"{path}[]")
    named = ours.get("properties")
    if named is None:
        return
    for key, schema in theirs.get("properties", {}).items():
        below = f"{path}.{key}".lstrip(".")
        if key in named:
            yield from unknown_to_us(named[key], schema, below)
        else:
            yield below, "kept" if ours.get(OPEN) else "pruned"
    if isinstance(values := theirs.get("additionalProperties"), Mapping):
        for key, schema in named.items():
            yield from unknown_to_us(schema, values, f"{path}.{key}".lstrip("."))


def _kind(schema: Schema) -> str:
    if schema.get(INT_OR_STRING):
        return "int or string"
    return schema.get("type", "anything")


def _value_differences(ours: Schema, theirs: Schema) -> Iterator[str]:
    if "enum" in theirs and not ("enum" in ours and set(ours["enum"]) <= set(theirs["enum"])):
        yield f"takes {ours.get('enum', 'anything')}, upstream {theirs['enum']}"
    for bounds, is_laxer in ((_LOWER_IS_LAXER, lambda a, b: a < b), (_HIGHER_IS_LAXER, lambda a, b: a > b)):
        for bound in bounds:
            if bound in theirs and (bound not in ours or is_laxer(ours[bound], theirs[bound])):
                yield f"has {bound} {ours.get(bound)}, upstream {theirs[bound]}"
    if "pattern" in theirs and (passing := _passing_only_ours(ours, theirs["pattern"])) is not None:
        yield f"takes {passing!r}, upstream has the pattern {theirs['pattern']}"
    lowest, highest = _RANGES.get(theirs.get("format", ""), (None, None))
    if lowest is not None and highest is not None:
        mine = _RANGES.get(ours.get("format", ""), (float("-inf"), float("inf")))
        if max(mine[0], ours.get("minimum", mine[0])) < lowest or min(mine[1], ours.get("maximum", mine[1])) > highest:
            yield f"has no range, upstream {theirs['format']}"


def _passing_only_ours(ours: Schema, pattern: str) -> str | None:
    """A text that `ours` takes and the pattern does not; of all short ones from letters that matter in names."""
    own, theirs = re.compile(ours.get("pattern", "")), re.compile(pattern)
    texts = ours.get("enum") or map("".join, _short_texts())
    return next((text for text in texts if own.search(text) and not theirs.search(text)), None)


def _short_texts() -> Iterator[tuple[str, ...]]:
    return itertools.chain.from_iterable(itertools.product("a1E.-+iM_", repeat=length) for length in range(5))


def _object_differences(ours: Schema, theirs: Schema, path: str) -> Iterator[tuple[str, str]]:
    if ours.get(OPEN) and "properties" not in ours:
        if not theirs.get(OPEN):
            yield path, "is open, upstream has a schema"
        return
    needed = set(theirs.get("required", ())) - set(ours.get("required", ()))
    named, known = ours.get("properties", {}), theirs.get("properties", {})
    for key in sorted(needed):
        if "default" not in named.get(key, {}):
            yield f"{path}.{key}".lstrip("."), "is not required, upstream it is"
    values = theirs.get("additionalProperties")
    if isinstance(mine := ours.get("additionalProperties"), Mapping):
        if isinstance(values, Mapping):
            yield from laxer(mine, values, f"{path}.*".lstrip("."))
        else:
            yield path, "has any keys, upstream only some"
    for key, schema in named.items():
        below = f"{path}.{key}".lstrip(".")
        if key in known or isinstance(values, Mapping):
            yield from laxer(schema, known.get(key, values), below)
        elif not theirs.get(OPEN):
            yield below, "is not upstream's"
