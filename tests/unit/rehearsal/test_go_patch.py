"""Changes to the source of a program before it is built."""

import json
from pathlib import Path

import pytest

from persia_infra.kube.programs import GoSource
from persia_infra.rehearsal.go_patch import patch_files, write_patched
from persia_infra.rehearsal.sources import ToolMissing, tools_folder

SOURCE = GoSource("tool", "example.com/tool", ("example.com/tool/cmd",), 1)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "downloaded" / "cmd").mkdir(parents=True)
    (tmp_path / "downloaded" / "cmd" / "main.go").write_text('listen(":8080")\nlisten(":9090")\n')
    return tmp_path / "downloaded"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tool" / "patch" / "cmd").mkdir(parents=True)
    (tmp_path / "tool" / "patch" / "cmd" / "added.go").write_text("package main\n")
    (tmp_path / "tool" / "go.mod").write_text("module tool\n")
    (tmp_path / "tool" / "go.sum").write_text("sums\n")
    return tmp_path / "tool"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def edit(folder: Path, text: str) -> None:
    edits = [{"file": "cmd/main.go", "replace": text, "with": "listen(address)"}]
    (folder / "patch" / "edits.json").write_text(json.dumps(edits))


def test_files_are_added_and_edited_in_a_copy_of_the_module(folder: Path, module: Path, target: Path) -> None:
    edit(folder, 'listen(":8080")')
    go_mod = write_patched(SOURCE, folder, module, target)
    copy = target / "module"
    assert go_mod.read_text() == f"module tool\n\nreplace example.com/tool => {copy}\n"
    assert go_mod.with_name("go.sum").read_text() == "sums\n"
    assert (copy / "cmd" / "added.go").read_text() == "package main\n"
    assert (copy / "cmd" / "main.go").read_text() == 'listen(address)\nlisten(":9090")\n'
    assert not (copy / "edits.json").exists()
    assert 'listen(":8080")' in (module / "cmd" / "main.go").read_text()


@pytest.mark.parametrize("text", ["listen(", "serve()"], ids=["twice", "absent"])
def test_an_edit_that_does_not_apply_exactly_once_is_refused(
    folder: Path, module: Path, target: Path, text: str
) -> None:
    edit(folder, text)
    with pytest.raises(ToolMissing, match=r"edits\.json: the text of edit 0 is not exactly once in cmd/main\.go"):
        write_patched(SOURCE, folder, module, target)


def test_only_the_mpi_operator_is_changed() -> None:
    changed = [folder.name for folder in sorted(tools_folder().iterdir()) if patch_files(folder)]
    assert changed == ["mpi-operator", "mpi-operator-0.7"]
