"""Finding and building the programs of a rehearsal, with a stand-in for the Go compiler."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from persia_infra.rehearsal import toolchain
from tests.support.processes import wait_until_gone


def script(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{textwrap.dedent(body)}")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


STAND_IN_GO = """
    case "$1" in
    version) echo "go version go1.26.8 linux/amd64" ;;
    mod) echo '{ "Dir": "'"$SDK"'" }' ;;
    build)
        echo built >> "$BUILDS"
        mkdir -p "$GOCACHE" && echo object > "$GOCACHE/object"
        echo object > "${GOTMPDIR:-$SDK}/half-built"
        while [ "$1" != "-o" ]; do shift; done
        for package in "$3" "$4" "$5"; do
            [ -d "$2" ] || { echo program > "$2"; break; }
            [ -n "$package" ] && echo program > "$2${package##*/}"
        done
        [ -z "$FAIL" ] || { echo "cannot find module"; exit 1; }
        [ -z "$HANG" ] || { sleep 600 & echo $$ $! >> "$HANG"; wait; }
        ;;
    esac
    exit 0
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing but a Go whose builds are instant and counted."""
    script(tmp_path / "bin", "go", STAND_IN_GO)
    script(tmp_path / "sdk" / "python" / "cmd", toolchain.LANGUAGE_HOST_SCRIPT, "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("PERSIA_INFRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SDK", str(tmp_path / "sdk"))
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    return tmp_path


def builds(machine: Path) -> int:
    file = machine / "builds"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_builds_everything_once(machine: Path) -> None:
    lines: list[str] = []
    first = toolchain.ensure(lines.append)
    assert builds(machine) == len(toolchain.SOURCES)
    assert all(first[program].is_file() for program in ("pulumi", "kube-apiserver", "kwok", "etcd", "kubectl"))
    assert (first["pulumi-language-python"].parent / toolchain.LANGUAGE_HOST_SCRIPT).is_file()
    assert {line.split()[0] for line in lines if "built in" in line} == {
        source.folder for source, _ in toolchain.SOURCES
    }

    assert not (machine / "cache" / "building").exists()
    assert toolchain.ensure(lines.append) == first
    assert builds(machine) == len(toolchain.SOURCES)


def test_the_failure_is_said_not_what_was_stopped_for_it(machine: Path) -> None:
    """Kubernetes is the first of the builds, and hangs until kwok's has failed."""
    go = script(machine / "bin", "go.real", STAND_IN_GO)
    fails = 'case "$PWD" in */kwok) echo "cannot find module"; exit 1 ;; */kubernetes) sleep 600 ;; esac'
    script(machine / "bin", "go", f'[ "$1" != build ] || {fails}\nexec {go} "$@"\n')

    with pytest.raises(toolchain.ToolMissing, match="tools/kwok: go build failed:\ncannot find module"):
        toolchain.ensure(lambda _: None)


def test_failed_build_does_not_count_as_built(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "yes")
    with pytest.raises(toolchain.ToolMissing, match="cannot find module"):
        toolchain.ensure(lambda _: None)
    assert not [entry for entry in (machine / "cache" / "tools").iterdir() if not entry.name.endswith(".lock")]

    monkeypatch.delenv("FAIL")
    assert toolchain.ensure(lambda _: None)["kwok"].is_file()


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, 143)])
def test_stopped_build_does_not_count_and_leaves_no_compiler(machine: Path, how: signal.Signals, code: int) -> None:
    hanging = machine / "hanging"
    process = subprocess.Popen(
        [sys.executable, "-m", "persia_infra.rehearsal.toolchain"],
        env=os.environ | {"HANG": str(hanging)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not (hanging.exists() and hanging.read_text()) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(how)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in output
    for pid in map(int, hanging.read_text().split()):
        wait_until_gone(pid)
    assert not [entry for entry in (machine / "cache" / "tools").iterdir() if not entry.name.endswith(".lock")]
    assert not list(machine.rglob("half-built"))


def test_changed_pins_are_a_new_build(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain.ensure(lambda _: None)
    copy = machine / "tools"
    for source, _ in toolchain.SOURCES:
        (copy / source.folder).mkdir(parents=True)
        for name in ("go.mod", "go.sum"):
            (copy / source.folder / name).write_bytes((toolchain.tools_folder() / source.folder / name).read_bytes())
    with (copy / "kwok" / "go.sum").open("a") as pins:
        pins.write("example.com/other v1.0.0 h1:0000\n")
    monkeypatch.setattr(toolchain, "tools_folder", lambda: copy)
    toolchain.ensure(lambda _: None)
    assert builds(machine) == len(toolchain.SOURCES) + 1


@pytest.mark.parametrize(
    ("output", "used"), [("kwok version v0.8.0", True), ("kwok version v0.3.0", False), ("no idea", False)]
)
def test_program_on_path_is_used_when_its_version_is_good(machine: Path, output: str, used: bool) -> None:
    own = script(machine / "bin", "kwok", f"echo {output}")
    assert (toolchain.ensure(lambda _: None)["kwok"] == own) is used


@pytest.mark.parametrize(("version", "used"), [("0.6.9", False), ("0.7.0", True), ("0.99.0", True), ("1.0.0", False)])
def test_the_range_of_supported_versions_is_exact(machine: Path, version: str, used: bool) -> None:
    installed = script(machine / "bin", "kwok", f"echo kwok version v{version}")
    assert (toolchain.ensure(lambda _: None)["kwok"] == installed) is used


def test_programs_of_different_kubernetes_versions_are_not_mixed(machine: Path) -> None:
    for program, version in (("apiserver", "1.36.1"), ("controller-manager", "1.36.1"), ("scheduler", "1.35.0")):
        script(machine / "bin", f"kube-{program}", f"echo Kubernetes v{version}")
    assert toolchain.ensure(lambda _: None)["kube-apiserver"].is_relative_to(machine / "cache")


def test_kubernetes_on_path_is_used_only_as_a_whole(machine: Path) -> None:
    for program in ("kube-apiserver", "kube-controller-manager"):
        script(machine / "bin", program, "echo Kubernetes v1.36.1")
    assert toolchain.ensure(lambda _: None)["kube-apiserver"].is_relative_to(machine / "cache")
    script(machine / "bin", "kube-scheduler", "echo Kubernetes v1.36.1")
    assert toolchain.ensure(lambda _: None)["kube-apiserver"] == machine / "bin" / "kube-apiserver"


def test_a_relative_cache_folder_is_made_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERSIA_INFRA_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert toolchain.cache_folder() == Path.cwd() / "cache" / "persia-infra"


def test_old_go_is_refused_with_the_version_that_is_needed(machine: Path) -> None:
    script(machine / "bin", "go", "echo go version go1.22 linux/amd64")
    with pytest.raises(toolchain.ToolMissing, match=r"is Go 1\.22, too old .*: install Go 1\.26 or newer"):
        toolchain.ensure(lambda _: None)


def test_missing_go_is_reported(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(machine / "nothing"))
    with pytest.raises(toolchain.ToolMissing, match="Go is not on PATH"):
        toolchain.ensure(lambda _: None)
