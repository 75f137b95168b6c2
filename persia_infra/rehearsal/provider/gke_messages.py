"""The GKE API's message types, loaded so that they get along with Pulumi's own in one process.

Pulumi's SDK and Google's API packages each bring `google.rpc.Status` in a file of their own, and protobuf takes a
name once in a process: whichever is loaded first serves both, since they are the same message.
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
