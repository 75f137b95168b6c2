"""As `persia_bad_manifests`, for the StatefulSets of 2021 and the NATS between them."""

from typing import Any

from tests.support.persia_bad_manifests import DELETED

SETS = "stateful-sets.yaml"
CONTAINER = "spec/template/spec/containers/0"
BAD_SETS: list[tuple[str, str, Any, str]] = [
    (
        SETS,
        "0/metadata/name",
        "coordinator",
        "documents[0].metadata.name: does not tell which role of PERSIA this is; known here: trainer, "
        "data-compose, middleware, emb-server",
    ),
    (
        SETS,
        f"2/{CONTAINER}/args/1",
        "embserver",
        "documents[3].metadata.name: is a second StatefulSet of the role embeddingParameterServer; remove one",
    ),
    (
        SETS,
        f"2/{CONTAINER}/env/0/value",
        "99",
        "documents[2].spec.template.spec.containers[0].env[0].value: is 99 but replicas is 100, so the"
        " role would wait for pods that do not exist, or ignore some; make them equal",
    ),
    (
        SETS,
        f"2/{CONTAINER}/env/1/value",
        "nats://elsewhere:4222",
        "documents[2].spec.template.spec.containers[0].env[1].value: differs from the NATS of the other roles, so they "
        "would not find each other; make them equal",
    ),
    (
        SETS,
        f"3/{CONTAINER}/imagePullPolicy",
        "Never",
        "documents[3].spec.template.spec.containers[0].imagePullPolicy: differs from the other roles', "
        "but a PersiaJob has only one; make them equal",
    ),
    (
        SETS,
        f"1/{CONTAINER}/livenessProbe",
        {},
        "documents[1].spec.template.spec.containers[0].livenessProbe: has no counterpart in a PersiaJob; known "
        "here: args, command, env, image, imagePullPolicy, name, ports, resources, volumeMounts",
    ),
    (
        SETS,
        f"0/{CONTAINER}/env/1/name",
        "NPROC",
        "documents[0].spec.template.spec.containers[0].env: lacks NPROC_PER_NODE, the number of processes that train "
        "on each node; add it",
    ),
    (
        SETS,
        "0/spec/template/spec/hostNetwork",
        True,
        "documents[0].spec.template.spec.hostNetwork: has no counterpart in a PersiaJob; known here: affinity, "
        "containers, nodeSelector, priorityClassName, restartPolicy, securityContext, "
        "serviceAccountName, tolerations, volumes",
    ),
    (
        SETS,
        "1/apiVersion",
        "apps/v1beta1",
        "documents[1].apiVersion: is not a supported version of StatefulSet; write apps/v1",
    ),
    (
        SETS,
        f"0/{CONTAINER}/env",
        7,
        "documents[0].spec.template.spec.containers[0].env: must be a list",
    ),
    (
        SETS,
        f"0/{CONTAINER}/env",
        {"a": 1},
        "documents[0].spec.template.spec.containers[0].env: must be a list",
    ),
    (
        SETS,
        f"1/{CONTAINER}/env",
        ["text"],
        "documents[1].spec.template.spec.containers[0].env[0]: must be a mapping of keys to values",
    ),
    (
        SETS,
        f"1/{CONTAINER}/env/0/name",
        ["a"],
        "documents[1].spec.template.spec.containers[0].env[0].name: must be text; put it in quotes",
    ),
    (
        SETS,
        f"2/{CONTAINER}/env/1/value",
        5,
        "documents[2].spec.template.spec.containers[0].env[1].value: must be text; put it in quotes",
    ),
    (
        SETS,
        f"2/{CONTAINER}/env/0/value",
        100,
        "documents[2].spec.template.spec.containers[0].env[0].value: must be text; put it in quotes",
    ),
    (
        SETS,
        f"0/{CONTAINER}/env/1/value",
        "eight",
        "documents[0].spec.template.spec.containers[0].env[1].value: must be a whole number",
    ),
    (
        SETS,
        f"0/{CONTAINER}/env/1/value",
        "9",
        "documents[0].spec.template.spec.containers[0].env[1].value: is 9, but each pod has 8 GPU: "
        "a process without a GPU of its own fails at start; lower it or raise the nvidia.com/gpu limit",
    ),
    (
        SETS,
        f"2/{CONTAINER}/7",
        "x",
        "documents[2].spec.template.spec.containers[0][7]: has a key that is not text; put it in quotes",
    ),
    (
        SETS,
        "2/spec/template/spec/7",
        "x",
        "documents[2].spec.template.spec[7]: has a key that is not text; put it in quotes",
    ),
    (
        SETS,
        f"2/{CONTAINER}/resources/limits/memory",
        "24 GB",
        "documents[2].spec.template.spec.containers[0].resources.limits.memory: '24 GB' is not a "
        "Kubernetes quantity: write a number with at most one suffix: Ki Mi Gi Ti Pi Ei (powers of "
        "1024), k M G T P E (powers of 1000), m u n (thousandths and less), or an exponent as in 12e6; "
        "no spaces; did you mean '24G'?",
    ),
    (
        SETS,
        f"2/{CONTAINER}/image",
        "a b",
        "documents[2].spec.template.spec.containers[0].image: is not a valid image name; write one such as "
        "registry.example/team/trainer:1.2",
    ),
    (
        SETS,
        f"2/{CONTAINER}/volumeMounts",
        [{"name": "w", "mountPath": "/workspace"}],
        "documents[2].spec.template.spec.containers[0].volumeMounts[0].name: no volume 'w' is declared, "
        "so the pod would be refused; declared: none",
    ),
    (
        SETS,
        "2/spec/template/spec/volumes",
        [{"name": "w"}],
        "documents[2].spec.template.spec.volumes[0]: needs exactly one source; write one of hostPath, "
        "persistentVolumeClaim, nfs, emptyDir, configMap, secret, csi, gcePersistentDisk, ephemeral, projected, "
        "downwardAPI",
    ),
    (
        SETS,
        f"2/{CONTAINER}/command",
        "run",
        "documents[2].spec.template.spec.containers[0].command: must be a list",
    ),
    (
        SETS,
        f"2/{CONTAINER}",
        [],
        "documents[2].spec.template.spec.containers[0]: must be a mapping of keys to values",
    ),
    (
        SETS,
        "2/spec/template/spec/containers",
        [],
        "documents[2].spec.template.spec.containers: is empty; give at least one",
    ),
    (
        SETS,
        "2/spec/replicas",
        "many",
        "documents[2].spec.replicas: must be a whole number",
    ),
    (
        SETS,
        "2/spec/replicas",
        -1,
        "documents[2].spec.replicas: must be greater than or equal to 0",
    ),
    (
        SETS,
        "2/spec/replica",
        1,
        "documents[2].spec.replica: is not a key of a StatefulSet; did you mean 'replicas'?",
    ),
    (
        SETS,
        "2/sepc",
        {},
        "documents[2].sepc: is not a key of a StatefulSet; did you mean 'spec'?",
    ),
    (
        SETS,
        "2/spec/template",
        DELETED,
        "documents[2].spec.template: is required and missing",
    ),
    (
        SETS,
        "2/metadata",
        DELETED,
        "documents[2].metadata: is required and missing",
    ),
    (
        SETS,
        "2/metadata/name",
        "Middleware",
        "documents[2].metadata.name: 'Middleware' is not a valid name: "
        "use lower-case letters, digits and '-' (at most 63), starting with a letter",
    ),
    (
        SETS,
        "2/spec/volumeClaimTemplates",
        [{"metadata": {"name": "disk"}}],
        "documents[2].spec.volumeClaimTemplates: a PersiaJob has no disks that outlive their pods; mount"
        " a volume instead, such as an ephemeral one",
    ),
    (
        SETS,
        "2/spec/template/spec/terminationGracePeriodSeconds",
        600,
        "documents[2].spec.template.spec.terminationGracePeriodSeconds: has no counterpart in a PersiaJob; "
        "known here: affinity, containers, nodeSelector, priorityClassName, restartPolicy, "
        "securityContext, serviceAccountName, tolerations, volumes",
    ),
    (
        SETS,
        "4/metadata",
        "text",
        "documents[4].metadata: must be a mapping of keys to values",
    ),
    (
        SETS,
        "4/metadata",
        DELETED,
        "documents[4].metadata: is required and missing",
    ),
    (
        SETS,
        "4/spec",
        [],
        "documents[4].spec: must be a mapping of keys to values",
    ),
    (
        SETS,
        "4/apiVersion",
        "nats.io/v1",
        "documents[4].apiVersion: 'nats.io/v1' is not a supported version of NatsCluster, so its fields may mean "
        "something else; write nats.io/v1alpha2",
    ),
    (
        SETS,
        "4/spec/auth",
        {"clientsAuthSecret": "users"},
        "documents[4].spec.auth: PERSIA's client cannot log in, so no role could connect; remove it:"
        " the job's NetworkPolicy already admits only its own pods to its NATS",
    ),
]
