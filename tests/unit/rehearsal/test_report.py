"""The verdict of a rehearsal."""

import pytest

from persia_infra.rehearsal.observation import PendingPod, Pods
from persia_infra.rehearsal.rehearse import Report

ALL_RUN = Pods(2, ("a", "b"), ())


def test_a_rehearsal_passes_if_all_pods_run_and_nothing_is_wrong() -> None:
    assert Report("dev", pods=ALL_RUN).passed
    assert Report("dev", pods=ALL_RUN).as_json()["verdict"] == "pass"


@pytest.mark.parametrize(
    "report",
    [
        Report("dev", pods=Pods(2, ("a",), ())),
        Report("dev", pods=Pods(2, ("a", "b"), (PendingPod("c", "no node"),))),
        Report("dev", pods=ALL_RUN, errors=["refused"]),
        Report("dev", pods=ALL_RUN, changed_by_second_up=["update x"]),
        Report("dev", pods=ALL_RUN, left_behind=["pods x"]),
    ],
    ids=["missing pod", "pending pod", "error", "changed by the second up", "left behind"],
)
def test_a_rehearsal_fails_for_each_problem(report: Report) -> None:
    assert not report.passed
    assert report.as_json()["verdict"] == "fail"


def test_pending_pods_are_those_that_are_wanted_and_do_not_run() -> None:
    report = Report("dev", pods=Pods(3, ("a",), (PendingPod("b", "no node"),))).as_json()
    assert report["pods"] == {"wanted": 3, "running": 1, "pending": 2}
    assert report["pending"] == [{"pod": "b", "reason": "no node"}]
    assert report["running"] == ["a"]
