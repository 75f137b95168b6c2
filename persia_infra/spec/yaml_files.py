"""YAML files as plain values, with errors that name the line and never quote the file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from persia_infra.spec.errors import InputError, Problem

# The ones written in C, where PyYAML was built with them, are several times faster.
_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_CONVERTED = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "timestamp"))


def is_file(path: Path) -> bool:
    """Whether there is such a file; not so if the path is none that the system can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_documents(file: Path, *, shown: str | None = None) -> list[Any]:
    """Every document of a file that is not empty.

    Args:
        file: The file.
        shown: What errors call it; its path when absent.

    Raises:
        InputError: The file is missing, unreadable, or no YAML.
    """
    called = shown or str(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError([Problem(called, "", "no such file; check the path")]) from None
    except UnicodeDecodeError:
        raise InputError([Problem(called, "", "is not UTF-8 text, so it cannot be YAML")]) from None
    except OSError as error:
        raise InputError([Problem(called, "", f"cannot be read: {error.strerror}")]) from None
    except ValueError:
        raise InputError([Problem(called, "", "is no path that a file can have")]) from None
    try:
        return parse_documents(text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError([Problem(called, line, f"is not valid YAML: {error.problem}")]) from None
    except yaml.YAMLError:
        raise InputError([Problem(called, "", "is not valid YAML: it holds characters YAML forbids")]) from None
    except RecursionError:
        raise InputError([Problem(called, "", "is nested too deeply to be read")]) from None


def parse_documents(text: str) -> list[Any]:
    """Every document of a text that is not empty.

    Raises:
        YAMLError: It is no YAML, has a key twice in one mapping, or an impossible date or number.
        RecursionError: It is nested too deeply.
    """
    return [document for document in _documents(text) if document is not None]


def _documents(text: str) -> Iterator[Any]:
    loader = _LOADER(text)
    try:
        while loader.check_node():
            root = loader.get_node()
            for node in _nodes(root):
                if isinstance(node, yaml.MappingNode):
                    _refuse_doubled_keys(node)
                elif isinstance(node, yaml.ScalarNode):
                    _refuse_impossible_value(node, loader)
            yield loader.construct_document(root)
    finally:
        loader.dispose()


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Every node once, however often it is referred to."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            waiting += [part for pair in node.value for part in pair]


def _refuse_doubled_keys(node: yaml.MappingNode) -> None:
    """Plain YAML would silently drop the first of two values under one key."""
    keys = set()
    for key, _ in node.value:
        name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
        if name in keys and key.value != "<<":
            problem = f"the key {key.value!r} is given twice; remove one"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        keys |= {name} - {None}


def _refuse_impossible_value(node: yaml.ScalarNode, loader: Any) -> None:  # noqa: ANN401
    """What looks like a date or a number but is none that can be had, such as 2021-99-99."""
    if node.tag not in _CONVERTED:
        return
    try:
        value = loader.construct_object(node)
    except (ArithmeticError, AttributeError, LookupError, ValueError):
        problem = "looks like a number or a date and is none; put it in quotes"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        problem = "a number takes more than the 64 bits that there are for it; lower it, or put it in quotes"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


class _ReadableDumper(_DUMPER):
    """Writes text of several lines as a block, and values that occur twice twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_ReadableDumper.add_representer(str, _text)


def write_documents(documents: list[Any]) -> str:
    """Documents of one YAML stream, keys in the order given."""
    return yaml.dump_all(documents, Dumper=_ReadableDumper, sort_keys=False, width=110, explicit_start=True)
