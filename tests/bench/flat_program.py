"""Prints a program that declares the resources of the dev stack, one statement each, arguments written out.

That is what a user without the library would have. By itself, because a process that has loaded the SDKs to find
out what it declares is a slow one to measure in.
"""

from persia_components.render import declared_for

from persia_infra.stack import find_stack, load_stack
from tests.support.project import PROJECT


def main() -> None:
    resources = declared_for("dev", load_stack(find_stack("dev", PROJECT)))
    print("import pulumi_gcp as gcp")
    print("import pulumi_kubernetes as kubernetes")
    for one in resources:
        package, module, kind = one.type.split(":")
        inputs = {key: value for key, value in one.inputs.items() if key not in ("apiVersion", "kind")}
        if package == "kubernetes":
            group, version = module.split("/")
            path = f"kubernetes.{group.split('.')[0]}.{version}"
        elif package == "gcp":
            path = "gcp." + module.split("/")[0]
        else:
            continue
        arguments = ", ".join(f"{_snake(key)}={value!r}" for key, value in inputs.items())
        print(f"{path}.{kind}({one.name!r}, {arguments})")


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


if __name__ == "__main__":
    main()
