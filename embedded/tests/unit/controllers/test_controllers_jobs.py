"""Jobs and CronJobs."""

import pytest

from embedded.tests.unit.controllers.controllers_world import START_S, World, job
from pocketkube.controllers.jobs.cron_jobs import parse_schedule
from pocketkube.objects import parsed_time_s, rfc3339

JOBS = "jobs.batch"


@pytest.fixture
def world():
    return World()


def _start(world, **spec):
    made = world.create("batch/v1", "jobs", job("j", **spec))
    world.settle()
    return made


def _running(world):
    return [p["metadata"]["name"] for p in world.pods() if p["status"]["phase"] == "Running"]


def _end(world, phase, number=1, exit_code=None):
    for name in _running(world)[:number]:
        world.set_phase(name, phase, exit_code=exit_code)
    world.settle()


def _conditions(world):
    found = world.status(JOBS, "j").get("conditions", [])
    return [(c["type"], c["status"], c["reason"]) for c in found]


def test_a_job_runs_to_its_end(world):
    _start(world, parallelism=2, completions=3)
    status = world.status(JOBS, "j")
    assert status == {
        "active": 2,
        "ready": 2,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "startTime": status["startTime"],
    }
    _end(world, "Succeeded", 2)
    assert world.status(JOBS, "j")["succeeded"] == 2
    assert len(_running(world)) == 1
    _end(world, "Succeeded")
    status = world.status(JOBS, "j")
    assert (status["succeeded"], status["ready"], "active" in status) == (3, 0, False)
    assert "completionTime" in status
    assert _conditions(world) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert world.reasons("j") == ["SuccessfulCreate"] * 3 + ["Completed"]


def test_indexed_pods_know_their_index(world):
    _start(world, parallelism=3, completions=3, completionMode="Indexed")
    pod = world.pods()[1]
    metadata, spec = pod["metadata"], pod["spec"]
    assert metadata["name"].startswith("j-1-")
    assert metadata["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert metadata["annotations"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert spec["hostname"] == "j-1"


def test_too_many_failures_end_a_job(world):
    _start(world, parallelism=2, completions=2, backoffLimit=1)
    _end(world, "Failed")
    world.settle(15)
    _end(world, "Failed")
    assert _conditions(world) == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    assert not _running(world)
    assert world.status(JOBS, "j")["failed"] == 3  # the pod that was taken away is one of them
    assert "BackoffLimitExceeded" in world.reasons("j")


def test_a_pod_that_is_deleted_counts_as_failed_and_is_replaced(world):
    _start(world)
    world.delete("pods", _running(world)[0])
    world.settle(15)
    assert world.status(JOBS, "j")["failed"] == 1
    assert len(_running(world)) == 1


def test_a_suspended_job_has_no_pods_and_goes_on_without_blame(world):
    _start(world, parallelism=2, completions=2, suspend=True)
    assert not world.pods()
    assert _conditions(world) == [("Suspended", "True", "JobSuspended")]

    def suspend(wanted):
        def change(found):
            found["spec"]["suspend"] = wanted

        world.patch(JOBS, "j", change)
        world.settle()

    suspend(False)
    assert len(_running(world)) == 2
    assert _conditions(world) == [("Suspended", "False", "JobResumed")]
    suspend(True)
    assert not world.pods()
    status = world.status(JOBS, "j")
    assert "failed" not in status
    assert "startTime" not in status
    assert [r for r in world.reasons("j") if "Success" not in r] == ["Suspended", "Resumed"]


def test_a_job_that_runs_for_too_long_fails(world):
    _start(world, activeDeadlineSeconds=30)
    world.settle(20)
    assert _running(world)
    world.settle(12)
    assert not _running(world)
    assert _conditions(world)[-1] == ("Failed", "True", "DeadlineExceeded")


def test_a_finished_job_goes_with_its_pods_when_its_time_is_over(world):
    _start(world, ttlSecondsAfterFinished=60)
    _end(world, "Succeeded")
    world.settle(50)
    assert world.names(JOBS) == ["j"]
    world.settle(12)
    assert world.names(JOBS) == []
    assert world.pods() == []


# CronJobs


def _cron(world, **spec):
    body = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job("x")["spec"]}, **spec}
    world.create("batch/v1", "cronjobs", {"metadata": {"name": "c"}, "spec": body})


def test_a_cron_job_starts_jobs_by_the_clock(world):
    _cron(world)
    world.settle(11 * 60)
    jobs = world.api.find_all(JOBS)
    minutes = [round(world.seconds_since_start(j["metadata"]["creationTimestamp"])) for j in jobs]
    assert minutes == [300, 600]
    annotation = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    assert jobs[0]["metadata"]["annotations"] == {annotation: rfc3339(START_S + 300)}
    status = world.status("cronjobs.batch", "c")
    assert [one["name"] for one in status["active"]] == world.names(JOBS)


def test_a_cron_job_that_may_not_overlap_waits(world):
    _cron(world, concurrencyPolicy="Forbid")
    world.settle(11 * 60)
    assert len(world.names(JOBS)) == 1
    assert "JobAlreadyActive" in world.reasons("c")


@pytest.mark.parametrize(
    ("schedule", "until", "turn"),
    [
        ("* * * * *", "2026-01-01T00:01:30Z", "2026-01-01T00:01:00Z"),
        ("30 8 * * 1-5", "2026-01-05T09:00:00Z", "2026-01-05T08:30:00Z"),
        ("30 8 * * 1-5", "2026-01-04T09:00:00Z", None),  # a Sunday
        ("0 0 1 * 0", "2026-01-04T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@hourly", "2026-01-01T01:00:59Z", "2026-01-01T01:00:00Z"),
        ("10-20/5 1 * 1 *", "2026-01-01T01:18:00Z", "2026-01-01T01:15:00Z"),
    ],
)
def test_the_last_turn_of_a_schedule_within_an_hour(schedule, until, turn):
    until_s = parsed_time_s(until)
    turn_s = parse_schedule(schedule).last_turn_s(until_s - 3600, until_s)
    assert turn_s == (parsed_time_s(turn) if turn else None)


@pytest.mark.parametrize("wrong", [{"schedule": "@never"}, {"timeZone": "Europe/Berlin"}])
def test_what_is_not_read_of_a_schedule_is_told(world, wrong):
    _cron(world, **wrong)
    world.settle(11 * 60)
    assert world.names(JOBS) == []
    assert "UnparseableSchedule" in world.reasons("c")


@pytest.mark.parametrize("schedule", ["* * * *", "61 * * * *", "a * * * *", "5-1 * * * *"])
def test_a_schedule_that_is_none_is_refused(schedule):
    with pytest.raises(ValueError, match=r"."):
        parse_schedule(schedule)
