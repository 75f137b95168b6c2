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

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--warm-only", action="store_true", help="leave out the cold build, which takes 10 minutes")
    chosen = parser.parse_args()
    # A warm start is one that finds its bytecode.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sections = [
        ("Importing the components", imports.measure),
        ("Previewing the dev stack", preview.measure),
        ("Rendering the prod stack", jobs.measure_render),
        ("Deploying the prod job", jobs.measure_up),
        ("Many jobs in one stack", jobs.measure_growth),
        ("Five operators", operators.measure),
        ("Rehearsing the dev stack", lambda: rehearsals.measure(cold=not chosen.warm_only)),
    ]
    page = [
        "# Benchmarks",
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}, {_go_version()}.",
    ]
    for title, measure in sections:
        print(f"{title} ...", file=sys.stderr, flush=True)
        page += [f"## {title}", measure()]
        print(page[-1], flush=True)
    text = "\n\n".join(page) + "\n"
    with tempfile.NamedTemporaryFile("w", dir=PAGE.parent, delete=False) as file:
        file.write(text)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(PAGE)


def _go_version() -> str:
    said = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2].replace("go", "Go ")


if __name__ == "__main__":
    main()
