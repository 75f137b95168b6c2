"""The check of operators' rights itself: whatever right is missing or too much, in whatever scope, it says so."""

from typing import Any

import pytest

from persia_infra.operators.rights import Right, Rights
from tests.support.exercised_rights import Account

EVENTS = Right("", ("events",), ("create",))
PODS = Right("", ("pods",), ("create", "list"))
NODES = Right("", ("nodes",), ("list",))


def request(verb: str, resource: str, namespace: str | None = None, code: int = 200) -> dict[str, Any]:
    target = {"resource": resource} | ({"namespace": namespace} if namespace else {})
    return {"verb": verb, "objectRef": target, "responseStatus": {"code": code}}


REQUESTS = [
    request("list", "nodes"),
    request("list", "pods", "training"),
    request("create", "pods", "training"),
    request("create", "events", "training"),
    request("create", "events", "system"),
]


def account(rights: Rights, *more: dict[str, Any], watched: str | None = "training") -> Account:
    return Account("system", rights, [*REQUESTS, *more], watched=watched)


def test_rights_that_are_all_used_and_missed_are_right() -> None:
    confined = account(Rights(everywhere=(NODES,), watched=(PODS, EVENTS), own=(EVENTS,)))

    assert confined.wrong() == {}
    assert confined.unnoticed() == []


@pytest.mark.parametrize(
    "fewer",
    [
        Rights(watched=(PODS, EVENTS), own=(EVENTS,)),
        Rights(everywhere=(NODES,), watched=(EVENTS,), own=(EVENTS,)),
        Rights(everywhere=(NODES,), watched=(PODS,), own=(EVENTS,)),
        Rights(everywhere=(NODES,), watched=(PODS, EVENTS)),
    ],
)
def test_a_missing_right_in_any_scope_is_noticed(fewer: Rights) -> None:
    assert "has rights from elsewhere" in account(fewer).wrong()


def test_a_right_in_too_wide_a_scope_is_noticed() -> None:
    secrets = Right("", ("secrets",), ("get",))
    enough = Rights(everywhere=(NODES,), watched=(PODS, EVENTS), own=(EVENTS, secrets))
    too_wide = Rights(everywhere=(NODES, secrets), watched=(PODS, EVENTS), own=(EVENTS, secrets))
    seen = request("get", "secrets", "system")

    assert account(enough, seen).unnoticed() == []
    assert account(too_wide, seen).unnoticed() == ["everywhere: secrets get"]


def test_refused_requests_and_unused_rights_are_noticed() -> None:
    rights = Rights(everywhere=(NODES,), watched=(PODS, EVENTS, Right("", ("secrets",), ("get",))), own=(EVENTS,))

    wrong = account(rights, request("delete", "pods", "training", code=403)).wrong()

    assert [use.resource for use in wrong["asked for what it may not"]] == ["pods"]
    assert [use.resource for use in wrong["has rights that it does not use"]] == ["secrets"]


def test_what_holds_everywhere_is_not_granted_again_in_one_namespace() -> None:
    rights = Rights(everywhere=(NODES,), watched=(PODS, EVENTS), own=(EVENTS,))

    assert rights.in_own("system", None) == ()
    assert rights.in_own("system", "training") == (EVENTS,)
    assert account(rights, watched=None).unnoticed() == []
