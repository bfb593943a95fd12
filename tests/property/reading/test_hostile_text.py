"""What tenants write, in any field that we read, leaves by every door as plain text.

Method: put hostile text into fields, names of fields included, of pods, nodes and gangs' objects;
let the core see and explain them; then look at all that comes out at each door.
"""

import contextlib
import copy
import io
import json

import yaml
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest

from quorate.cli.commands import lint
from quorate.cli.show import output, why_text
from quorate.cli.show.gang_data import gang_object, typed_name
from quorate.cli.show.gang_table import GangTable
from quorate.cli.show.survey_result import SurveyResult, explanations
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.core.turn.defects import Incident
from quorate.dialects import Malformed, by_name
from quorate.lint.check import Text, check
from quorate.lint.manifests import Options
from quorate.shell.apis import api_words
from quorate.shell.kube.errors import error_from_response
from quorate.shell.process import logs
from quorate.shell.report import bodies
from quorate.shell.report.metrics import Metrics
from quorate.shell.serve.bounded_http import text_answer
from quorate.shell.survey import Leader
from quorate.shell.watch.objects import watched_kinds
from quorate.shell.watch.outage import summary
from quorate.shell.watch.unavailable import unavailable_because
from tests.property.reading.full_objects import GANG, NODE, POD, paths, with_value
from tests.property.seeds import drawn

NOW_S = 1_700_000_000.0
KINDS = list(watched_kinds(frozenset({"quorate"})).values())
MARK = "FORGED"
HOSTILE = [
    "\x1b[2J\x1b]0;x\x07",
    "\x9b31m",
    "\x7f\x08\x08",
    f"x\n{MARK}: all is well",
    f"x\r{MARK}",
    f"x\u2028{MARK}\u2029\x85{MARK}",
    "\u202egnp.exe\u2066",
    "\u200b\ufeff\U000e0041",
    f"::error file=x::{MARK}",
    f"##vso[task.setvariable variable=PATH]{MARK}",
    "victim@x\x1b",
    '"},"evil":"\x00',
    "\x1b" * 5000,
]
texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "L"]), min_size=1, max_size=40),
)


def places(value):
    """Give the paths of all strings."""
    for path in paths(value):
        found = value
        for step in path:
            found = found[step]
        if isinstance(found, str) and path != ("spec", "schedulerName"):
            yield path


def dressed(original):
    """Draw a version of an object with hostile text in some places: in values, or in their keys."""
    original = json.loads(json.dumps(original))

    def apply(edits):
        changed = original
        for path, text, is_key in sorted(edits, key=lambda edit: -len(edit[0])):
            with contextlib.suppress(KeyError, IndexError):  # its name was changed before
                changed = (
                    _renamed(changed, path, text) if is_key else with_value(changed, path, text)
                )
        return changed

    edit = st.tuples(st.sampled_from(list(places(original))), texts, st.booleans())
    return st.lists(edit, max_size=3).map(apply)


def _renamed(original, path, text):
    changed = copy.deepcopy(original)
    where = changed
    for step in path[:-1]:
        where = where[step]
    if isinstance(where, dict):
        where[text] = where.pop(path[-1])
    return changed


def waiting(pod):
    """Return the pod without what keeps it from waiting for a node."""
    pod = json.loads(json.dumps(pod))
    pod["metadata"].pop("deletionTimestamp")
    for field in ("nodeName", "schedulingGates", "resourceClaims", "schedulingGroup"):
        pod["spec"].pop(field)
    pod["status"] = {"phase": "Pending"}
    return pod


def with_gang(pod, key, name, text):
    """Return the pod as a member of a gang, with hostile text in what its sentences may repeat."""
    pod = waiting(pod)
    place = "annotations" if key == "scheduling.k8s.io/group-name" else "labels"
    pod["metadata"]["labels"], pod["metadata"]["annotations"] = {}, {}
    pod["metadata"][place][key] = name
    pod["metadata"]["annotations"]["quorate.dev/hold-seconds"] = text
    pod["metadata"]["ownerReferences"][0] |= {"kind": "StatefulSet", "name": text}
    pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = text
    return pod


GANG_KEYS = (
    "scheduling.k8s.io/group-name",
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.volcano.sh/group-name",
)
names = st.sampled_from(["g", "job"]) | texts
pods = st.one_of(
    dressed(POD),
    dressed(waiting(POD)),
    st.builds(with_gang, st.just(POD), st.sampled_from(GANG_KEYS), names, texts),
)


def observed(objects):
    """Let a core see these (kind, object); return it, and what cannot be read."""
    scheduler, unreadable = Scheduler(Policy(), api_words()), []
    for kind, value in objects:
        try:
            change = kind.changed(json.dumps(value).encode())
        except Malformed as error:
            unreadable.append(error)
        else:
            scheduler.observe([change])
    scheduler.decide(NOW_S)
    return scheduler, unreadable


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def assert_plain(text, *, lines=False):
    shown = text.replace("\n", "") if lines else text
    assert shown.isprintable(), ascii(next(c for c in shown if not c.isprintable()))
    if lines:
        assert not [line for line in text.splitlines() if line.strip().startswith(MARK)]


def logged(style, **event):
    for process in logs._last(style):
        event = process(None, "info", event)
    return event


def printed(show):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        show()
    return out.getvalue() + err.getvalue()


