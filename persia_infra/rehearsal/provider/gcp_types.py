"""Inputs and outputs of each type of the Google Cloud package, and Google's names for resources.

The shape of a type (inputs, outputs, which outputs are always set) is read from the source of the installed Pulumi
SDK, so that all of its types are known without a table, and without importing the SDK. Values that only Google
would know are generated, always the same ones for the same id. What a value means to Google (quota, permissions,
formats) is out of scope.
"""

import hashlib
import ipaddress
import re
import secrets
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from persia_infra.rehearsal.provider.package import UNKNOWN, Properties, ProviderError, Secret

CLUSTER: Final = "gcp:container/cluster:Cluster"
NODE_POOL: Final = "gcp:container/nodePool:NodePool"
NETWORK: Final = "gcp:compute/network:Network"
SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
ENABLED_API: Final = "gcp:projects/service:Service"
SERVICE_ACCOUNT_KEY: Final = "gcp:serviceaccount/key:Key"
SERVICE_ACCOUNT: Final = "gcp:serviceaccount/account:Account"

_GETTER: Final = re.compile(
    r'    @pulumi\.getter(?:\(name="(?P<wire>\w+)"\))?\n(?:    @\S.*\n)*'
    r"    def (?P<python>\w+)\(self\) -> pulumi\.\w+\[(?P<type>.*)\]:"
)


@dataclass(frozen=True)
class ResourceType:
    """A type with its property names on the wire (`selfLink`); `always_set` are outputs that Google fills in."""

    token: str
    inputs: frozenset[str]
    always_set: dict[str, str]

    @property
    def service(self) -> str:
        return self.token.split(":")[1].partition("/")[0]

    @property
    def kind(self) -> str:
        """The kind without its service: `subnetwork`, `nodePool`."""
        return self.token.split(":")[1].partition("/")[2]

    @property
    def kept_outputs(self) -> frozenset[str]:
        """Outputs that an update does not change: ids, links, times of creation."""
        return frozenset(self.always_set) - self.inputs - {"effectiveLabels", "pulumiLabels"}

    @property
    def is_grant(self) -> bool:
        """Whether it is an IAM grant or an enabled API; granting the same twice is not an error."""
        return "IAM" in self.token or "Iam" in self.token or self.token == ENABLED_API


@cache
def resource_type(token: str) -> ResourceType:
    """Returns the type with this token.

    Raises:
        ProviderError: The installed SDK has no such type.
    """
    parts = re.fullmatch(r"gcp:(\w+)/\w+:(\w+)", token)
    package = find_spec("pulumi_gcp")
    if parts and package and package.submodule_search_locations:
        service, name = parts.groups()
        file = Path(package.submodule_search_locations[0]) / service / f"{_snake_case(name)}.py"
        if file.is_file():
            return _read_type(token, name, file.read_text())
    raise ProviderError(
        f"{token}: the installed pulumi_gcp has no such type: correct the type's name or upgrade pulumi_gcp"
    )


def _read_type(token: str, name: str, source: str) -> ResourceType:
    _, _, after_arguments = source.partition(f"\nclass {name}Args:")
    arguments, _, _ = after_arguments.partition(f"\nclass _{name}State:")
    _, _, resource = source.partition(f"\nclass {name}(")
    always_set = {
        getter["wire"] or getter["python"]: getter["type"]
        for getter in _GETTER.finditer(resource)
        if not getter["type"].startswith("Optional[")
    }
    return ResourceType(
        token, frozenset(getter["wire"] or getter["python"] for getter in _GETTER.finditer(arguments)), always_set
    )


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def region_of(location: str) -> str:
    return location[:-2] if is_zone(location) else location


def is_zone(location: str) -> bool:
    return re.search(r"[0-9]-[a-z]$", location) is not None


def zones_of(region: str) -> list[str]:
    """Returns the three zones that a regional cluster gets by default."""
    letters = "bcd" if region in {"europe-west1", "us-east1"} else "abc"
    return [f"{region}-{letter}" for letter in letters]


def last_segment(reference: str) -> str:
    """Returns the bare name in a name, id or self link."""
    return reference.rstrip("/").rpartition("/")[2]


def object_id(kind: ResourceType, inputs: Properties, settings: Properties) -> str:
    """Returns the id in Google's notation: `projects/P/regions/R/subnetworks/N`."""
    project = inputs.get("project") or settings.get("project") or ""
    name = str(inputs.get("name", ""))
    if kind.is_grant:
        order = {"role": 1, "member": 2}
        named = (key for key in kind.inputs if isinstance(inputs.get(key), str) and key != "deletionPolicy")
        return "/".join(inputs[key] for key in sorted(named, key=lambda key: (order.get(key, 0), key)))
    match kind.token:
        case "gcp:container/cluster:Cluster":
            return f"projects/{project}/locations/{_location(inputs, settings)}/clusters/{name}"
        case "gcp:container/nodePool:NodePool":
            return f"{_cluster_id(inputs, project, settings)}/nodePools/{name}"
        case "gcp:serviceaccount/account:Account":
            return f"projects/{project}/serviceAccounts/{_service_account_email(inputs, project)}"
        case "gcp:serviceaccount/key:Key":
            return f"{inputs['serviceAccountId']}/keys/{secrets.token_hex(20)}"
        case "gcp:compute/globalAddress:GlobalAddress":
            return f"projects/{project}/global/addresses/{name}"
        case "gcp:compute/routerNat:RouterNat":
            return f"{project}/{_region(inputs, settings)}/{last_segment(inputs['router'])}/{name}"
        case "gcp:storage/bucket:Bucket":
            return name
        case "gcp:kms/cryptoKey:CryptoKey":
            return f"{inputs['keyRing']}/cryptoKeys/{name}"
        case "gcp:organizations/project:Project":
            return f"projects/{inputs.get('projectId', name)}"
    collection = _plural(kind.kind)
    if not name:
        given = (inputs[key] for key in sorted(inputs) if key.endswith("Id") and isinstance(inputs[key], str))
        name = next(given, None) or secrets.token_hex(6)
    if kind.service == "compute" and "zone" in kind.inputs:
        place = f"zones/{inputs.get('zone') or settings.get('zone')}/"
    elif kind.service == "compute":
        place = f"regions/{_region(inputs, settings)}/" if "region" in kind.inputs else "global/"
    elif "location" in kind.inputs:
        place = f"locations/{_location(inputs, settings)}/"
    else:
        place = f"locations/{_region(inputs, settings)}/" if "region" in kind.inputs else ""
    return f"projects/{project}/{place}{collection}/{name}"


