"""`make bench`: measures, and writes `docs/benchmarks.md`. Ratios are of figures taken in one run."""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import imports, jobs, operators, preview, rehearsals
from tests.support.project import PROJECT

PAGE = PROJECT / "docs" / "benchmarks.md"


SECTIONS = {
    "imports": ("Importing the environment with its spec", imports.measure),
    "preview": ("Previewing the dev stack", preview.measure),
    "commands": ("Commands without a cluster", jobs.measure_commands),
    "up": ("Deploying the prod job", jobs.measure_up),
    "growth": ("Many jobs in one stack", jobs.measure_growth),
    "operators": ("Five operators", operators.measure),
    "rehearse": ("Rehearsing the dev stack", rehearsals.measure),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("section", nargs="*", help=f"only these, and the others as the page has them: {_names()}")
    chosen = parser.parse_args().section or list(SECTIONS)
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}; known: {_names()}")
    # A warm start is one that finds its bytecode.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    written = _written()
    for name in chosen:
        title, measure = SECTIONS[name]
        print(f"{title} ...", file=sys.stderr, flush=True)
        written[title] = measure()
        print(written[title], flush=True)
    page = [
        "# Benchmarks",
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}, {_go_version()}.",
    ]
    for title, _ in SECTIONS.values():
        page += [f"## {title}", written.get(title, "Not measured yet.")]
    with tempfile.NamedTemporaryFile("w", dir=PAGE.parent, delete=False) as file:
        file.write("\n\n".join(page) + "\n")
    Path(file.name).chmod(0o644)
    Path(file.name).replace(PAGE)


def _names() -> str:
    return ", ".join(SECTIONS)


def _written() -> dict[str, str]:
    """What the page says, by the titles of its sections."""
    sections = PAGE.read_text().split("\n## ")[1:] if PAGE.is_file() else []
    return {title: text.strip() for title, _, text in (section.partition("\n") for section in sections)}


def _go_version() -> str:
    said = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2].replace("go", "Go ")


if __name__ == "__main__":
    main()
