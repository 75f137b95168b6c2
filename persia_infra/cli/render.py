"""`persia-infra render`."""

from typing import Annotated

import typer


def render(
    inputs: Annotated[
        list[str], typer.Argument(metavar="STACK|FILE…", help="Names of stacks, or YAML files.", show_default=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Prints every object that would be declared, as YAML documents."""
    import gc
    import json

    from persia_infra.manifests.inputs import read_inputs

    # The providers' classes are a million objects that live as long as the command: looking through them for
    # garbage, and once more at the end, would take a third of its time.
    gc.disable()
    described = read_inputs(inputs)

    from persia_components.render import declared_for

    from persia_infra.spec.yaml_files import write_documents

    for found in described:
        for note in found.notes():
            typer.echo(f"note: {note}", err=True)
    documents = [one.document for found in described for one in declared_for(found.name, found.spec)]
    typer.echo(json.dumps(documents, indent=2) if as_json else write_documents(documents), nl=as_json)
    gc.freeze()
    gc.enable()
