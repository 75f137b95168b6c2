"""The package as another project gets it: sdist, then wheel, then an import beside a folder `components`."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support.project import PROJECT


def test_wheel_from_sdist_works_beside_a_components_folder(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=PROJECT, check=True, capture_output=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    subprocess.run(["tar", "xzf", sdist.name], cwd=tmp_path, check=True)
    unpacked = sdist.with_name(sdist.name.removesuffix(".tar.gz"))
    subprocess.run([*build, "-t", "wheel"], cwd=unpacked, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    site, consumer = tmp_path / "site", tmp_path / "consumer"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (consumer / "components").mkdir(parents=True)
    (consumer / "components" / "__init__.py").write_text("OWN = True\n")
    program = (
        "import components, persia_components, persia_infra\n"
        "from pathlib import Path\n"
        "from persia_infra.rehearsal import sources\n"
        "assert components.OWN\n"
        f"assert persia_components.__file__.startswith({str(site)!r}), persia_components.__file__\n"
        "assert sources.pinned_version(sources.KWOK)\n"
        "assert sources.tools_folder().is_relative_to(Path(persia_infra.__file__).parent)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program], cwd=consumer, env=os.environ | {"PYTHONPATH": str(site)}, check=True
    )
    assert {"persia_infra/py.typed", "persia_components/py.typed"} <= set(zipfile.ZipFile(wheel).namelist())
