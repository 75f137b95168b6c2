"""What a program does before it declares resources."""

import subprocess
import sys


def test_garbage_collection_stays_off_until_the_program_ends() -> None:
    code = (
        "import gc\n"
        "from persia_components.startup import skip_garbage_collection\n"
        "skip_garbage_collection()\n"
        "assert not gc.isenabled()\n"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
