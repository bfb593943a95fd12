"""Safety of the dialects: no foreign text breaks them, and a status comes to rest."""

import json

from hypothesis import given
from hypothesis import strategies as st

from quorate.core.model import GangKey, Owner
from quorate.core.model.reasons import GangState, GangView, Members, Reason
from quorate.dialects import DIALECTS, Malformed, PodFacts, by_name, resolve

KEYS = [
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "pod-group.scheduling.sigs.k8s.io/min-available",
    "pod-group.scheduling.x-k8s.io",
    "scheduling.x-k8s.io/pod-group",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "kueue.x-k8s.io/pod-group-name",
]
keys = st.sampled_from(KEYS) | st.text()
values = st.sampled_from(["", "0", "2", "two", "pg1"]) | st.text()
pairs = st.dictionaries(keys, values, max_size=4)


@given(pairs, pairs, st.sampled_from(["", "pg"]))
def test_a_pod_has_a_gang_or_a_defect_but_never_both(labels, annotations, group):
    said = resolve(PodFacts("team-a", "p", labels, annotations, group))
    assert not (said.membership and said.defect)
    assert bool(said.defect) == bool(said.defect_reason)
    if said.membership:
        key, min_count = said.membership.key, said.membership.min_count
        assert key.namespace == "team-a"
        assert key.name
        assert (min_count is not None) == (by_name(key.dialect).min_key is not None)
        assert min_count is None or 1 <= min_count < 2**31


def merged(target, patch):
    """RFC 7386, as the API server applies it."""
    if not isinstance(patch, dict):
        return patch
    base = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = merged(base.get(key), value)
    return base


small = st.integers(0, 6)


@st.composite
def views(draw, dialect):
    bound, waiting, assumed = draw(small), draw(small), draw(small)
    running = draw(st.integers(0, bound))
    succeeded = draw(st.integers(0, bound - running))
    failed = draw(st.integers(0, bound - running - succeeded))
    total = bound + waiting + assumed
    return GangView(
        key=GangKey("team-a", dialect, "g"),
        uid="u1",
        state=draw(st.sampled_from(GangState)),
        members=Members(
            needed=draw(small),
            exist=total,
            total=total,
            bound=bound,
            assumed=assumed,
            waiting=waiting,
            running=running,
            succeeded=succeeded,
            failed=failed,
        ),
        admitted=draw(st.booleans()),
        reason=draw(st.sampled_from(Reason)),
        message=draw(st.text(max_size=20)),
        created_s=0.0,
        owner=draw(st.sampled_from([None, Owner("v1", "Job", "j")])),
    )


PHASES = [
    "",
    "Pending",
    "Inqueue",
    "Scheduling",
    "Running",
    "Unknown",
    "Completed",
    "Finished",
    "?",
]
CONDITIONS = [
    {"type": "Unschedulable", "status": "True", "lastTransitionTime": "2023-01-01T00:00:00Z"},
    {"type": "PodGroupScheduled", "status": "True", "lastTransitionTime": "2023-01-01T00:00:00Z"},
    {"type": "Foreign", "status": "Unknown", "extra": [1]},
]


@given(st.data(), st.sampled_from([one.name for one in DIALECTS if one.object]))
def test_a_status_that_was_written_is_not_written_again(data, name):
    status_of, view = by_name(name).object.status, data.draw(views(name))
    status = {
        "phase": data.draw(st.sampled_from(PHASES)),
        "conditions": data.draw(st.lists(st.sampled_from(CONDITIONS), unique_by=str)),
        "foreign": 1,
    }
    before = {"metadata": {"namespace": "team-a", "name": "g", "uid": "u1"}, "status": status}
    patch = status_of(view, json.dumps(before).encode(), 1000.0)
    if patch is None:
        return
    after = merged(before, json.loads(patch.body))
    assert status_of(view, json.dumps(after).encode(), 2000.0) is None
    assert after["metadata"] == before["metadata"]
    assert after["status"]["foreign"] == 1
    foreign = [one for one in status["conditions"] if one["type"] == "Foreign"]
    assert [one for one in after["status"]["conditions"] if one["type"] == "Foreign"] == foreign
    if name == "volcano":
        phases = ("Pending", "Running", "Unknown", "Inqueue", "Completed")
        assert after["status"]["phase"] in phases
        if after["status"]["phase"] == "Unknown":
            assert view.members.bound < view.members.needed


@given(st.binary(max_size=80) | st.text(max_size=80).map(lambda text: json.dumps(text).encode()))
def test_bytes_that_are_no_object_are_malformed_and_get_no_status(raw):
    for dialect in DIALECTS:
        if dialect.object is None:
            continue
        try:
            dialect.object.decode(raw)
        except Malformed:
            assert dialect.object.status(None, raw, 0.0) is None
        else:
            raise AssertionError(f"{dialect.name} read {raw!r}")
