"""Tests that run the MPI operator, whose health port cannot be chosen: a single worker runs all of them."""

from collections.abc import Iterator

import pytest

from persia_infra.rehearsal.toolchain import cache_folder, locked


@pytest.fixture(scope="module", autouse=True)
def mpi_port() -> Iterator[None]:
    """Lets test runs of the same user take turns, whichever checkout they are in."""
    with locked(cache_folder() / "mpi-operator-port.lock"):
        yield
