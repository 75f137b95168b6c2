"""Tests that run the MPI operator, whose health port can't be chosen: one worker runs them all."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def mpi_port() -> Iterator[None]:
    """Those of another run on this machine take turns with them."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
