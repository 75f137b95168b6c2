"""Whether a process that a test is about still runs."""

import contextlib
import time
from pathlib import Path


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def processes_with(text: str) -> list[str]:
    """Returns the command lines of processes that have a text in their command line or their variables."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            if text.encode() in command + (folder / "environ").read_bytes() and is_running(int(folder.name)):
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def wait_until_gone(pid: int, folder: Path | None = None) -> None:
    deadline = time.monotonic() + 30
    while (is_running(pid) or (folder and folder.exists())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)
    assert not (folder and folder.exists())
