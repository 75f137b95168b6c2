"""`persia-infra render`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from persia_infra.environment import EnvironmentSpec


def render(
    inputs: Annotated[
        list[str], typer.Argument(metavar="STACK|FILE…", help="Names of stacks, or YAML files.", show_default=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Prints every object that would be declared, as YAML documents."""
    import json

    from persia_infra.environment import EnvironmentSpec
    from persia_infra.kube.objects import documents
    from persia_infra.manifests.inputs import read_inputs
    from persia_infra.spec.yaml_files import write_documents

    sources = read_inputs(inputs)
    for source in sources:
        for note in source.notes():
            typer.echo(f"note: {note}", err=True)
    printed = []
    for source in sources:
        if isinstance(source.spec, EnvironmentSpec):
            printed += _of_stack(source.name, source.spec)
        else:
            printed += documents([(source.name, source.objects())])
    typer.echo(json.dumps(printed, indent=2) if as_json else write_documents(printed), nl=as_json)


def _of_stack(name: str, spec: "EnvironmentSpec") -> list[dict[str, Any]]:
    """Returns the resources of a stack. Its components are run for this, so only stacks need Pulumi."""
    from persia_components.render import declared_for
    from persia_components.startup import skip_garbage_collection

    skip_garbage_collection()
    return [resource.document for resource in declared_for(name, spec)]
