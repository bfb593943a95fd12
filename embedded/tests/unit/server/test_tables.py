"""Tables show what a real API server's Tables show of the same objects.

Its answers are in custom_recorded/tables.json; ``record_custom`` wrote them.
"""

import json
from pathlib import Path

import pytest

from pocketkube.registry import custom
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource
from pocketkube.server.tables.json_path import compiled
from pocketkube.server.tables.tables import table
from pocketkube.server.tables.words import duration, since

HERE = Path(__file__).parents[1] / "schema"
RECORDED = json.loads((HERE / "custom_recorded" / "tables.json").read_text())
CASES = json.loads((HERE / "custom_cases" / "tables.json").read_text())
NOW_S = 1_795_262_400.0  # 2026-11-21T12:00:00Z


def resource_at(path: str) -> Resource:
    registry = Registry(Document.load().resources())
    for case in CASES:
        if case["object"].get("kind") == "CustomResourceDefinition":
            custom.set_defaults(case["object"])
            registry.add(custom.resources_of(case["object"]))
    parts = path.removeprefix("/apis/").split("/")
    if path.startswith("/api/"):
        return registry.resource("", "v1", parts[-1])
    return registry.resource(parts[0], parts[1], parts[-1])


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["path"])
def test_rows_are_as_recorded(recorded):
    resource = resource_at(recorded["path"])
    objects = [row["object"] for row in recorded["rows"]]
    # The server's clock was read before ours: ages may be a second less.
    ours = [
        table(resource, objects, now_s=recorded["now_s"] - late_s, include_object="Object")
        for late_s in (0, 1)
    ]
    for wanted, now, before in zip(recorded["rows"], *(one["rows"] for one in ours), strict=True):
        pairs = zip(wanted["cells"], now["cells"], before["cells"], strict=True)
        for cell, *possible in pairs:
            assert cell in possible
            assert type(cell) in map(type, possible)  # 1 is not True
        assert wanted.get("conditions") == now.get("conditions")
        assert wanted["object"] == now["object"]


def test_every_state_of_a_pod_was_recorded():
    (pods,) = [recorded for recorded in RECORDED if recorded["path"].endswith("/pods")]
    states = {row["cells"][2] for row in pods["rows"]}
    assert {
        "Pending",
        "SchedulingGated",
        "Running",
        "CrashLoopBackOff",
        "Completed",
        "Error",
        "OutOfcpu",
        "Init:0/2",
        "Init:CrashLoopBackOff",
        "Terminating",
        "NotReady",
    } <= states


def pods() -> Resource:
    return resource_at("/api/v1/namespaces/t1/pods")


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "creationTimestamp": "2026-11-21T11:59:30Z"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
    "status": {"phase": "Pending"},
}


def test_a_table_has_the_metadata_of_the_list_and_the_columns_of_its_kind():
    found = table(pods(), [POD], now_s=NOW_S, list_metadata={"resourceVersion": "5"})
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert found["metadata"] == {"resourceVersion": "5"}
    names = [column["name"] for column in found["columnDefinitions"]]
    assert names[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert found["rows"][0]["cells"][:5] == ["a", "0/1", "Pending", "0", "30s"]
    assert len(found["rows"][0]["cells"]) == len(names)


def test_a_row_holds_the_object_or_its_metadata_or_nothing():
    def row(include):
        return table(pods(), [POD], now_s=NOW_S, include_object=include)["rows"][0]["object"]

    assert row("Object") == POD
    assert row("None") is None
    assert row("Metadata") == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": POD["metadata"],
    }


def test_the_paths_of_printer_columns_are_not_told():
    found = table(resource_at("/apis/ex.com/v1/namespaces/t1/tabs"), [], now_s=NOW_S)
    assert found["rows"] == []
    assert not [column for column in found["columnDefinitions"] if "jsonPath" in column]


@pytest.mark.parametrize(
    ("elapsed_s", "text"),
    [
        (-2, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (245, "4m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 - 1, "7h59m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (800 * 86400, "2y70d"),
        (8 * 365 * 86400, "8y"),
        (100 * 365 * 86400, "100y"),
    ],
)
def test_durations_have_two_or_three_figures(elapsed_s, text):
    assert duration(elapsed_s) == text


def test_times_that_are_not_there_or_no_times_are_told():
    assert since(None, NOW_S) == "<unknown>"
    assert since("soon", NOW_S) == "<invalid>"
    assert since("2026-11-21T11:00:00Z", NOW_S) == "60m"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".a['b']", [1]),
        (".a.x\\.y/z", [2]),
        (".nope.b", []),
        (".l[0]", [{"t": "x", "n": 1}]),
        (".l[-1].t", ["y"]),
        (".l[5]", []),
        (".l[*].t", ["x", "y"]),
        (".l[1:].t", ["y"]),
        (".l[:1].t", ["x"]),
        ('.l[?(@.t=="y")].n', [2]),
        (".l[?(@.t=='y')].n", [2]),
        (".l[?(@.t!='y')].n", [1]),
        (".l[?(@.n>=2)].t", ["y"]),
        (".l[?(@.n<2)].t", ["x"]),
        (".l[?(@.o)].n", []),
        (".a.*", [1, 2]),
    ],
)
def test_json_paths_find_values(path, found):
    obj = {"a": {"b": 1, "x.y/z": 2}, "l": [{"t": "x", "n": 1}, {"t": "y", "n": 2}]}
    assert compiled(path)(obj) == found


@pytest.mark.parametrize("path", ["a", ".a[", "..a", ".a[?(@.b==c)]", ".a[0,1]"])
def test_json_paths_that_are_not_read_are_told(path):
    assert compiled(path) is None