def _cluster_id(inputs: Properties, project: str, settings: Properties) -> str:
    cluster = str(inputs["cluster"])
    if full_id := re.search(r"projects/[^/]+/locations/[^/]+/clusters/[^/]+", cluster):
        return full_id[0]
    return f"projects/{project}/locations/{_location(inputs, settings)}/clusters/{last_segment(cluster)}"


def _location(inputs: Properties, settings: Properties) -> str:
    return inputs.get("location") or settings.get("zone") or settings.get("region") or "global"


def _region(inputs: Properties, settings: Properties) -> str:
    return last_segment(inputs.get("region") or settings.get("region") or region_of(settings.get("zone") or ""))


def _service_account_email(inputs: Properties, project: str) -> str:
    return f"{inputs['accountId']}@{project}.iam.gserviceaccount.com"


def _plural(noun: str) -> str:
    if noun.endswith("y"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith("s") else "s")


def unknown_outputs(kind: ResourceType, inputs: Properties) -> Properties:
    """Returns the outputs in a preview: the inputs, and `UNKNOWN` for each value that does not exist yet."""
    return {**dict.fromkeys(kind.always_set, UNKNOWN), **visible(inputs)}


def computed_outputs(kind: ResourceType, object_id: str, inputs: Properties, settings: Properties) -> Properties:
    """Returns the inputs, with plausible values for what was left out."""
    outputs = visible(inputs)
    for name, python_type in kind.always_set.items():
        if outputs.get(name) is None:
            outputs[name] = _plausible(kind, name, python_type, object_id, inputs, settings)
    return outputs


def visible(inputs: Properties) -> Properties:
    """Returns the inputs without the provider's private ones."""
    return {name: value for name, value in inputs.items() if not name.startswith("__")}


def _plausible(
    kind: ResourceType, name: str, python_type: str, object_id: str, inputs: Properties, settings: Properties
) -> Any:  # noqa: ANN401
    project = inputs.get("project") or settings.get("project") or ""
    labels = inputs.get("labels") or inputs.get("resourceLabels") or {}
    known: dict[str, Any] = {
        "project": project,
        "region": _region(inputs, settings),
        "zone": settings.get("zone") or "",
        "location": _location(inputs, settings),
        "selfLink": f"https://www.googleapis.com/compute/v1/{object_id}",
        "selfLinkUnique": f"https://www.googleapis.com/compute/v1/{object_id}",
        "url": f"gs://{inputs.get('name')}",
        "deletionPolicy": "DELETE",
        "effectiveLabels": labels,
        "pulumiLabels": labels,
        "mtu": 1460,
        "routingMode": "REGIONAL",
        "number": str(project_number(project)),
    }
    if kind.token == SERVICE_ACCOUNT:
        email = _service_account_email(inputs, project)
        known |= {"email": email, "member": f"serviceAccount:{email}", "name": object_id}
    if kind.token == SUBNETWORK and inputs.get("ipCidrRange"):
        known["gatewayAddress"] = str(ipaddress.ip_network(inputs["ipCidrRange"], strict=False)[1])
    if kind.token == SERVICE_ACCOUNT_KEY and name == "privateKey":
        return Secret(b64encode(b'{"type": "service_account", "note": "generated by a rehearsal"}').decode())
    if name in known:
        return known[name]
    if "address" in name.lower() and python_type == "_builtins.str":
        return str(ipaddress.IPv4Address(0x22_00_00_00 + int(_digest(object_id, 5), 16)))
    if re.search(r"(time|timestamp)$", name, re.IGNORECASE):
        return datetime.now(UTC).isoformat(timespec="milliseconds")
    if re.search(r"(fingerprint|etag)$", name, re.IGNORECASE):
        return b64encode(bytes.fromhex(_digest(object_id + name, 16))).decode()
    if name.endswith("Id"):
        number = _digest_number(object_id + name, 19)
        return number if python_type == "_builtins.int" else str(number)
    if python_type.startswith("Sequence["):
        return []
    return {"_builtins.str": "", "_builtins.int": 0, "_builtins.float": 0, "_builtins.bool": False}.get(python_type, {})


def project_number(project: str) -> int:
    return _digest_number(project, 12)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _digest_number(text: str, digits: int) -> int:
    return 10 ** (digits - 1) + int(_digest(text, 15), 16) % (9 * 10 ** (digits - 1))
