"""Jobs and CronJobs."""

import pytest

from embedded.tests.unit.controllers.controllers_world import START_S, World, job
from pocketkube.controllers.jobs.cron_schedule import parse_schedule
from pocketkube.controllers.jobs.job_tally import parse_indexes, written_indexes
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
    path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
    reference = {"apiVersion": "v1", "fieldPath": path}
    assert spec["containers"][0]["env"] == [
        {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": reference}}
    ]


def test_an_index_that_failed_is_tried_again_and_each_counts_once(world):
    _start(world, parallelism=2, completions=4, completionMode="Indexed")
    first = next(n for n in _running(world) if n.startswith("j-0-"))
    world.set_phase(first, "Failed")
    world.settle(15)
    assert sorted(name[:4] for name in _running(world)) == ["j-0-", "j-1-"]
    for _ in range(3):
        _end(world, "Succeeded", 2)
    status = world.status(JOBS, "j")
    assert (status["succeeded"], status["failed"], status["completedIndexes"]) == (4, 1, "0-3")


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


def test_a_failed_pod_is_replaced_after_a_pause_that_doubles(world):
    _start(world, backoffLimit=9)
    pauses = []
    for _ in range(3):
        at_s = world.now_s
        _end(world, "Failed")
        while not _running(world):
            world.settle(1)
        pauses.append(round(world.now_s - at_s))
    assert pauses == [10, 20, 40]


def test_a_pod_that_is_deleted_counts_as_failed_and_is_replaced(world):
    _start(world)
    world.delete("pods", _running(world)[0])
    world.settle(15)
    assert world.status(JOBS, "j")["failed"] == 1
    assert len(_running(world)) == 1


def test_successes_are_remembered_when_their_pods_are_gone(world):
    _start(world, parallelism=2, completions=3, completionMode="Indexed")
    _end(world, "Succeeded", 2)
    for pod in world.pods():
        if pod["status"]["phase"] == "Succeeded":
            world.delete("pods", pod["metadata"]["name"])
    world.settle()
    assert world.status(JOBS, "j")["completedIndexes"] == "0,1"
    again = World(store=world.api.store)
    again.settle()
    assert again.status(JOBS, "j")["succeeded"] == 2
    assert [name[:4] for name in _running(again)] == ["j-2-"]


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


def test_less_parallelism_takes_pods_away_without_blame(world):
    _start(world, parallelism=3, completions=3, completionMode="Indexed")

    def change(found):
        found["spec"]["parallelism"] = 1

    world.patch(JOBS, "j", change)
    world.settle()
    assert [name[:4] for name in _running(world)] == ["j-0-"]
    assert "failed" not in world.status(JOBS, "j")


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


def test_a_job_that_somebody_else_manages_is_left_alone(world):
    _start(world, managedBy="example.com/other")
    assert not world.pods()
    assert not world.find(JOBS, "j").get("status")


def test_a_work_queue_is_done_with_its_first_success(world):
    body = job("j", parallelism=3)
    world.create("batch/v1", "jobs", body)

    def no_completions(found):
        found["spec"].pop("completions", None)

    world.patch(JOBS, "j", no_completions)
    world.settle()
    assert len(_running(world)) == 3
    _end(world, "Succeeded")
    assert len(_running(world)) == 2
    assert not _conditions(world)
    _end(world, "Succeeded", 2)
    assert _conditions(world)[-1][0] == "Complete"


@pytest.mark.parametrize(
    ("indexes", "text"), [([], ""), ([0, 1], "0,1"), ([4, 0, 1, 2], "0-2,4"), ([7], "7")]
)
def test_indexes_are_written_as_upstream_writes_them(indexes, text):
    assert written_indexes(indexes) == text
    assert sorted(parse_indexes(text)) == sorted(indexes)


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


def test_a_cron_job_keeps_three_successes(world):
    _cron(world)
    for _ in range(6):
        world.settle(5 * 60)
        for name in _running(world):
            world.set_phase(name, "Succeeded")
    world.settle()
    assert len(world.names(JOBS)) == 3
    assert "SawCompletedJob" in world.reasons("c")


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "wanted"),
    [
        ("* * * * *", None, "2026-01-01T00:00:30Z", "2026-01-01T00:01:00Z"),
        ("30 8 * * MON-FRI", None, "2026-01-03T00:00:00Z", "2026-01-05T08:30:00Z"),
        ("0 0 29 2 *", None, "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 1 * 0", None, "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@hourly", None, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("0 12 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z"),
        ("10-20/5 1 * jan *", None, "2026-01-01T01:11:00Z", "2026-01-01T01:15:00Z"),
    ],
)
def test_the_next_time_of_a_schedule(schedule, zone, after, wanted):
    found_s = parse_schedule(schedule, zone).next(parsed_time_s(after))
    assert rfc3339(found_s) == wanted


def test_the_last_time_is_found_after_a_long_pause():
    hour_s, now_s = 3600.0, 1_800_000_000.0
    assert parse_schedule("* * * * *").latest(now_s - 900 * hour_s, now_s) == now_s
    assert parse_schedule("@yearly").latest(now_s - 60, now_s) is None


@pytest.mark.parametrize("schedule", ["* * * *", "61 * * * *", "a * * * *", "5-1 * * * *"])
def test_a_schedule_that_is_none_is_refused(schedule):
    with pytest.raises(ValueError, match=r"."):
        parse_schedule(schedule)
