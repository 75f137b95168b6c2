"""`persia-infra schema`."""

from pathlib import Path
from typing import Annotated

import typer


def schema(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file instead of standard output.", dir_okay=False),
    ] = None,
    config_key: Annotated[
        str, typer.Option(help="The key under `config` that holds the environment; another project has its own.")
    ] = "persia-infra:environment",
) -> None:
    """Prints the JSON Schema of a stack's configuration file, with which editors complete and check it."""
    import json

    from persia_infra.reference.json_schema import stack_schema
    from persia_infra.spec.errors import InputError, Problem

    text = json.dumps(stack_schema(config_key), indent=2)
    if output is None:
        typer.echo(text)
        return
    try:
        output.write_text(f"{text}\n")
    except OSError as error:
        message = f"cannot be written ({error.strerror}); choose another file"
        raise InputError([Problem(str(output), "", message)]) from None
