"""Reading stacks and manifests from files."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from persia_infra.environment import EnvironmentSpec
from persia_infra.jobs import PersiaJobSpec
from persia_infra.manifests.inputs import read_inputs
from persia_infra.nats.spec import NatsSpec
from persia_infra.spec.errors import InputError, Problem, nearest
from persia_infra.spec.yaml_files import read_documents
from persia_infra.stack import describes_environment, find_project, find_stack, load_stack
from tests.support.environments import assert_refused


def messages(call: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        call()
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], Path]:
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: Any) -> Path:
        file = Path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
        return file

    return write


class TestLoadStack:
    def test_a_stack_file_is_read(self, written: Callable[..., Path], description: dict[str, Any]) -> None:
        file = written("Pulumi.dev.yaml", {"config": {"persia-infra:environment": description}})

        assert load_stack(file).project == "persia-example"

    def test_places_are_shown_from_the_environment_on(
        self, written: Callable[..., Path], description: dict[str, Any]
    ) -> None:
        description["pools"]["gpu"]["count"] = 1
        file = written("stacks/Pulumi.dev.yaml", {"config": {"persia-infra:environment": description}})

        assert messages(lambda: load_stack(file)) == [
            "stacks/Pulumi.dev.yaml: environment.pools.gpu.count: cannot be combined with autoscaling: "
            "each would undo the other's changes; remove one of them"
        ]

    @pytest.mark.parametrize("content", ["", "config: {}\n", "config: 3\n", "- a\n", "config:\n  other:key: 1\n"])
    def test_a_stack_without_an_environment_is_refused(self, written: Callable[..., Path], content: str) -> None:
        file = written("Pulumi.dev.yaml", content)

        assert messages(lambda: load_stack(file)) == [
            "Pulumi.dev.yaml: config.persia-infra:environment: is missing; describe the environment under this key"
        ]

    def test_an_environment_must_be_a_mapping(self, written: Callable[..., Path]) -> None:
        file = written("Pulumi.dev.yaml", "config:\n  persia-infra:environment: [1]\n")

        assert messages(lambda: load_stack(file)) == [
            "Pulumi.dev.yaml: environment: must be a mapping of keys to values"
        ]

    def test_broken_yaml_names_the_line_and_shows_no_text(self, written: Callable[..., Path]) -> None:
        file = written("Pulumi.dev.yaml", 'config:\n  a: b\n  password: "hunter2\n')

        (line,) = messages(lambda: load_stack(file))

        assert line.startswith("Pulumi.dev.yaml: line ")
        assert "is not valid YAML" in line
        assert "hunter2" not in line

    def test_a_repeated_key_is_refused(self, written: Callable[..., Path]) -> None:
        file = written("Pulumi.dev.yaml", "config:\n  a: 1\n  b: 2\n  a: 3\n")

        assert messages(lambda: load_stack(file)) == [
            "Pulumi.dev.yaml: line 4: is not valid YAML: the key 'a' is given twice; remove one"
        ]

    def test_merged_keys_may_be_overridden(self, written: Callable[..., Path]) -> None:
        file = written("x.yaml", "deep: {base: &base {a: 1, b: 2}}\nbig: {<<: *base, a: 3}\nsame: *base\n")

        assert read_documents(file) == [
            {"deep": {"base": {"a": 1, "b": 2}}, "big": {"a": 3, "b": 2}, "same": {"a": 1, "b": 2}}
        ]

    def test_code_in_yaml_is_refused(self, written: Callable[..., Path]) -> None:
        file = written("Pulumi.dev.yaml", "config: !!python/object/apply:os.getcwd []\n")

        assert "is not valid YAML" in messages(lambda: load_stack(file))[0]

    def test_files_that_cannot_be_read(self, written: Callable[..., Path]) -> None:
        written("x/y", "")
        Path("binary.yaml").write_bytes(b"\xff\xfe\x00")

        assert messages(lambda: load_stack(Path("no.yaml"))) == ["no.yaml: no such file; check the path"]
        assert messages(lambda: load_stack(Path("x"))) == ["x: cannot be read: Is a directory"]
        assert messages(lambda: load_stack(Path("binary.yaml"))) == [
            "binary.yaml: is not UTF-8 text, so it cannot be YAML; save it as UTF-8"
        ]


class TestFindStack:
    def test_the_folder_of_the_project_is_used(self, written: Callable[..., Path]) -> None:
        written("Pulumi.yaml", "name: x\nstackConfigDir: envs\n")
        file = written("envs/Pulumi.dev.yaml", "config: {}\n")

        assert find_stack("dev", Path.cwd()) == file.resolve()

    def test_beside_the_project_file_by_default(self, written: Callable[..., Path]) -> None:
        written("Pulumi.yaml", "name: x\n")
        file = written("Pulumi.dev.yaml", "config: {}\n")

        assert find_stack("dev", Path.cwd()) == file.resolve()

    def test_an_unknown_stack_lists_the_known_ones(self, written: Callable[..., Path]) -> None:
        written("Pulumi.yaml", "name: x\nstackConfigDir: envs\n")
        written("envs/Pulumi.dev.yaml", "")
        written("envs/Pulumi.prod.yaml", "")

        assert messages(lambda: find_stack("staging", Path.cwd())) == [
            "envs/Pulumi.staging.yaml: there is no stack 'staging'; known: dev, prod"
        ]

    def test_a_project_without_stacks(self, written: Callable[..., Path]) -> None:
        written("Pulumi.yaml", "name: x\n")

        assert messages(lambda: find_stack("dev", Path.cwd()))[0].endswith("the project has none yet")

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            ("", "must be one mapping, with the project's name and runtime"),
            ("- a\n", "must be one mapping, with the project's name and runtime"),
            ("name: x\n---\nname: y\n", "must be one mapping, with the project's name and runtime"),
            ("runtime: python\n", "name: is required and missing"),
            ("name: [x]\n", "name: must be text; put it in quotes"),
            ("name: a b\n", "name: is not a valid project name; use letters, digits, '-' and '_'"),
            ("name: x\nstackConfigDir: 5\n", "stackConfigDir: must be text; put it in quotes"),
            ("name: x\nstackConfigDir: ../out\n", "stackConfigDir: must be a folder inside the project; write its"),
            ("name: x\nstackConfigDir: /etc\n", "stackConfigDir: must be a folder inside the project; write its"),
            (
                "name: x\nsince: 2021-99-99\n",
                "line 2: is not valid YAML: looks like a number or date but is not a valid one",
            ),
        ],
    )
    def test_an_invalid_project_file_is_refused(self, written: Callable[..., Path], content: str, line: str) -> None:
        written("Pulumi.yaml", content)
        written("Pulumi.dev.yaml", "config: {}\n")

        (message,) = messages(lambda: find_stack("dev", Path.cwd()))

        assert message.startswith(f"Pulumi.yaml: {line}")

    def test_without_stack_config_dir_stacks_are_in_the_projects_folder(self, written: Callable[..., Path]) -> None:
        written("Pulumi.yaml", "name: x\nstackConfigDir:\n")
        file = written("Pulumi.dev.yaml", "config: {}\n")

        assert find_stack("dev", Path.cwd()) == file.resolve()

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            ("5\n", "must be one mapping, with the stack's values under config"),
            ("config: {}\n---\nconfig: {}\n", "must be one mapping, with the stack's values under config"),
            ("config: 3\n", "config: must be a mapping of keys to values"),
        ],
    )
    def test_a_stack_of_another_project_is_looked_at_too(
        self, written: Callable[..., Path], content: str, line: str
    ) -> None:
        file = written("Pulumi.dev.yaml", content)

        assert messages(lambda: describes_environment(file, shown="Pulumi.dev.yaml")) == [f"Pulumi.dev.yaml: {line}"]

    def test_the_project_is_found_from_below(self, written: Callable[..., Path]) -> None:
        written("Pulumi.yaml", "name: x\n")
        below = written("a/b/file", "").parent

        assert find_project(below) == Path.cwd()

    def test_outside_a_project_an_error_says_where_to_run(self, tmp_path: Path) -> None:
        assert messages(lambda: find_project(tmp_path)) == [
            "Pulumi.yaml: not found here or in any folder above; run this inside the project"
        ]


class TestManifests:
    NATS = "apiVersion: nats.io/v1alpha2\nkind: NatsCluster\nmetadata: {name: bus}\nspec: {size: 1}\n"

    def manifest(self, description: dict[str, Any]) -> dict[str, Any]:
        spec = {key: value for key, value in description["jobs"]["ads"].items() if key != "kind"}
        metadata = {"name": "ads", "namespace": "team"}
        return {"apiVersion": "persia.com/v1", "kind": "PersiaJob", "metadata": metadata, "spec": spec}

    def test_jobs_and_nats_clusters(self, written: Callable[..., Path], description: dict[str, Any]) -> None:
        written("m.yaml", yaml.safe_dump(self.manifest(description)) + "---\n" + self.NATS)

        job, nats = read_inputs(["m.yaml"])

        assert isinstance(job.spec, PersiaJobSpec)
        assert (job.name, job.spec.namespace) == ("ads", "team")
        assert isinstance(nats.spec, NatsSpec)
        assert (nats.name, nats.spec.size) == ("bus", 1)

    def test_a_stack_file_by_its_path(self, written: Callable[..., Path], description: dict[str, Any]) -> None:
        written("Pulumi.qa.yaml", {"config": {"persia-infra:environment": description}})

        (source,) = read_inputs(["Pulumi.qa.yaml"])

        assert source.name == "qa"
        assert isinstance(source.spec, EnvironmentSpec)

    @pytest.mark.parametrize(
        ("old", "new", "line"),
        [
            ("NatsCluster", "NatsClutser", "kind: 'NatsClutser' is not a supported kind; did you mean 'NatsCluster'?"),
            ("NatsCluster", "CronTab", "kind: 'CronTab' is not a supported kind; known here: PersiaJob, MPIJob,"),
            ("v1alpha2", "v1", "apiVersion: 'nats.io/v1' is not a supported version of NatsCluster"),
            ("{name: bus}", "{}", "metadata.name: is required and missing"),
            ("{name: bus}", "{name: Bus}", "metadata.name: 'Bus' is not a valid name"),
            (
                "spec:",
                "spce:",
                (
                    "spec: is required and missing",
                    "spce: unknown key, which would have no effect; did you mean 'spec'?",
                ),
            ),
            ("{size: 1}", "{sise: 1}", "spec.sise: unknown key, which would have no effect; did you mean 'size'?"),
            ("{size: 1}", "[]", "spec: must be a mapping of keys to values"),
            (
                "kind: NatsCluster\n",
                "",
                "has no 'kind', and no config with persia-infra:environment either",
            ),
        ],
    )
    def test_an_invalid_manifest_is_refused(
        self, written: Callable[..., Path], old: str, new: str, line: str | tuple[str, ...]
    ) -> None:
        written("m.yaml", self.NATS.replace(old, new))

        lines = messages(lambda: read_inputs(["m.yaml"]))

        assert_refused(lines, line, prefix="m.yaml: ")

    def test_a_long_job_name(self, written: Callable[..., Path], description: dict[str, Any]) -> None:
        manifest = self.manifest(description)
        manifest["metadata"]["name"] = "a" * 40
        written("m.yaml", manifest)

        (line,) = messages(lambda: read_inputs(["m.yaml"]))

        assert line.startswith("m.yaml: metadata.name: the name has 40 characters")

    def test_every_document_and_every_file_is_reported(self, written: Callable[..., Path]) -> None:
        written("a.yaml", self.NATS.replace("size: 1", "size: 0") + "---\n" + self.NATS.replace("bus", "B"))
        written("b.yaml", "")

        lines = messages(lambda: read_inputs(["a.yaml", "b.yaml", "c.yaml"]))

        assert [line.split(": ")[0:2] for line in lines] == [
            ["a.yaml", "documents[0].spec.size"],
            ["a.yaml", "documents[1].metadata.name"],
            ["b.yaml", "is empty; add a stack or a manifest"],
            ["c.yaml", "no such file; check the path"],
        ]

    def test_notes_name_their_place(self, written: Callable[..., Path]) -> None:
        written("m.yaml", self.NATS.replace("size: 1", "resources: {limits: {cpu: 2}}"))

        (source,) = read_inputs(["m.yaml"])

        (note,) = source.notes()
        assert (note.file, note.path) == ("m.yaml", "spec.resources")


def test_a_problem_without_a_place_is_one_clean_line() -> None:
    assert str(Problem("f", "", "is empty")) == "f: is empty"


def test_a_suggestion_is_the_most_similar_word_or_all_words() -> None:
    assert nearest("replcias", ["replicas", "image"]) == "did you mean 'replicas'?"
    assert nearest("xyz", ["replicas", "image"]) == "known here: replicas, image"


def test_an_environment_too_large_for_pulumi_to_pass_on_is_refused(tmp_path: Path, description: dict[str, Any]) -> None:
    job = description["jobs"]["ads"]
    description["jobs"] = {f"job-{index}": copy.deepcopy(job) for index in range(200)}
    file = tmp_path / "Pulumi.many.yaml"
    file.write_text(yaml.safe_dump({"config": {"persia-infra:environment": description}}))

    with pytest.raises(InputError, match=r"in one environment variable, .* Linux allows 128"):
        load_stack(file)
