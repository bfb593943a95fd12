"""Defects that the core contained are reported: each once, in the log and in a metric."""

from structlog.testing import capture_logs

from quorate.core.turn.defects import Incident
from quorate.shell.report.incidents import Incidents
from quorate.shell.report.metrics import Metrics
from tests.unit.shell.scripted_server import ManualClock


def incident(number, stage="decide"):
    return Incident(
        id=f"q-d{number}", stage=stage, about="team/job", error="KeyError: 1", trace="place:3"
    )


def test_each_defect_is_one_line_of_log_and_counts_by_its_stage():
    metrics = Metrics()
    incidents = Incidents(metrics, ManualClock())
    with capture_logs() as logs:
        incidents.report([incident(1), incident(2, "observe")])
        incidents.report([])
    assert [(line["id"], line["about"], line["error"]) for line in logs] == [
        ("q-d1", "team/job", "KeyError: 1"),
        ("q-d2", "team/job", "KeyError: 1"),
    ]
    value = metrics.registry.get_sample_value
    assert value("quorate_contained_defects_total", {"stage": "decide"}) == 1
    assert value("quorate_contained_defects_total", {"stage": "observe"}) == 1
    assert value("quorate_contained_defects_total", {"stage": "explain"}) == 0


def test_the_recording_is_written_at_the_first_defect_and_at_most_once_a_minute():
    clock = ManualClock()
    incidents = Incidents(Metrics(), clock)
    written = []
    incidents.record = lambda: written.append(clock.monotonic_s())
    incidents.report([])
    assert not written
    for _ in range(3):
        incidents.report([incident(1), incident(2)])
        clock.time_s += 25.0
    assert len(written) == 1
    clock.time_s += 10.0
    incidents.report([incident(3)])
    assert len(written) == 2