groups = st.tuples(st.sampled_from([kind for kind in KINDS if kind.dialect]), dressed(GANG))
POD_KIND = next(kind for kind in KINDS if kind.resource.plural == "pods")
NODE_KIND = next(kind for kind in KINDS if kind.resource.plural == "nodes")
worlds = st.tuples(
    st.lists(groups, max_size=2),
    st.lists(st.tuples(st.just(POD_KIND), pods), min_size=1, max_size=3),
    st.lists(st.tuples(st.just(NODE_KIND), dressed(NODE)), max_size=1),
).map(lambda parts: [one for part in parts for one in part])


@drawn(300)
@given(worlds)
def test_conditions_events_and_statuses_are_plain(world):
    scheduler, _ = observed(world)
    raws = {value["metadata"].get("name"): value for _, value in world if "metadata" in value}
    explainer = scheduler.explainer(NOW_S)
    for key, gang in scheduler.cluster.gangs.items():
        explanation = explainer.explain(key)
        for entry in gang.members.values():
            reason, sentence = explainer.pod_message(entry, explanation)
            patch = bodies.not_scheduled(reason, sentence, NOW_S)
            for text in strings(patch):
                assert_plain(text)
                assert len(text.encode()) <= 1024
            words = {"kind": "Warning", "reason": "R", "action": "A", "instance": "i"}
            for note in (sentence, entry.pod.warning):
                made = bodies.event(entry.pod, note=note, now_s=NOW_S, **words)
                assert_plain(made["note"])
                for text in strings(
                    bodies.explaining(made, explanation)["metadata"]["annotations"]
                ):
                    assert_plain(text)
        dialect, raw = by_name(key.dialect), raws.get(key.name)
        view = explainer.view(key, explanation)
        if dialect is None or dialect.object is None or raw is None or view is None:
            continue
        status = dialect.object.status(view, json.dumps({**raw, "status": {}}).encode(), NOW_S)
        for text in strings(json.loads(status.body)) if status is not None else ():
            assert_plain(text)


@drawn(300)
@given(worlds)
def test_the_command_line_prints_plain_text_and_data_that_means_the_same(world):
    scheduler, _ = observed(world)
    keys = sorted(scheduler.cluster.gangs)
    found = explanations(scheduler, keys, NOW_S)
    seen = SurveyResult(scheduler, keys, Leader(None), NOW_S, "", found, {})
    for one in found:
        lines = why_text.lines_of(one, seen, wide=True)
        text = printed(lambda lines=lines: output.print_lines(lines))
        assert_plain(text, lines=True)
        assert text.count("\n") == len(lines)
    data = [gang_object(one, seen) for one in found]
    whole = GangTable(with_namespaces=True, wide=True)
    table = printed(lambda: whole.show(data, NOW_S))
    assert_plain(table, lines=True)
    assert table.count("\n") <= len(data) + 1
    for one in data:
        name = printed(lambda one=one: output.say(typed_name(one)))
        assert_plain(name, lines=True)
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        text = printed(lambda form=form: output.print_data(data, form))
        assert_plain(text, lines=True)
        assert json.dumps(read(text)) == json.dumps(data)


@drawn(300)
@given(worlds)
def test_no_gang_is_shown_by_anothers_name_and_none_has_a_name_that_no_object_can_have(world):
    scheduler, _ = observed(world)
    for key in scheduler.cluster.gangs:
        if not key.is_single:
            assert str(key) == f"{key.namespace}/{key.name}"
            assert key.name.isascii()
            assert key.name.isprintable()
            assert "@" not in key.name


@drawn(300)
@given(worlds, texts)
def test_logs_pages_and_metrics_are_plain(world, text):
    scheduler, unreadable = observed(world)
    names = [str(key) for key in scheduler.cluster.gangs]
    said = [*names, *(str(error) for error in unreadable), text]
    incident = Incident(id="q-d1", stage="decide", about=text, error=text, trace=f"a\n{text}")
    refused = error_from_response(500, json.dumps({"message": text}).encode())
    why = unavailable_because(POD_KIND.resource, refused)
    assert_plain(why.problem)
    assert_plain(str(summary({"/a": text})["problem"]))
    for one in said:
        event = {"event": one, "gang": one, "listed": [one], "trace": incident.trace}
        assert_plain(logged("text", **event), lines=True)
        line = logged("json", **event)
        assert line.isascii()
        assert_plain(line)
        page = text_answer(503, f"{one!s}\n").body.decode()
        assert page.replace("\n", "").isprintable()
    metrics = Metrics()
    metrics.api_errors.labels("5xx").inc()
    page = generate_latest(metrics.registry).decode()
    assert MARK not in page


@drawn(300)
@given(worlds, texts)
def test_lint_prints_plain_text_and_no_command_of_a_ci_service(world, name):
    apis = {"pods": ("v1", "Pod"), "podgroups": ("scheduling.x-k8s.io/v1alpha1", "PodGroup")}
    documents = []
    for kind, value in world:
        if kind.resource.plural in apis and isinstance(value, dict):
            version, word = apis[kind.resource.plural]
            documents.append(json.dumps({"apiVersion": version, "kind": word, **value}))
    report = check([Text(name, "\n---\n".join(documents))], Options())
    text = printed(lambda: lint._print_report(report, wide=True))
    text += printed(lambda: [output.error(line) for line in report.unreadable])
    assert_plain(text, lines=True)
    assert "##vso[" not in text
    assert "::error " not in text
