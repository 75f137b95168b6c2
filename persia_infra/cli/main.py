"""The command line `persia-infra`. Exit codes: 0 success, 1 the answer is no, 2 invalid input.

Each command is a module of its own and imports what it needs when it runs, so that `--help` is quick.
"""

import atexit
import gc
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from persia_infra.cli.check import check
from persia_infra.cli.explain import explain
from persia_infra.cli.rehearse import rehearse
from persia_infra.cli.render import render
from persia_infra.cli.schema import schema
from persia_infra.cli.status import status
from persia_infra.spec.errors import InputError

COMMANDS = (check, render, rehearse, status, explain, schema)

app = typer.Typer(
    name="persia-infra",
    help="Training environments on GKE, checked and rehearsed before anything is rented.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command()(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"persia-infra {version('persia-infra')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Training environments on GKE, checked and rehearsed before anything is rented."""


def main() -> None:
    """Runs the command line and exits."""
    # Hundreds of classes are made while importing: looking through them for garbage takes a quarter of `check`.
    gc.set_threshold(100_000, 50, 1000)
    atexit.register(gc.freeze)
    try:
        app()
    except InputError as error:
        typer.echo(str(error), err=True)
        sys.exit(2)
