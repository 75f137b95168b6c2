"""For all tests: what they start can be interrupted, even if they themselves run in the background."""

import gc
import signal
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

signal.signal(signal.SIGINT, signal.default_int_handler)
# The providers' classes are a million objects: looking through them for garbage would take a fifth of the unit tests.
gc.set_threshold(100_000, 50, 1000)


class Files(LoadFileScheduling):
    """Gives each worker a file at a time, of a folder below e2e all of them."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        folder = file.rpartition("/")[0]
        return folder if folder.startswith("tests/e2e/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Files:
    config.option.loadscopereorder = False
    return Files(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest begin, and the unit tests come last, to fill the end of whichever worker is done."""
    items.sort(key=lambda item: ("e2e" not in item.path.parts, item.path.parent.name == "e2e"))
