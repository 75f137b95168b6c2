"""Changes that spoil a manifest of `examples/manifests/persia`: file, place, new value, and what is said of it."""

from typing import Any


class _Deleted:
    def __repr__(self) -> str:
        return "deleted"


DELETED = _Deleted()
PERSIA, DECEMBER = "persia-job.yaml", "december-2021.yaml"
BAD: list[tuple[str, str, Any, str]] = [
    (
        PERSIA,
        "0/apiVersion",
        "persia.com/v2",
        "documents[0].apiVersion: 'persia.com/v2' is not a supported version of PersiaJob, so its fields may mean "
        "something else; write persia.com/v1",
    ),
    (
        PERSIA,
        "0/kind",
        "PersiaJobs",
        "documents[0].kind: 'PersiaJobs' is not a supported kind; did you mean 'PersiaJob'?",
    ),
    (
        PERSIA,
        "0/metadata/name",
        "Adult_Income",
        "documents[0].metadata.name: 'Adult_Income' is not a valid name: "
        "use lower-case letters, digits and '-' (at most 63), starting with a letter",
    ),
    (
        PERSIA,
        "0/metadata/name",
        "a-name-that-is-longer-than-any-pod-of-it-can-have",
        "documents[0].metadata.name: the name has 49 characters, so pod names, which append a role and a number to it, "
        "would be too long for Kubernetes; use at most 35",
    ),
    (
        PERSIA,
        "0/metadata/namespace",
        "Training",
        "documents[0].metadata.namespace: 'Training' is not a valid name: "
        "use lower-case letters, digits and '-' (at most 63), starting with a letter",
    ),
    (
        PERSIA,
        "0/metadata",
        DELETED,
        "documents[0].metadata: is required and missing",
    ),
    (
        PERSIA,
        "0/spec",
        DELETED,
        "documents[0].spec: is required and missing",
    ),
    (
        PERSIA,
        "0/spec",
        [],
        "documents[0].spec: must be a mapping of keys to values",
    ),
    (
        PERSIA,
        "0/spec/persiaEnv/PERSIA_GLOBAL_CONFIG",
        DELETED,
        "documents[0].spec.persiaEnv.PERSIA_GLOBAL_CONFIG: is missing, and PERSIA does not start without it; add the "
        "path, or the file itself as globalConfig",
    ),
    (
        PERSIA,
        "0/spec/persiaEnv/PERSIA_EMBEDDING_CONFIG",
        DELETED,
        "documents[0].spec.persiaEnv.PERSIA_EMBEDDING_CONFIG: is missing, and PERSIA does not start without it; add "
        "the path, or the file itself as embeddingConfig",
    ),
    (
        PERSIA,
        "0/spec/persiaEnv/PERSIA_NN_WORKER_ENTRY",
        DELETED,
        "documents[0].spec.persiaEnv.PERSIA_NN_WORKER_ENTRY: is missing, so the nn-workers would have no script to "
        "run; add its path in the image or on a volume, or the script itself as "
        "nnWorker.script",
    ),
    (
        PERSIA,
        "0/spec/persiaEnv/PERSIA_DATALOADER_ENTRY",
        DELETED,
        "documents[0].spec.persiaEnv.PERSIA_DATALOADER_ENTRY: is missing, so the dataloaders would have no script to "
        "run; add its path in the image or on a volume, or the script itself as "
        "dataloader.script",
    ),
    (
        PERSIA,
        "0/spec/persiaEnv/PERSIA_NATS_URL",
        "nats://bus:4222",
        "documents[0].spec.persiaEnv.PERSIA_NATS_URL: unknown key, which would have no effect; known "
        "here: PERSIA_GLOBAL_CONFIG, PERSIA_EMBEDDING_CONFIG, PERSIA_NN_WORKER_ENTRY, "
        "PERSIA_DATALOADER_ENTRY",
    ),
    (
        PERSIA,
        "0/spec/persiaEnv",
        "config",
        "documents[0].spec.persiaEnv: must be a mapping of keys to values",
    ),
    (
        PERSIA,
        "0/spec/globalConfigPath",
        "/g.yml",
        "documents[0].spec.globalConfigPath: cannot be combined with persiaEnv.PERSIA_GLOBAL_CONFIG, the new name of "
        "the same field; remove one of them",
    ),
    (
        PERSIA,
        "0/spec/middlewareServer",
        {"replicas": 1},
        "documents[0].spec.middlewareServer: cannot be combined with embeddingWorker, the new name of the same field; "
        "remove one of them",
    ),
    (
        PERSIA,
        "0/spec/dataLoader",
        {"replicas": 1},
        "documents[0].spec.dataLoader: unknown key, which would have no effect; did you mean 'dataloader'?",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/replicas",
        DELETED,
        "documents[0].spec.nnWorker.replicas: is required and missing",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/replicas",
        -1,
        "documents[0].spec.nnWorker.replicas: must be greater than or equal to 0",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/replicas",
        "many",
        "documents[0].spec.nnWorker.replicas: must be a whole number",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/nprocPerNode",
        DELETED,
        "documents[0].spec.nnWorker.nprocPerNode: is required and missing",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/nprocPerNode",
        3,
        "documents[0].spec.nnWorker.nprocPerNode: is 3, but each pod has 2 GPU: a process without a GPU of its own "
        "fails at start; lower it or raise the nvidia.com/gpu limit",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/volumeMount",
        [],
        "documents[0].spec.nnWorker.volumeMount: unknown key, which would have no effect; did you mean 'volumeMounts'?",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/resources/limits/memory",
        "24 GB",
        "documents[0].spec.nnWorker.resources.limits.memory: '24 GB' is not a Kubernetes quantity: "
        "write a number with at most one suffix: Ki Mi Gi Ti Pi Ei (powers of 1024), k M G T P E "
        "(powers of 1000), m u n (thousandths and less), or an exponent as in 12e6; no spaces; did you "
        "mean '24G'?",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/resources/limits/nvidia.com~gpu",
        1.5,
        "documents[0].spec.nnWorker.resources.limits.nvidia.com/gpu: 1.5 is not a whole number of GPUs; a "
        "container gets whole GPUs only",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/resources/requests",
        {"cpu": "5"},
        "documents[0].spec.nnWorker.resources.requests.cpu: 5 is more than the limit of 4, which "
        "Kubernetes refuses; lower the request or raise the limit",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/env/0/value",
        1,
        "documents[0].spec.nnWorker.env[0].value: must be text; put it in quotes",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/env/0/name",
        "WORLD_SIZE",
        "documents[0].spec.nnWorker.env[0].name: WORLD_SIZE differs from pod to pod and is set automatically; remove "
        "it",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/env/0/name",
        "PERSIA_NATS_URL",
        "documents[0].spec.nnWorker.env[0].name: PERSIA_NATS_URL for a single role would separate it from the others; "
        "move it to the job's env",
    ),
    (
        PERSIA,
        "0/spec/env/0/name",
        "PERSIA_SOCKET_NAME",
        "documents[0].spec.env[0].name: PERSIA does not read this variable; write PERSIA_SOCKET_IFNAME",
    ),
    (
        PERSIA,
        "0/spec/env/0/value",
        "",
        "documents[0].spec.env: PERSIA_NATS_URL is empty, so the roles would not find each other; remove it or write a "
        "server's address",
    ),
    (
        PERSIA,
        "0/spec/dataloader/volumeMounts",
        [{"name": "data", "mountPath": "/data"}],
        "documents[0].spec.dataloader.volumeMounts[0].name: no volume 'data' is declared, so the pod "
        "would be refused; declared: none",
    ),
    (
        PERSIA,
        "0/spec/volumes",
        [{"name": "data"}],
        "documents[0].spec.volumes[0]: needs exactly one source; write one of hostPath, "
        "persistentVolumeClaim, nfs, emptyDir, configMap, secret, csi, gcePersistentDisk, ephemeral, projected, "
        "downwardAPI",
    ),
    (
        PERSIA,
        "0/spec/volumes",
        [{"name": "data", "glusterFS": {}}],
        "documents[0].spec.volumes[0].glusterFS: unknown key, which would have no effect; did you mean 'glusterfs'?",
    ),
    (
        PERSIA,
        "0/spec/restartPolicy",
        "Sometimes",
        "documents[0].spec.restartPolicy: not one of the values it can have; write 'Always', 'Never' or 'OnFailure'",
    ),
    (
        PERSIA,
        "0/spec/enableMetrics",
        "off?",
        "documents[0].spec.enableMetrics: must be true or false",
    ),
    (
        PERSIA,
        "0/spec/logLevel",
        ["info"],
        "documents[0].spec.logLevel: must be text; put it in quotes",
    ),
    (
        PERSIA,
        "1/spec/size",
        0,
        "documents[1].spec.size: must be greater than or equal to 1",
    ),
    (
        PERSIA,
        "1/spec/sise",
        3,
        "documents[1].spec.sise: unknown key, which would have no effect; did you mean 'size'?",
    ),
    (
        PERSIA,
        "1/spec/natsConfig/maxPayload",
        128 * 1024 * 1024,
        "documents[1].spec.natsConfig.maxPayload: nats-server does not start with more than 67108864 bytes (64 "
        "MiB); lower it, and send smaller batches if they are larger",
    ),
    (
        PERSIA,
        "1/spec/natsConfig/max_payload_size",
        1024,
        "documents[1].spec.natsConfig.max_payload_size: unknown key, which would have no effect; did "
        "you mean 'maxPayload'?",
    ),
    (
        PERSIA,
        "1/spec/natsConfig/writeDeadline",
        "2s",
        "documents[1].spec.natsConfig.writeDeadline: the NATS operator ignores this spelling; write 'write_deadline'",
    ),
    (
        PERSIA,
        "1/spec/resources",
        {"limits": {"cpu": "2"}},
        "documents[1].spec.resources: cannot be combined with pod.resources, because it is ambiguous which one "
        "applies; remove one",
    ),
    (
        PERSIA,
        "1/spec/pod/labels",
        {"nats_cluster": "mine"},
        "documents[1].spec.pod.labels.nats_cluster: is a label that selects the server pods; choose another key",
    ),
    (
        PERSIA,
        "1/apiVersion",
        "nats.io/v1",
        "documents[1].apiVersion: 'nats.io/v1' is not a supported version of NatsCluster, so its fields may mean "
        "something else; write nats.io/v1alpha2",
    ),
    (
        DECEMBER,
        "0/spec/persiaEnv",
        ["a"],
        "documents[0].spec.persiaEnv: must be a mapping of keys to values",
    ),
    (
        DECEMBER,
        "0/spec/persiaEnv",
        "text",
        "documents[0].spec.persiaEnv: must be a mapping of keys to values",
    ),
    (
        PERSIA,
        "0/spec/env/0/name",
        ["a"],
        "documents[0].spec.env[0].name: must be text; put it in quotes",
    ),
    (
        PERSIA,
        "0/spec/env/0/name",
        {},
        "documents[0].spec.env[0].name: must be text; put it in quotes",
    ),
    (
        PERSIA,
        "0/metadata/7",
        "x",
        "documents[0].metadata[7]: has a key that is not text; put it in quotes",
    ),
    (
        PERSIA,
        "0/spec/nnWorker/resources/limits/memory",
        10000000000000000000,
        "documents[0].spec.nnWorker.resources.limits.memory: is more than Kubernetes can count; write less than 8Ei",
    ),
]
