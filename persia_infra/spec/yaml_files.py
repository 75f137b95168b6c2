"""Reads and writes YAML; errors name the line and never quote the file, which may hold secrets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from persia_infra.spec.errors import InputError, Problem

# The classes written in C are several times faster; PyYAML may have been built without them.
_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MOST_VALUES = 2_000_000
"""Values in one document, aliases counted as often as they are used; a cluster has at most 200,000 pods."""
_MOST_BYTES = 64 * 1024 * 1024
_CONVERTED = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "timestamp"))


def is_file(path: Path) -> bool:
    """Tells whether a path is a file; a path that the system does not allow is not."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_documents(file: Path, *, shown: str | None = None) -> list[Any]:
    """Returns the documents of a file that are not empty.

    Args:
        file: The file.
        shown: The file's name in errors; its path when absent.

    Raises:
        InputError: The file is missing, unreadable, or not valid YAML.
    """
    name = shown or str(file)
    try:
        if file.stat().st_size > _MOST_BYTES:
            message = (
                f"is larger than {_MOST_BYTES // 2**20} MiB, which no description needs; check the path, or split it"
            )
            raise InputError([Problem(name, "", message)])
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError([Problem(name, "", "no such file; check the path")]) from None
    except UnicodeDecodeError:
        raise InputError([Problem(name, "", "is not UTF-8 text, so it cannot be YAML; save it as UTF-8")]) from None
    except OSError as error:
        raise InputError([Problem(name, "", f"cannot be read: {error.strerror}")]) from None
    except ValueError:
        raise InputError([Problem(name, "", "is not a valid path; check its characters")]) from None
    try:
        return parse_documents(text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError([Problem(name, line, f"is not valid YAML: {error.problem}")]) from None
    except yaml.YAMLError:
        raise InputError([Problem(name, "", "is not valid YAML: it holds characters YAML forbids")]) from None
    except RecursionError:
        raise InputError([Problem(name, "", "is nested too deeply to be read; flatten it")]) from None


def parse_documents(text: str) -> list[Any]:
    """Returns the documents of a text that are not empty.

    Raises:
        YAMLError: The text is not valid YAML, repeats a key, or holds an impossible date or number.
        RecursionError: The text is nested too deeply.
    """
    return [document for document in _documents(text) if document is not None]


def _documents(text: str) -> Iterator[Any]:
    loader = _LOADER(text)
    try:
        while loader.check_node():
            root = loader.get_node()
            _refuse_large_expansion(root)
            for node in _nodes(root):
                if isinstance(node, yaml.MappingNode):
                    _refuse_repeated_keys(node)
                elif isinstance(node, yaml.ScalarNode):
                    _refuse_impossible_value(node, loader)
            yield loader.construct_document(root)
    finally:
        loader.dispose()


def _refuse_large_expansion(root: yaml.Node) -> None:
    """Refuses a document whose aliases stand for more values than any description has, or for themselves.

    A few lines of aliases to aliases can stand for billions of values, which would take hours and all memory to read.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting[-1]
        children = _children(node)
        if id(node) in sizes:
            waiting.pop()
        elif id(node) in open_nodes:
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
            open_nodes.discard(id(node))
            waiting.pop()
        else:
            open_nodes.add(id(node))
            if any(id(child) in open_nodes for child in children):
                problem = "an alias stands for a value that contains it; write the value out"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
            waiting += [child for child in children if id(child) not in sizes]
    if sizes[id(root)] > MOST_VALUES:
        problem = f"its aliases stand for more than {MOST_VALUES} values; write out what is meant, or split the file"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=root.start_mark)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return node.value
    return [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else []


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Yields every node once, even if several aliases refer to it."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        waiting += _children(node)


def _refuse_repeated_keys(node: yaml.MappingNode) -> None:
    """Refuses a mapping with a repeated key, of which PyYAML would silently keep the last value only."""
    keys = set()
    for key, _ in node.value:
        name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
        if name in keys and key.value != "<<":
            problem = f"the key {key.value!r} is given twice; remove one"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        keys |= {name} - {None}


def _refuse_impossible_value(node: yaml.ScalarNode, loader: Any) -> None:  # noqa: ANN401
    """Refuses text that looks like a date or number but has no possible value, such as 2021-99-99."""
    if node.tag not in _CONVERTED:
        return
    try:
        value = loader.construct_object(node)
    except (ArithmeticError, AttributeError, LookupError, ValueError):
        problem = "looks like a number or date but is not a valid one; put it in quotes"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        problem = "the number does not fit into 64 bits; lower it, or put it in quotes"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


class _ReadableDumper(_DUMPER):
    """Writes text of several lines as a block, and repeats values instead of using aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_ReadableDumper.add_representer(str, _text)


def write_documents(documents: list[Any]) -> str:
    """Returns documents as one YAML stream, with keys in their given order."""
    return yaml.dump_all(documents, Dumper=_ReadableDumper, sort_keys=False, width=110, explicit_start=True)
