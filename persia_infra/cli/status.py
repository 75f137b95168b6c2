"""`persia-infra status`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from persia_infra.jobs.status import JobStatus


def status(
    stack: Annotated[str, typer.Argument(help="The stack's name, as in stacks/Pulumi.<name>.yaml.")],
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Kubeconfig of the cluster, or of a kept rehearsal; $KUBECONFIG by default.", dir_okay=False),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; one per line with --watch.")] = False,
) -> None:
    """Shows the state of each job and its roles: wanted, ready, pending and failed pods.

    Exit 0 if every job runs, has succeeded or is suspended, or if Ctrl-C ended --watch; 1 if not; 2 if the input is
    invalid.
    """
    from rich.console import Console

    from persia_infra.cli import job_table
    from persia_infra.jobs.status import FINE, job_statuses
    from persia_infra.jobs.status import as_json as to_json
    from persia_infra.kube.api import ApiError, connect
    from persia_infra.spec.errors import InputError, Problem
    from persia_infra.stack import find_project, find_stack, load_stack, shown_path

    project = find_project(Path.cwd())
    file = find_stack(stack, project)
    environment = load_stack(file, shown=shown_path(file, project))
    try:
        api = connect(str(kubeconfig) if kubeconfig else None, None)
    except ApiError as error:
        raise InputError([Problem("--kubeconfig", "", str(error))]) from None
    if api is None:
        said = "no kubeconfig names a cluster; give --kubeconfig, or set KUBECONFIG"
        raise InputError([Problem("--kubeconfig", "", said)])

    def look() -> "list[JobStatus]":
        return job_statuses(environment.deployed_jobs(), api, datetime.now(UTC))

    console = Console()
    console.width = min(console.width, job_table.WIDTH) if console.is_terminal else job_table.WIDTH
    try:
        if watch:
            job_table.watch(look, console, as_json=as_json)
            return
        jobs = look()
    except ApiError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(json.dumps(to_json(jobs), indent=2)) if as_json else console.print(job_table.shown(jobs))
    raise typer.Exit(0 if all(job.phase in FINE for job in jobs) else 1)
