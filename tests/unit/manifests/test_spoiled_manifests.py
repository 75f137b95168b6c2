"""Whatever is wrong with a manifest, it is said: reading one succeeds or is refused, and nothing else."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from persia_infra.manifests.inputs import read_inputs
from persia_infra.spec.errors import InputError
from tests.support.project import PROJECT

EXAMPLES = PROJECT / "examples"
MANIFESTS = {
    str(file.relative_to(EXAMPLES)): [copy.deepcopy(one) for one in yaml.safe_load_all(file.read_text())]
    for file in sorted(EXAMPLES.rglob("*.yaml"))
    if file.name != "Pulumi.yaml"
}
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.dates() | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "value", "kind", "spec", 7, None, True]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every node below."""
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inside:
        yield (*above, key)
        yield from places(value, (*above, key))


@st.composite
def spoiled(draw: st.DrawFn) -> list[Any]:
    """The documents of an example with up to three nodes replaced by anything."""
    documents = copy.deepcopy(MANIFESTS[draw(st.sampled_from(sorted(MANIFESTS)))])
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(places(documents))))
        node = documents
        for key in way:
            node = node[key]
        node[last] = draw(ANYTHING)
    return documents


@given(documents=spoiled())
@settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_spoiled_manifest_is_read_or_refused(tmp_path: Path, documents: list[Any]) -> None:
    file = tmp_path / "spoiled.yaml"
    file.write_text(yaml.safe_dump_all(documents, sort_keys=False), encoding="utf-8")
    try:
        said = [note for found in read_inputs([str(file)]) for note in found.notes()]
    except InputError as refused:
        said = list(refused.problems)

    assert all(one.message and "\n" not in one.message for one in said)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("2001-99-99", "looks like a number or date but is not a valid one; put it in quotes"),
        ("2001-01-01T25:00:00Z", "looks like a number or date but is not a valid one; put it in quotes"),
        ("!!int many", "looks like a number or date but is not a valid one; put it in quotes"),
        ("!!bool perhaps", "looks like a number or date but is not a valid one; put it in quotes"),
        ("9" * 5000, "looks like a number or date but is not a valid one; put it in quotes"),
        (
            f"0x{'f' * 5000}",
            "the number does not fit into 64 bits; lower it, or put it in quotes",
        ),
        (str(2**64), "the number does not fit into 64 bits; lower it, or put it in quotes"),
    ],
)
def test_values_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, line: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.yaml").write_text(f"kind: PersiaJob\nspec:\n  logLevel: {value}\n")

    with pytest.raises(InputError) as refused:
        read_inputs(["f.yaml"])

    assert [str(problem) for problem in refused.value.problems] == [f"f.yaml: line 3: is not valid YAML: {line}"]


def test_a_manifest_inside_itself(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(
        "&all\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: trainer}\nspec: *all\nstatus: *all\n"
    )

    with pytest.raises(InputError):
        read_inputs([str(file)])


def test_a_name_that_no_file_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("Pulumi.yaml").write_text("name: x\n")

    with pytest.raises(InputError, match="there is no stack"):
        read_inputs(["a" * 300])
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        read_inputs([f"{'a' * 300}.yaml"])
