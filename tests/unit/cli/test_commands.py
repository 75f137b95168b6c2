"""The command line as a user types it."""

import gc
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml
from persia_components.render import declared_for

from persia_infra.cli.main import main
from persia_infra.spec.yaml_files import write_documents
from persia_infra.stack import load_stack
from tests.support.golden import assert_recorded
from tests.support.project import PROJECT

GOLDEN = PROJECT / "tests/golden/dev.yaml"


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str


class Command(Protocol):
    def __call__(self, *arguments: str, cwd: Path = PROJECT) -> Result: ...


@pytest.fixture
def persia_infra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command line in this process, which has the slow imports behind it."""

    def run(*arguments: str, cwd: Path = PROJECT) -> Result:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["persia-infra", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        gc.enable()  # A command ends soon and may turn it off; this process goes on.
        captured = capsys.readouterr()
        return Result(int(str(code or 0)), captured.out, captured.err)

    return run


@pytest.fixture
def stack_file(tmp_path: Path, description: dict[str, Any]) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    file = tmp_path / "Pulumi.qa.yaml"
    file.write_text(yaml.safe_dump({"config": {"persia-infra:environment": description}}))
    return file


class TestCheck:
    def test_the_dev_stack_is_fine(self, persia_infra: Command) -> None:
        result = persia_infra("check", "dev")

        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.endswith("stacks/Pulumi.dev.yaml: fine\n")

    def test_mistakes_are_lines_on_stderr(self, persia_infra: Command, stack_file: Path) -> None:
        stack_file.write_text(stack_file.read_text().replace("nprocPerNode", "nprocsPerNode"))

        result = persia_infra("check", "qa", cwd=stack_file.parent)

        assert result.returncode == 2
        assert result.stdout == ""
        assert result.stderr.splitlines() == [
            "Pulumi.qa.yaml: environment.jobs.ads.nnWorker.nprocPerNode: is required and missing",
            "Pulumi.qa.yaml: environment.jobs.ads.nnWorker.nprocsPerNode: unknown key, which would have no effect; "
            "did you mean 'nprocPerNode'?",
        ]

    def test_errors_and_notes_as_json(self, persia_infra: Command, stack_file: Path) -> None:
        good = persia_infra("check", "--json", "qa", cwd=stack_file.parent)
        stack_file.write_text(stack_file.read_text().replace("n2-standard-8", "n2-standard-7"))
        bad = persia_infra("check", "--json", "qa", cwd=stack_file.parent)

        assert good.returncode == 0
        answer = json.loads(good.stdout)
        assert (answer["ok"], answer["errors"]) == (True, [])
        assert [note["path"] for note in answer["notes"]] == ["environment.namespaces[0]"]
        assert bad.returncode == 2
        answer = json.loads(bad.stdout)
        assert answer["ok"] is False
        assert [(e["file"], e["path"]) for e in answer["errors"]] == [
            ("Pulumi.qa.yaml", "environment.pools.cpu.machineType")
        ]

    def test_notes_are_printed_but_do_not_fail(
        self, persia_infra: Command, stack_file: Path, description: dict[str, Any]
    ) -> None:
        description["jobs"]["ads"]["restartPolicy"] = "Never"
        stack_file.write_text(yaml.safe_dump({"config": {"persia-infra:environment": description}}))

        text = persia_infra("check", "qa", cwd=stack_file.parent)
        answer = json.loads(persia_infra("check", "qa", "--json", cwd=stack_file.parent).stdout)

        assert text.returncode == 0
        assert text.stdout.startswith(
            "note: Pulumi.qa.yaml: environment.jobs.ads.restartPolicy: has no effect in native"
        )
        assert answer["ok"] is True
        assert answer["notes"][0]["path"] == "environment.jobs.ads.restartPolicy"

    def test_files_and_stacks_that_are_not_there(self, persia_infra: Command) -> None:
        result = persia_infra("check", "nope", "nope.yaml")

        assert result.returncode == 2
        assert result.stderr.splitlines() == [
            "stacks/Pulumi.nope.yaml: there is no stack 'nope'; known: " + ", ".join(stacks()),
            "nope.yaml: no such file; check the path",
        ]

    def test_pulumi_is_not_loaded(self) -> None:
        """Loading it costs more than the whole check."""
        code = (
            "import sys; sys.argv = ['persia-infra', 'check', 'dev']\n"
            "from persia_infra.cli.main import main\n"
            "try: main()\n"
            "except SystemExit as end: assert not end.code\n"
            "assert not any(name.partition('.')[0].startswith('pulumi') for name in sys.modules)\n"
        )

        assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False).returncode == 0


class TestRehearse:
    @pytest.mark.parametrize(
        ("file", "content"),
        [
            ("Pulumi.yaml", ""),
            ("Pulumi.yaml", "- a\n"),
            ("Pulumi.yaml", "name: x\nstackConfigDir: 5\n"),
            ("Pulumi.yaml", "name: x\nstackConfigDir: ../out\n"),
            ("Pulumi.qa.yaml", "5\n"),
        ],
    )
    def test_a_broken_project_ends_before_anything_starts(
        self, persia_infra: Command, monkeypatch: pytest.MonkeyPatch, stack_file: Path, file: str, content: str
    ) -> None:
        (stack_file.parent / file).write_text(content)
        monkeypatch.setitem(sys.modules, "persia_infra.rehearsal.rehearse", None)

        result = persia_infra("rehearse", "qa", cwd=stack_file.parent)

        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"{file}: ")


class TestRender:
    def test_the_dev_stack_renders_as_in_the_golden_file(self) -> None:
        spec = load_stack(PROJECT / "stacks/Pulumi.dev.yaml")
        text = write_documents([one.document for one in declared_for("dev", spec)])

        assert_recorded(GOLDEN, text)

    def test_yaml_and_json_have_the_same_content(self, persia_infra: Command, tmp_path: Path) -> None:
        manifest = "apiVersion: nats.io/v1alpha2\nkind: NatsCluster\nmetadata: {name: bus}\nspec: {size: 1}\n"
        file = tmp_path / "nats.yaml"
        file.write_text(manifest)

        as_yaml, as_json = persia_infra("render", str(file)), persia_infra("render", str(file), "--json")

        assert (as_yaml.returncode, as_yaml.stderr) == (0, "")
        documents = list(yaml.safe_load_all(as_yaml.stdout))
        assert documents == json.loads(as_json.stdout)
        assert sorted(document["kind"] for document in documents) == [
            "ConfigMap",
            "NetworkPolicy",
            "PodDisruptionBudget",
            "Service",
            "Service",
            "StatefulSet",
        ]
        assert {document["metadata"]["namespace"] for document in documents} == {"default"}

    def test_a_job_by_itself_is_rendered_without_pools(
        self, persia_infra: Command, tmp_path: Path, description: dict[str, Any]
    ) -> None:
        spec = {key: value for key, value in description["jobs"]["ads"].items() if key != "kind"}
        metadata = {"name": "ads", "namespace": "team"}
        manifest = {"apiVersion": "persia.com/v1", "kind": "PersiaJob", "metadata": metadata, "spec": spec}
        file = tmp_path / "job.yaml"
        file.write_text(yaml.safe_dump(manifest))

        documents = json.loads(persia_infra("render", str(file), "--json").stdout)

        assert {document["metadata"]["namespace"] for document in documents} == {"team"}
        (worker,) = (d for d in documents if d["metadata"]["name"] == "ads-nn-worker" and d["kind"] == "StatefulSet")
        assert "nodeSelector" not in worker["spec"]["template"]["spec"]

    def test_bad_input_prints_nothing_else(self, persia_infra: Command, tmp_path: Path) -> None:
        file = tmp_path / "x.yaml"
        file.write_text("kind: CronTab\n")

        result = persia_infra("render", str(file))

        assert result.returncode == 2
        assert result.stdout == ""
        assert "is not a supported kind" in result.stderr
        assert "Traceback" not in result.stderr


class TestCommandLine:
    def test_help_without_arguments(self, persia_infra: Command) -> None:
        result = persia_infra()

        assert "check" in result.stdout + result.stderr
        assert "render" in result.stdout + result.stderr

    def test_version(self, persia_infra: Command) -> None:
        assert persia_infra("--version").stdout.startswith("persia-infra 0.")

    def test_a_misspelt_command(self, persia_infra: Command) -> None:
        result = persia_infra("chek", "dev")

        assert result.returncode == 2
        assert "Traceback" not in result.stderr

    def test_missing_arguments(self, persia_infra: Command) -> None:
        assert persia_infra("check").returncode == 2

    def test_ctrl_c_ends_a_command_quietly(self, tmp_path: Path) -> None:
        """Ctrl-C while a file is read: a pipe that nobody writes to holds the command still."""
        pipe = tmp_path / "slow.yaml"
        os.mkfifo(pipe)
        code = "from persia_infra.cli.main import main; main()"
        command = [sys.executable, "-c", code, "check", str(pipe)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            writer = os.open(pipe, os.O_WRONLY)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate()
            os.close(writer)

        assert process.returncode == 130
        assert "Traceback" not in errors


def stacks() -> list[str]:
    return sorted(file.name.split(".")[1] for file in (PROJECT / "stacks").glob("Pulumi.*.yaml"))
