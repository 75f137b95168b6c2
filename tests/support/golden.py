"""Compares texts with recorded ones."""

import os
from pathlib import Path

import pytest

_SWITCH = "PERSIA_INFRA_REGENERATE"


def assert_recorded(golden: Path, text: str) -> None:
    """Compares a text with the recorded one.

    Set PERSIA_INFRA_REGENERATE=1 to record it anew, and read the difference. Such a run never passes: it has
    compared nothing.
    """
    if os.environ.get(_SWITCH) == "1":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text)
        pytest.fail(f"{golden.name} was recorded anew; read the difference, then run again without {_SWITCH}")
    assert text == golden.read_text()
