"""Writes the reference pages: `python -m persia_infra.reference.pages docs/reference`."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from persia_infra.reference.explain import explain
from persia_infra.reference.fields import FieldDoc, fields_of, is_kubernetes_type
from persia_infra.spec.descriptions import model_description
from persia_infra.spec.shapes import Shape

INDEX = "README.md"
_NOTICE = "<!-- Written by `make docs-reference` from the descriptions of the fields. Do not edit. -->"
_NAME = "NAME"


@dataclass(frozen=True)
class Page:
    """One page and the places of an environment that it documents."""

    file: str
    title: str
    places: tuple[str, ...]


def pages() -> list[Page]:
    """Returns all pages, in the order of the index."""
    kinds = [Page(f"{kind.lower()}.md", kind, (f"jobs.{kind}",)) for kind in explain("jobs").kinds]
    return [
        Page("environment.md", "Environment", ("",)),
        Page("cluster.md", "Network and cluster", ("network", "cluster")),
        Page("pools.md", "Node pools", (f"pools.{_NAME}",)),
        *kinds,
        Page("settings.md", "Settings and profiles", (f"profiles.{_NAME}",)),
        Page("operators.md", "Operators", ("operators",)),
        Page("nats.md", "NATS", ("jobs.PersiaJob.nats",)),
    ]


def written_pages() -> dict[str, str]:
    """Returns the text of every page, by file name."""
    everything = pages()
    homes = {_model_at(place): page for page in everything for place in page.places}
    index = [
        _NOTICE,
        "# Reference",
        "Every field of a stack's `persia-infra:environment`. `persia-infra explain FIELD` prints the same.",
        "\n".join(f"- [{page.title}]({page.file})" for page in everything),
    ]
    texts = {page.file: "\n\n".join(_page(page, homes)) + "\n" for page in everything}
    return {INDEX: "\n\n".join(index) + "\n", **texts}


def _model_at(place: str) -> type[BaseModel]:
    return next(iter(explain(place).shape.objects.values()))


def _page(page: Page, homes: dict[type[BaseModel], Page]) -> Iterator[str]:
    yield _NOTICE
    yield f"# {page.title}"
    sections: dict[type[BaseModel], str] = {}
    waiting = [(_model_at(place), place) for place in page.places]
    while waiting:
        model, path = waiting.pop(0)
        if model in sections:
            continue
        sections[model] = path
        for doc in fields_of(model):
            waiting += [
                (inner, _below(path, doc))
                for inner in doc.shape.objects.values()
                if not is_kubernetes_type(inner) and homes.get(inner, page) == page
            ]
    for model, path in sections.items():
        if path:
            yield f"## `{path}`"
        yield model_description(model)
        rows = [_row(doc, sections, homes) for doc in fields_of(model)]
        yield "\n".join(["| field | type | default | description |", "|---|---|---|---|", *rows])


def _below(path: str, doc: FieldDoc) -> str:
    key = f"{path}.{doc.key}" if path else doc.key
    return f"{key}.{_NAME}" if doc.shape.values else f"{key}[]" if doc.shape.items else key


def _row(doc: FieldDoc, sections: dict[type[BaseModel], str], homes: dict[type[BaseModel], Page]) -> str:
    default = "required" if doc.required else f"`{doc.default_text}`" if doc.default_text else ""
    cells = (f"`{doc.key}`", _type(doc.shape, sections, homes), default, doc.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(shape: Shape, sections: dict[type[BaseModel], str], homes: dict[type[BaseModel], Page]) -> str:
    """Returns the words of a type, with a link to where the fields of its objects are listed."""
    links = []
    for kind, model in shape.objects.items():
        if model in sections:
            links.append(f"[{kind or 'fields'}](#{_anchor(sections[model])})")
        elif model in homes:
            links.append(f"[{kind or 'fields'}]({homes[model].file})")
    return f"{shape.words} ({', '.join(links)})" if links else shape.words


def _anchor(heading: str) -> str:
    """Returns the anchor that GitHub makes for a heading."""
    return "".join(character for character in heading.lower() if character.isalnum() or character in "-_")


def write_pages(folder: Path) -> None:
    """Writes all pages into a folder, and removes pages there that are no longer written."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = written_pages()
    for file in folder.glob("*.md"):
        if file.name not in texts:
            file.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
