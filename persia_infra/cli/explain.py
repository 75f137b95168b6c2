"""`persia-infra explain`."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from persia_infra.reference.explain import Explanation
    from persia_infra.reference.fields import FieldDoc

WIDTH = 100


def explain(
    field: Annotated[
        str, typer.Argument(metavar="[FIELD]", help="Such as pools.gpu.spot; all fields when absent.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Explains a field of a stack's environment: its type, default and meaning.

    Names of pools and jobs can be anything. A kind of job can stand for a name: jobs.PersiaJob.nnWorker.
    """
    import json

    from persia_infra.reference.explain import explain as find

    explanation = find(field)
    typer.echo(json.dumps(explanation.as_json(), indent=2) if as_json else "\n".join(_lines(explanation)))


def _lines(explanation: "Explanation") -> list[str]:
    doc = explanation.field
    lines = [f"FIELD:    {explanation.path}", *_wrapped(explanation.shape.words, "TYPE:     ", " " * 10)]
    if doc and doc.required:
        lines.append("REQUIRED: yes")
    if doc and doc.default_text:
        lines += _wrapped(doc.default_text, "DEFAULT:  ", " " * 10)
    if doc and doc.description:
        lines += ["", *_wrapped(doc.description)]
    if explanation.found_in:
        lines += ["", *_wrapped(", ".join(explanation.found_in), "KINDS:    ", " " * 10)]
    if explanation.kinds:
        lines += ["", "KINDS:", *(f"  {kind}" for kind in explanation.kinds)]
        lines += ["", f"For the fields of one: persia-infra explain jobs.{explanation.kinds[0]}"]
    if explanation.fields:
        lines += ["", "FIELDS:"]
        for inner in explanation.fields:
            lines += _wrapped(f"{inner.key}  ({_summary(inner)})", "  ", " " * 6)
            if not inner.in_kubernetes:
                lines += _wrapped(inner.description, " " * 6, " " * 6)
    return lines


def _summary(doc: "FieldDoc") -> str:
    parts = [doc.shape.words]
    if doc.required:
        parts.append("required")
    if doc.default_text:
        parts.append(f"default {doc.default_text}")
    return "; ".join(parts)


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest)
