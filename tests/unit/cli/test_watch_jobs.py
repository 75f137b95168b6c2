"""`persia-infra status --watch` as a process, asking a server that answers as Kubernetes does."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml

MORE_THAN_ENOUGH = 100_000
CURSOR_UP, SHOW_CURSOR = b"\x1b[1A", b"\x1b[?25h"


class Jobs:
    """One job, whose pod does not run until it is told to."""

    def __init__(self) -> None:
        self.runs, self.asked, self.may_answer = Event(), Event(), Event()
        self.may_answer.set()

    def answer(self, path: str) -> dict[str, Any] | None:
        self.asked.set()
        self.may_answer.wait()
        if path.endswith("/jobs/single"):
            return {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"active": 1}}
        if not path.endswith("/pods"):
            return None
        ready = {"type": "Ready", "status": str(self.runs.is_set())}
        scheduled = {"type": "PodScheduled", "status": str(self.runs.is_set()), "message": "no node has room"}
        labels = {"batch.kubernetes.io/job-name": "single"}
        metadata = {"name": "single-x", "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"}
        phase = "Running" if self.runs.is_set() else "Pending"
        return {
            "items": [{"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": [ready, scheduled]}}]
        }


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def kubeconfig(jobs: Jobs, tmp_path: Path) -> Iterator[Path]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = jobs.answer(self.path)
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(json.dumps(found or {}).encode())

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    file = tmp_path / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
                "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "users": [{"name": "me", "user": {}}],
            }
        )
    )
    yield file
    server.shutdown()
    server.server_close()


@pytest.fixture
def status(
    tmp_path: Path, kubeconfig: Path, description: dict[str, Any], run_jobs: dict[str, Any]
) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts the command."""
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    described = {**description, "jobs": {"single": run_jobs["single"]}}
    (tmp_path / "Pulumi.qa.yaml").write_text(yaml.safe_dump({"config": {"persia-infra:environment": described}}))
    code = "from persia_infra.cli.main import main; main()"
    command = [sys.executable, "-c", code, "status", "qa", "--kubeconfig", str(kubeconfig)]
    with ExitStack() as started:

        def start(*options: str, **pipes: Any) -> "subprocess.Popen[str]":
            variables = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
            process = subprocess.Popen([*command, *options], cwd=tmp_path, env=variables, text=True, **pipes)
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield start


def read_until(terminal: int, pattern: bytes) -> bytes:
    seen = b""
    while not re.search(pattern, seen, re.DOTALL):
        seen += os.read(terminal, 4096)
        assert len(seen) < MORE_THAN_ENOUGH, seen
    return seen


def test_the_table_is_drawn_again_in_place_until_ctrl_c(jobs: Jobs, status: Any) -> None:
    terminal, theirs = pty.openpty()
    process = status("--watch", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    first = read_until(terminal, rb"Pending.*no node has room.*logs")
    jobs.runs.set()
    second = read_until(terminal, rb"Running.*logs")
    process.send_signal(signal.SIGINT)
    last = read_until(terminal, re.escape(SHOW_CURSOR))

    assert process.wait() == 0
    os.close(terminal)
    assert b"Running" not in first
    assert CURSOR_UP in second
    assert b"no node has room" not in second.rsplit(CURSOR_UP, 1)[-1]
    assert b"Traceback" not in last


def test_without_a_terminal_each_look_is_printed_below_the_last(jobs: Jobs, status: Any) -> None:
    process = status("--watch", stdout=subprocess.PIPE)
    phases = (line.split()[2] for line in process.stdout if re.match(r"single +Job ", line))
    assert next(phases) == "Pending"
    jobs.runs.set()
    assert "Running" in phases
    process.send_signal(signal.SIGINT)

    assert process.wait() == 0


def test_one_look_that_is_interrupted_is_no_good_news(jobs: Jobs, status: Any) -> None:
    jobs.may_answer.clear()
    process = status(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    jobs.asked.wait()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    jobs.may_answer.set()

    assert process.returncode == 130
    assert "Traceback" not in errors
