"""YAML files as plain values, with errors that name the line and never quote the file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from persia_infra.errors import InputError, Problem

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
        YAMLError: It is no YAML, or has a key twice in one mapping.
        RecursionError: It is nested too deeply.
    """
    return [document for document in _documents(text) if document is not None]


def _documents(text: str) -> Iterator[Any]:
    loader = _LOADER(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            _refuse_doubled_keys(node)
            yield loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_doubled_keys(root: yaml.Node) -> None:
    """Plain YAML would silently drop the first of two values under one key."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        keys = set()
        for key, value in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
            if name in keys and key.value != "<<":
                problem = f"the key {key.value!r} is given twice; remove one"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            keys |= {name} - {None}
            waiting.append(value)


class _ReadableDumper(yaml.SafeDumper):
    """Writes text of several lines as a block, and values that occur twice twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_ReadableDumper.add_representer(str, _text)


def write_documents(documents: list[Any]) -> str:
    """Documents of one YAML stream, keys in the order given."""
    return yaml.dump_all(documents, Dumper=_ReadableDumper, sort_keys=False, width=110, explicit_start=True)
