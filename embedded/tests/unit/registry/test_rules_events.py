import pytest

from embedded.tests.unit.registry.rules_world import resource_of
from pocketkube.registry.rules import rules_of
from pocketkube.registry.rules.events import to_core, to_events_k8s_io

# Both forms of two events, as a real API server gave them.
OLD_STYLE = (
    {
        "apiVersion": "v1",
        "count": 2,
        "eventTime": None,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "kind": "Event",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "message": "m",
        "metadata": {"name": "core"},
        "reason": "R",
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {"component": "c"},
        "type": "Normal",
    },
    {
        "apiVersion": "events.k8s.io/v1",
        "deprecatedCount": 2,
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedSource": {"component": "c"},
        "eventTime": None,
        "kind": "Event",
        "metadata": {"name": "core"},
        "note": "m",
        "reason": "R",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "type": "Normal",
    },
)
NEW_STYLE = (
    {
        "action": "A",
        "apiVersion": "v1",
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "firstTimestamp": None,
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "kind": "Event",
        "lastTimestamp": None,
        "message": "m",
        "metadata": {"name": "new"},
        "reason": "R",
        "reportingComponent": "x",
        "reportingInstance": "i",
        "source": {},
        "type": "Normal",
    },
    {
        "action": "A",
        "apiVersion": "events.k8s.io/v1",
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
        "deprecatedSource": {},
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "kind": "Event",
        "metadata": {"name": "new"},
        "note": "m",
        "reason": "R",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reportingController": "x",
        "reportingInstance": "i",
        "type": "Normal",
    },
)
BOTH = pytest.mark.parametrize(("core", "new"), [OLD_STYLE, NEW_STYLE], ids=["core", "new"])


@BOTH
def test_an_event_of_the_core_group_is_read_in_the_newer_form(core, new):
    assert to_events_k8s_io(core) == new


@BOTH
def test_an_event_of_the_newer_group_is_stored_in_the_core_form(core, new):
    assert to_core(new) == core


@BOTH
def test_a_conversion_to_the_same_form_changes_nothing(core, new):
    assert to_core(core) is core
    assert to_events_k8s_io(new) is new


def test_two_conversions_do_not_share_empty_fields():
    bare = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}}
    first, second = to_events_k8s_io(bare), to_events_k8s_io(bare)
    first["regarding"]["name"] = "p"
    assert second["regarding"] == {}


@pytest.mark.parametrize(
    ("event", "field"),
    [(NEW_STYLE[0], "involvedObject.name"), (NEW_STYLE[1], "regarding.name")],
    ids=["core", "new"],
)
def test_both_forms_are_selected_by_the_object_they_are_about(event, field):
    assert rules_of(resource_of(event)).selectable[field](event) == "p"


def test_an_event_as_it_is_stored_is_selected_in_the_new_api_too():
    """What controllers record is of the core form; a list of events.k8s.io by ``regarding`` had
    none of it."""
    selectable = rules_of(resource_of(NEW_STYLE[1])).selectable
    assert selectable["regarding.name"](NEW_STYLE[0]) == "p"
    assert selectable["regarding.kind"](NEW_STYLE[0]) == "Pod"
    assert selectable["reportingController"](NEW_STYLE[0]) == "x"


def test_the_source_of_a_new_event_is_its_controller():
    source = rules_of(resource_of(NEW_STYLE[0])).selectable["source"]
    assert source(NEW_STYLE[0]) == "x"
    assert source(OLD_STYLE[0]) == "c"
