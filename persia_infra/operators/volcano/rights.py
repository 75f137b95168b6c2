"""The rights of Volcano's three programs, and the kinds that its webhooks check."""

from collections.abc import Mapping

from persia_infra.operators.rights import Right, Rights

SERVICE = "volcano-admission-service"
_Webhooks = Mapping[str, tuple[str, str, tuple[str, ...]]]
"""The API group, version and operations of each resource."""
MUTATING: _Webhooks = {
    "jobs": ("batch.volcano.sh", "v1alpha1", ("CREATE",)),
    "queues": ("scheduling.volcano.sh", "v1beta1", ("CREATE",)),
}
VALIDATING: _Webhooks = {
    "jobs": ("batch.volcano.sh", "v1alpha1", ("CREATE", "UPDATE")),
    "cronjobs": ("batch.volcano.sh", "v1alpha1", ("CREATE", "UPDATE")),
    "podgroups": ("scheduling.volcano.sh", "v1beta1", ("CREATE",)),
    "queues": ("scheduling.volcano.sh", "v1beta1", ("CREATE", "UPDATE", "DELETE")),
    "hypernodes": ("topology.volcano.sh", "v1alpha1", ("CREATE", "UPDATE")),
}


def _configuration_names(webhooks: _Webhooks, verb: str) -> tuple[str, ...]:
    return tuple(f"{SERVICE}-{resource}-{verb}" for resource in webhooks)


_SEES = ("list", "watch")
_LEADS = Right("coordination.k8s.io", ("leases",), ("create", "get", "update"))
_JOBS = "someone runs Volcano's own Jobs: "

SCHEDULER_RIGHTS = Rights(
    everywhere=(
        Right(
            "",
            (
                "namespaces",
                "nodes",
                "persistentvolumeclaims",
                "persistentvolumes",
                "pods",
                "replicationcontrollers",
                "resourcequotas",
                "services",
            ),
            _SEES,
        ),
        Right("apps", ("replicasets", "statefulsets"), _SEES),
        Right("policy", ("poddisruptionbudgets",), _SEES),
        Right("resource.k8s.io", ("deviceclasses", "resourceclaims", "resourceslices"), _SEES),
        Right("scheduling.k8s.io", ("priorityclasses",), _SEES),
        Right("storage.k8s.io", ("csinodes", "storageclasses", "volumeattachments"), _SEES),
        Right("nodeinfo.volcano.sh", ("numatopologies",), _SEES),
        Right("topology.volcano.sh", ("hypernodes",), _SEES),
        Right("scheduling.volcano.sh", ("podgroups",), (*_SEES, "update")),
        Right("scheduling.volcano.sh", ("queues",), (*_SEES, "create", "update")),
        Right("scheduling.volcano.sh", ("queues/status",), ("update",)),
        Right("", ("pods/binding",), ("create",)),
        Right("", ("pods/status",), ("update",)),
        Right("", ("events",), ("create",)),
        Right("", ("events",), ("patch",), used_when="it repeats an event"),
        Right(
            "",
            ("persistentvolumeclaims", "persistentvolumes"),
            ("update",),
            used_when="a pod has a claim that is bound only when the pod is scheduled",
        ),
    ),
    own=(_LEADS,),
)
CONTROLLERS_RIGHTS = Rights(
    everywhere=(
        Right("", ("nodes", "persistentvolumeclaims"), _SEES),
        Right("", ("pods",), (*_SEES, "create", "delete", "patch")),
        Right("", ("services",), (*_SEES, "create", "get")),
        Right("", ("configmaps", "secrets"), ("create", "get")),
        Right("networking.k8s.io", ("networkpolicies",), ("create", "get")),
        Right("apps", ("replicasets", "statefulsets"), _SEES),
        # A PodGroup takes over the annotations of its pod's owner.
        Right("apps", ("daemonsets", "replicasets", "statefulsets"), ("get",)),
        Right("batch", ("jobs",), ("get",)),
        Right("", ("events",), ("create",)),
        Right("", ("events",), ("patch",), used_when="it repeats an event"),
        Right("scheduling.k8s.io", ("priorityclasses",), _SEES),
        Right("batch.volcano.sh", ("cronjobs", "jobs"), _SEES),
        Right("batch.volcano.sh", ("jobs/status",), ("update",)),
        Right("bus.volcano.sh", ("commands",), (*_SEES, "delete")),
        Right("config.volcano.sh", ("colocationconfigurations",), _SEES),
        Right("flow.volcano.sh", ("jobflows", "jobtemplates"), _SEES),
        Right("topology.volcano.sh", ("hypernodes",), _SEES),
        Right("scheduling.volcano.sh", ("podgroups",), (*_SEES, "create", "delete")),
        Right("scheduling.volcano.sh", ("queues",), (*_SEES, "patch")),
        Right("scheduling.volcano.sh", ("queues/status",), ("patch",)),
        Right("", ("pods",), ("get",), used_when=_JOBS + "a pod of one could not be deleted at once"),
        Right("", ("services", "secrets"), ("delete",), used_when=_JOBS + "one with plugins ends"),
        Right("", ("configmaps",), ("delete", "update"), used_when=_JOBS + "one with plugins changes or ends"),
        Right("networking.k8s.io", ("networkpolicies",), ("delete",), used_when=_JOBS + "one with plugins ends"),
        Right("", ("persistentvolumeclaims",), ("create", "get"), used_when=_JOBS + "one has a volumeClaim"),
        Right(
            "batch.volcano.sh", ("jobs",), ("create", "delete", "get", "update"), used_when=_JOBS + "by CronJob or flow"
        ),
        Right("batch.volcano.sh", ("cronjobs/status",), ("update",), used_when=_JOBS + "by CronJob"),
        Right("flow.volcano.sh", ("jobflows/status", "jobtemplates/status"), ("update",), used_when=_JOBS + "by flow"),
        Right("scheduling.volcano.sh", ("podgroups",), ("update",), used_when=_JOBS + "one is resized"),
        Right("topology.volcano.sh", ("hypernodes/status",), ("update",), used_when="nodes are grouped in HyperNodes"),
    ),
    own=(_LEADS, Right("", ("configmaps",), _SEES)),
)
ADMISSION_RIGHTS = Rights(
    everywhere=(
        Right(
            "admissionregistration.k8s.io",
            ("mutatingwebhookconfigurations",),
            ("get",),
            names=_configuration_names(MUTATING, "mutate"),
        ),
        Right(
            "admissionregistration.k8s.io",
            ("validatingwebhookconfigurations",),
            ("get",),
            names=_configuration_names(VALIDATING, "validate"),
        ),
        Right(
            "admissionregistration.k8s.io",
            ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
            ("update",),
            names=_configuration_names(MUTATING, "mutate") + _configuration_names(VALIDATING, "validate"),
            used_when="it starts with a new certificate before the webhook configurations have it",
        ),
        Right("scheduling.volcano.sh", ("queues",), _SEES),
        Right("scheduling.volcano.sh", ("podgroups",), ("get", "list"), used_when="a queue that has gangs is deleted"),
    ),
)
