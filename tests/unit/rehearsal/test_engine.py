"""The engine works on a copy of the project, without credentials of the user."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from persia_infra.rehearsal.engine import Engine, EngineFailed
from persia_infra.rehearsal.rehearse import installed_kubernetes_plugin
from persia_infra.rehearsal.supervisor import Supervisor
from persia_infra.rehearsal.toolchain import Toolchain
from persia_infra.spec.errors import InputError

EVENTS = [
    {"resOutputsEvent": {"metadata": {"op": "create", "type": "gcp:x:Y", "urn": "urn:pulumi:s::p::gcp:x:Y::net"}}},
    {"resOutputsEvent": {"metadata": {"op": "same", "type": "gcp:x:Y", "urn": "urn:pulumi:s::p::gcp:x:Y::old"}}},
    {"resOutputsEvent": {"metadata": {"op": "read", "type": "gcp:x:Y", "urn": "urn:pulumi:s::p::gcp:x:Y::seen"}}},
    {"resOutputsEvent": {"metadata": {"op": "update", "type": "pulumi:pulumi:Stack", "urn": "urn:a::b::c::s"}}},
    {"diagnosticEvent": {"severity": "info", "message": "not an error"}},
    {
        "diagnosticEvent": {
            "severity": "error",
            "urn": "u::v::w::net",
            "message": "<{%reset%}>it is refused<{%reset%}>\n",
        }
    },
    {"summaryEvent": {"resourceChanges": {"create": 1, "same": 1}}},
]

PULUMI = """#!/bin/sh
env > "$PULUMI_HOME/environment"
echo "$@" >> "$PULUMI_HOME/calls"
while [ $# -gt 0 ]; do
    case "$1" in
    --event-log) cat "{events}" > "$2"; exit 255 ;;
    interrupted) kill -INT $$; echo "deaf"; exit 0 ;;
    broken) echo "no such stack"; exit 1 ;;
    esac
    shift
done
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "stacks").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: p\nmain: stacks\nstackConfigDir: stacks\nruntime: {name: python}\n")
    (folder / "stacks" / "__main__.py").write_text("")
    (folder / "stacks" / "Pulumi.dev.yaml").write_text("config: {}\n")
    return folder


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    running = Supervisor(tmp_path / "rehearsal")
    yield running
    running.close()


@pytest.fixture
def new_engine(project: Path, tmp_path: Path, supervisor: Supervisor) -> Callable[..., Engine]:
    """Makes an engine with a stand-in for the CLI."""
    events, pulumi = tmp_path / "events", tmp_path / "pulumi"
    events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    pulumi.write_text(PULUMI.format(events=events))
    pulumi.chmod(0o755)

    def new(folder: str = "engine", stack: str = "dev") -> Engine:
        environment = {"PATH": os.environ["PATH"]}
        tools = Toolchain({"pulumi": pulumi})
        return Engine(project, stack, tmp_path / folder, tools, environment, "gcp:1234", supervisor)

    return new


@pytest.fixture
def engine(new_engine: Callable[..., Engine]) -> Engine:
    return new_engine()


def given(tmp_path: Path) -> dict[str, str]:
    lines = (tmp_path / "engine" / "home" / "environment").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.mark.usefixtures("engine")
def test_the_engine_has_its_own_state_and_the_simulated_providers(tmp_path: Path) -> None:
    environment = given(tmp_path)
    assert environment["PULUMI_DEBUG_PROVIDERS"] == "gcp:1234"
    assert environment["PULUMI_BACKEND_URL"] == f"file://{tmp_path}/engine/state"


def test_project_is_linked_and_its_stack_file_copied(engine: Engine, project: Path) -> None:
    engine.stack_file.write_text("changed: true\n")
    assert (project / "stacks" / "Pulumi.dev.yaml").read_text() == "config: {}\n"
    assert (engine.project_folder / "stacks" / "__main__.py").resolve() == project / "stacks" / "__main__.py"
    (project / "stacks" / "Pulumi.prod.yaml").write_text("")
    assert not (engine.project_folder / "stacks" / "Pulumi.prod.yaml").exists()


