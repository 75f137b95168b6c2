"""Descriptions of fields: the docstring that stands below each field in the source of its model.

They are read from the source when somebody asks, so that importing a model costs nothing for them.
"""

import ast
import inspect
import sys
from functools import cache

from pydantic import BaseModel


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Returns the description of each field that has one, by the field's name in Python.

    A field without a description has that of the nearest base class that describes it.
    """
    descriptions: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            descriptions.update(_attribute_docstrings(base.__module__).get(base.__qualname__, {}))
    # A model that is created at run time has no source, and describes its fields itself.
    own = {name: field.description for name, field in model.model_fields.items() if field.description}
    return own | {name: descriptions[name] for name in model.model_fields if name in descriptions}


def model_description(model: type[BaseModel]) -> str:
    """Returns the first line of the model's own docstring, or nothing."""
    docstring = inspect.cleandoc(model.__dict__.get("__doc__") or "")
    return docstring.partition("\n")[0]


@cache
def _attribute_docstrings(module: str) -> dict[str, dict[str, str]]:
    """Returns the attribute docstrings of a module's classes, by class and attribute."""
    return dict(_in_classes(ast.parse(inspect.getsource(sys.modules[module])).body, ""))


def _in_classes(body: list[ast.stmt], prefix: str) -> list[tuple[str, dict[str, str]]]:
    classes: list[tuple[str, dict[str, str]]] = []
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            name = f"{prefix}{statement.name}"
            classes.append((name, _in_class(statement)))
            classes += _in_classes(statement.body, f"{name}.")
        elif isinstance(statement, ast.FunctionDef):
            classes += _in_classes(statement.body, f"{prefix}{statement.name}.<locals>.")
    return classes


def _in_class(definition: ast.ClassDef) -> dict[str, str]:
    docstrings = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docstrings[name] = " ".join(inspect.cleandoc(text).split())
    return docstrings
