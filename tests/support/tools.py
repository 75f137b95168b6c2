"""The operators' programs that the tests run; `make test` builds them before it starts pytest."""

from persia_infra.kube.programs import GoSource
from persia_infra.operators import operator_programs
from persia_infra.rehearsal.operator_tools import ensure_operators
from persia_infra.rehearsal.toolchain import Progress, Toolchain, main

MPI_OPERATOR_BEFORE = GoSource(
    "mpi-operator-0.7",
    "github.com/kubeflow/mpi-operator",
    ("github.com/kubeflow/mpi-operator/cmd/mpi-operator",),
    3,
    program="mpi-operator-0.7",
)
"""The version that upgrades start from."""


def ensure_operator_tools(progress: Progress) -> Toolchain:
    """Every operator's program, and the old version of the MPI operator."""
    return ensure_operators(operator_programs(), progress, also=(MPI_OPERATOR_BEFORE,))


if __name__ == "__main__":
    main(ensure_operator_tools)