def test_each_rehearsal_has_its_own_passphrase(new_engine: Callable[..., Engine]) -> None:
    first, second = (new_engine(folder).environment["PULUMI_CONFIG_PASSPHRASE"] for folder in ("one", "two"))
    assert first != second
    assert len(first) >= 32


def test_stack_with_encrypted_values_needs_the_users_passphrase(
    project: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine, new_engine: Callable[..., Engine]
) -> None:
    (project / "stacks" / "Pulumi.dev.yaml").write_text("encryptionsalt: v1:abc\n")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "known to the user")
    other = new_engine("other")
    assert other.environment["PULUMI_CONFIG_PASSPHRASE"] == "known to the user"
    assert engine.environment["PULUMI_CONFIG_PASSPHRASE"] != "known to the user"


def test_outcome_is_read_from_the_events(engine: Engine) -> None:
    outcome = engine.up()
    assert not outcome.ok
    assert outcome.changed == ("create gcp:x:Y net",)
    assert outcome.errors == ("net: it is refused",)
    assert outcome.changes == {"create": 1, "same": 1}


def test_a_refused_preview_of_a_destroy_deletes_nothing(engine: Engine, tmp_path: Path) -> None:
    assert not engine.destroy().ok
    calls = (tmp_path / "engine" / "home" / "calls").read_text().splitlines()
    assert [call for call in calls if call.startswith("destroy")] == [
        call for call in calls if call.startswith("destroy --preview-only")
    ]


def test_a_failed_command_reports_the_message_of_the_cli(project: Path, new_engine: Callable[..., Engine]) -> None:
    (project / "stacks" / "Pulumi.broken.yaml").write_text("")
    with pytest.raises(EngineFailed, match="pulumi stack init: no such stack"):
        new_engine(stack="broken")


@pytest.mark.parametrize("setting", ["kubeconfig", "context", "cluster"])
@pytest.mark.parametrize("file", ["Pulumi.yaml", "stacks/Pulumi.dev.yaml"])
def test_configuration_that_chooses_a_cluster_is_refused(
    project: Path, new_engine: Callable[..., Engine], file: str, setting: str
) -> None:
    with (project / file).open("a") as opened:
        opened.write(f"\nconfig: {{'kubernetes:{setting}': other}}\n")
    with pytest.raises(InputError, match=rf"{file}: config\.kubernetes:{setting}: chooses another cluster"):
        new_engine()


def test_the_script_for_a_shell_sets_and_removes_variables(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    monkeypatch.setenv("PULUMI_BACKEND_URL", "mine")
    lines = engine.shell_script().splitlines()
    assert "unset AWS_SECRET_ACCESS_KEY" in lines
    assert f"export PULUMI_BACKEND_URL={engine.environment['PULUMI_BACKEND_URL']}" in lines
    assert not [line for line in lines if line.startswith("export PATH=")]


def test_official_plugin_is_used_only_in_the_right_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))
    plugins = tmp_path / "plugins"
    for folder in ("resource-kubernetes-v4.0.0", "resource-gcp-v10.2.0"):
        (plugins / folder).mkdir(parents=True)
        (plugins / folder / "pulumi-resource-kubernetes").touch()
    assert installed_kubernetes_plugin() is None
    right = plugins / f"resource-kubernetes-v{version('pulumi-kubernetes')}"
    right.mkdir()
    assert installed_kubernetes_plugin() is None
    (right / "pulumi-resource-kubernetes").touch()
    assert installed_kubernetes_plugin() == right


def test_plugin_is_made_available_to_the_engine(engine: Engine, tmp_path: Path) -> None:
    plugin = tmp_path / "resource-kubernetes-v4.34.2"
    plugin.mkdir()
    plugin.with_name(f"{plugin.name}.lock").touch()
    engine.use_plugin(plugin)
    there = tmp_path / "engine" / "home" / "plugins"
    assert {file.name for file in there.iterdir()} == {plugin.name, f"{plugin.name}.lock"}


def test_the_cli_can_be_interrupted_even_if_the_rehearsal_runs_in_the_background(engine: Engine) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = engine.start("interrupted")
        process.communicate()
    finally:
        signal.signal(signal.SIGINT, before)

    assert process.returncode == -signal.SIGINT
