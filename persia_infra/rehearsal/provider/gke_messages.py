"""The message types of the GKE API, loaded next to Pulumi's in the same process.

Pulumi's SDK and Google's API packages each define `google.rpc.Status`, and protobuf accepts a name only once per
process. The definitions are equal, so whichever is loaded first is used for both.
"""

import importlib
import sys

_OF_GOOGLE, _OF_PULUMI = "google.rpc.status_pb2", "pulumi.runtime.proto.status_pb2"

if _OF_GOOGLE in sys.modules:
    sys.modules.setdefault(_OF_PULUMI, sys.modules[_OF_GOOGLE])
else:
    sys.modules[_OF_GOOGLE] = importlib.import_module(_OF_PULUMI)

from google.cloud.container_v1beta1.types import cluster_service as gke  # noqa: E402

__all__ = ["gke"]
