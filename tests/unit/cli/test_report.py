"""The report of a rehearsal as the terminal shows it."""

from rich.console import Console

from persia_infra.cli.rehearsal_report import print_report
from persia_infra.rehearsal.rehearse import Report


def shown(report: Report) -> list[str]:
    console = Console(width=200)
    with console.capture() as captured:
        print_report(report, console)
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_types_that_end_in_the_same_word_are_told_apart() -> None:
    resources = {
        "gcp:container/cluster:Cluster": 1,
        "gcp:projects/service:Service": 7,
        "kubernetes:core/v1:Service": 8,
    }

    lines = shown(Report("dev", resources=resources))

    assert "resources 1 Cluster, 7 gcp:projects/service:Service, 8 kubernetes:core/v1:Service" in lines
