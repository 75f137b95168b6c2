"""YAML files that would take hours, or all memory, to read are refused at once."""

from pathlib import Path

import pytest

from persia_infra.spec.errors import InputError
from persia_infra.spec.yaml_files import MOST_VALUES, read_documents


def refused(file: Path, text: str) -> str:
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_documents(file, shown="x.yaml")
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.yaml"


@pytest.mark.timeout(30)
def test_aliases_that_stand_for_billions_of_values_are_refused(file: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]

    message = refused(file, "\n".join(lines))

    assert message == (
        f"x.yaml: line 1: is not valid YAML: its aliases stand for more than {MOST_VALUES} values; "
        "write out what is meant, or split the file"
    )


@pytest.mark.parametrize("text", ["&a [*a]", "a: &a\n  b: {c: *a}\n"])
def test_a_value_that_contains_itself_is_refused(file: Path, text: str) -> None:
    assert "an alias stands for a value that contains it" in refused(file, text)


def test_aliases_of_ordinary_size_are_read(file: Path) -> None:
    file.write_text("base: &base {cpu: 1}\nroles: [*base, *base]\nmerged: {<<: *base, memory: 2}\n")

    (document,) = read_documents(file)

    assert document == {"base": {"cpu": 1}, "roles": [{"cpu": 1}] * 2, "merged": {"cpu": 1, "memory": 2}}


def test_a_file_larger_than_any_description_is_refused(file: Path) -> None:
    with file.open("wb") as written:
        written.truncate(65 * 1024 * 1024)
    with pytest.raises(InputError, match="is larger than 64 MiB"):
        read_documents(file)
