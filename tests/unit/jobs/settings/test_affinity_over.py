"""The affinity of a profile and of a run, laid over one another."""

from persia_infra.jobs.settings.profiles import affinity_over
from persia_infra.kube.pod_templates import Affinity
from persia_infra.spec.base import Place

_TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
NODES = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _TERMS}}
PODS = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}


def test_each_kind_of_affinity_is_kept_and_the_winner_decides_where_both_have_it() -> None:
    overridden: list[Place] = []
    winner, loser = Affinity.model_validate({"nodeAffinity": {}}), Affinity.model_validate({**NODES, **PODS})

    merged = affinity_over(winner, loser, overridden)

    assert merged is not None
    assert merged.as_kubernetes() == {"nodeAffinity": {}, **PODS}
    assert overridden == [("affinity", "nodeAffinity")]


def test_an_affinity_that_only_one_of_them_has_is_kept_whole() -> None:
    overridden: list[Place] = []
    only = Affinity.model_validate(NODES)

    assert affinity_over(only, None, overridden) == affinity_over(None, only, overridden) == only
    assert affinity_over(None, None, overridden) is None
    assert overridden == []
