"""The reference pages are those that the descriptions make."""

import re
from pathlib import Path

import pytest

from persia_infra.reference.pages import INDEX, written_pages
from tests.support.project import PROJECT

FOLDER = PROJECT / "docs/reference"


def test_the_committed_pages_are_up_to_date() -> None:
    committed = {file.name: file.read_text() for file in FOLDER.iterdir()}

    assert committed == written_pages(), "run `make docs-reference` and commit docs/reference"


def test_the_index_links_every_page() -> None:
    texts = written_pages()

    assert set(re.findall(r"\]\((.*?)\)", texts[INDEX])) == set(texts) - {INDEX}


@pytest.mark.parametrize("name", sorted(written_pages()))
def test_links_lead_somewhere(name: str) -> None:
    texts = written_pages()
    anchors = {
        "".join(letter for letter in heading.lower() if letter.isalnum() or letter in "-_")
        for heading in re.findall(r"^## `(.*)`$", texts[name], re.MULTILINE)
    }

    for link in re.findall(r"\]\((.*?)\)", texts[name]):
        assert link in texts or link.removeprefix("#") in anchors, link
        assert not Path(link).is_absolute()
