"""Whether a process that a test is about still runs."""

import time
from pathlib import Path


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(pid: int, folder: Path | None = None) -> None:
    deadline = time.monotonic() + 30
    while (is_running(pid) or (folder and folder.exists())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)
    assert not (folder and folder.exists())
