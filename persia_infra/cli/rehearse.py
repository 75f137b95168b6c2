"""`persia-infra rehearse`."""

import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from persia_infra.environment import EnvironmentSpec
    from persia_infra.rehearsal.engine import Engine
    from persia_infra.rehearsal.rehearse import Rehearsal, Report


def rehearse(
    stack: Annotated[str, typer.Argument(metavar="STACK", help="The stack's name, as in stacks/Pulumi.<name>.yaml.")],
    project: Annotated[
        Path, typer.Option("--project", "-C", help="Folder of the Pulumi project.", file_okay=False)
    ] = Path(),
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep everything running until Ctrl-C, with a kubeconfig for inspection.")
    ] = False,
    destroy: Annotated[
        bool, typer.Option("--destroy", help="Also run `pulumi destroy` and check that nothing is left.")
    ] = False,
    operators: Annotated[
        bool,
        typer.Option(
            "--operators", help="Also run the operators that the stack deploys, so that they create their jobs' pods."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Deploys a stack with the real Pulumi engine onto a real control plane on this machine.

    Google Cloud and the nodes are simulated; nothing is rented and no account is needed. Exit 0 if every pod
    runs and a second `up` changes nothing, 1 if not, 2 if the stack's description is invalid.
    """
    if keep and destroy:
        raise typer.BadParameter("--keep cannot be combined with --destroy: after a destroy there is nothing to keep")
    from rich.console import Console
    from rich.markup import escape

    from persia_infra.stack import describes_environment, find_project, find_stack, load_stack, shown_path

    project = find_project(project)
    file = find_stack(stack, project)
    hint = ""
    shown = shown_path(file, project)
    if describes_environment(file, shown=shown):
        environment = load_stack(file, shown=shown)
        hint = "" if operators else _hint(environment)

    from persia_infra.cli.rehearsal_report import print_report
    from persia_infra.operators import operator_programs
    from persia_infra.rehearsal.control_plane import PartFailed
    from persia_infra.rehearsal.engine import EngineFailed
    from persia_infra.rehearsal.rehearse import rehearse as run
    from persia_infra.rehearsal.toolchain import BuildLine, ToolMissing

    errors = Console(stderr=True)
    status = errors.status("starting") if errors.is_terminal else None

    def progress(line: str) -> None:
        if isinstance(line, BuildLine):
            errors.print(line, highlight=False, markup=False, soft_wrap=True)
        elif status:
            status.update(escape(line))

    def show(report: "Report") -> None:
        if as_json:
            typer.echo(json.dumps(report.as_json(), indent=2))
        else:
            print_report(report, Console(), hint)

    def leave_running(rehearsal: "Rehearsal", engine: "Engine", report: "Report") -> None:
        if status:
            status.stop()
        show(report)
        errors.print(_how_to_look(rehearsal, engine), highlight=False, markup=False, soft_wrap=True)
        try:
            while True:
                rehearsal.control_plane.check_alive()
                time.sleep(1)
        except KeyboardInterrupt:
            errors.print("stopping")

    try:
        with status or nullcontext():
            kept = leave_running if keep else None
            report = run(
                project,
                stack,
                destroy=destroy,
                operators=operator_programs() if operators else (),
                progress=progress,
                keep=kept,
            )
    except (ToolMissing, PartFailed, EngineFailed) as error:
        errors.print(str(error), highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    if not keep:
        show(report)
    raise typer.Exit(0 if report.passed else 1)


def _how_to_look(rehearsal: "Rehearsal", engine: "Engine") -> str:
    """Returns instructions for inspecting a kept rehearsal.

    The environment variables go to a file that only the user can read, because the state's passphrase is among them.
    """
    file = rehearsal.control_plane.folder / "environment"
    file.touch(mode=0o600)
    file.write_text(engine.shell_script())
    return (
        "Everything is still running. In another terminal:\n"
        f"  . {file}\n"
        "  kubectl get pods -A\n"
        f"  cd {engine.project_folder} && pulumi preview\n"
        f"Logs: {rehearsal.control_plane.logs}\n"
        "Ctrl-C stops it and removes everything."
    )


def _hint(environment: "EnvironmentSpec") -> str:
    """Returns advice on jobs that have no pods, or wait forever, as long as no operator acts on them."""
    waiting = [name for name, job in environment.jobs.items() if job.needed_operators()]
    return f"these jobs start only when their operators run: {', '.join(waiting)}; add --operators" if waiting else ""
