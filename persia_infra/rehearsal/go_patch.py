"""Small changes to the source of a program before it is built.

A folder `patch` next to a go.mod holds Go files that are added to the module, at the same paths, and optionally
`edits.json`, a list of replacements: `{"file": "cmd/x/main.go", "replace": "old text", "with": "new text"}`. Nothing of
the module itself is stored: an edit fails if the text is not in the pinned version exactly once.

Go's `-overlay` would be simpler, but it does not accept downloaded modules.
"""

import json
import shutil
from pathlib import Path

from persia_infra.rehearsal.sources import GoSource, ToolMissing

_EDITS = "edits.json"


def patch_files(folder: Path) -> list[Path]:
    """Returns the files of a folder's patch; none if it has no patch."""
    return sorted(file for file in (folder / "patch").rglob("*") if file.is_file())


def write_patched(source: GoSource, folder: Path, module: Path, target: Path) -> Path:
    """Copies a module, changes the copy, and writes a go.mod that uses it.

    Args:
        source: The module to change.
        folder: Has go.mod, go.sum and the folder `patch`.
        module: The source of the module as it was downloaded.
        target: Receives the copy.

    Returns:
        The file for `go build -modfile`.

    Raises:
        ToolMissing: An edit does not apply.
    """
    patch, copy = folder / "patch", target / "module"
    edits = patch / _EDITS
    shutil.copytree(module, copy)
    for file in patch_files(folder):
        if file != edits:
            shutil.copyfile(file, copy / file.relative_to(patch))
    for number, edit in enumerate(json.loads(edits.read_text()) if edits.exists() else []):
        changed = copy / edit["file"]
        text = changed.read_text()
        if text.count(edit["replace"]) != 1:
            raise ToolMissing(
                f"{edits}: the text of edit {number} is not exactly once in {edit['file']} of the pinned version, so "
                "the program cannot be built: adapt the edit to that version"
            )
        changed.write_text(text.replace(edit["replace"], edit["with"]))
    go_mod = target / "go.mod"
    go_mod.write_text(f"{(folder / 'go.mod').read_text()}\nreplace {source.module} => {copy}\n")
    shutil.copyfile(folder / "go.sum", target / "go.sum")
    return go_mod
