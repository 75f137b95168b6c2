"""`persia-infra check`."""

from typing import Annotated

import typer


def check(
    inputs: Annotated[
        list[str], typer.Argument(metavar="STACK|FILE…", help="Names of stacks, or YAML files.", show_default=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Validates stacks or manifests; prints one line per error.

    Exit 0 if everything is valid, 2 if not.
    """
    import json
    from dataclasses import asdict

    from persia_infra.manifests.inputs import read_inputs
    from persia_infra.spec.errors import InputError

    if not as_json:
        for source in read_inputs(inputs):
            for note in source.notes():
                typer.echo(f"note: {note}")
            typer.echo(f"{source.file}: fine")
        return
    try:
        notes = [asdict(note) for source in read_inputs(inputs) for note in source.notes()]
        errors = []
    except InputError as error:
        notes, errors = [], [asdict(problem) for problem in error.problems]
    typer.echo(json.dumps({"ok": not errors, "errors": errors, "notes": notes}, indent=2))
    if errors:
        raise typer.Exit(2)
