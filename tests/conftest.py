"""For all tests: what they start can be interrupted, even if they themselves run in the background."""

import gc
import signal

import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)
# The providers' classes are a million objects: looking through them for garbage would take a fifth of the unit tests.
gc.set_threshold(100_000, 50, 1000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the end-to-end tests first; the unit tests then fill the end of whichever worker is done."""
    items.sort(key=lambda item: "e2e" not in item.path.parts)
