"""Strategic merge patches: every row was answered so by a real kube-apiserver 1.36."""

import pytest

from pocketkube.errors import ApiError
from pocketkube.patch.strategic import strategic_merge
from pocketkube.schema.document import Document

DEPLOYMENT = Document.load().shape("io.k8s.api.apps.v1.Deployment")
A = {"name": "a", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
B = {"name": "b", "image": "j"}
LIVE = {
    "metadata": {"name": "s", "labels": {"a": "b"}, "finalizers": ["a.b/c", "a.b/d"]},
    "spec": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
        "template": {
            "spec": {
                "containers": [A, B],
                "tolerations": [{"key": "x", "operator": "Exists"}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }
        },
    },
}


def merged(patch):
    return strategic_merge(LIVE, patch, DEPLOYMENT)


def pod(**fields):
    return {"spec": {"template": {"spec": fields}}}


def containers(*items, **beside):
    found = merged(pod(containers=list(items), **beside))["spec"]["template"]["spec"]["containers"]
    return [(c["name"], c.get("image"), [e["name"] for e in c.get("env", [])]) for c in found]


IS_A, IS_B = ("a", "i", ["A", "B"]), ("b", "j", [])

CONTAINERS = {
    "new_comes_first": ([{"name": "c", "image": "z"}], [("c", "z", []), IS_A, IS_B]),
    "known_stays_in_place": ([{"name": "b", "image": "z"}], [IS_A, ("b", "z", [])]),
    "deleted": ([{"name": "b", "$patch": "delete"}], [IS_A]),
    "replaced": ([{"$patch": "replace"}, {"name": "q", "image": "z"}], [("q", "z", [])]),
    "null_deletes": ([{"name": "a", "image": None}], [("a", None, ["A", "B"]), IS_B]),
    "inner_list": (
        [{"name": "a", "env": [{"name": "B", "$patch": "delete"}, {"name": "C", "value": "3"}]}],
        [("a", "i", ["C", "A"]), IS_B],
    ),
    "inner_order_with_new": (
        [
            {
                "name": "a",
                "$setElementOrder/env": [{"name": "C"}, {"name": "B"}, {"name": "A"}],
                "env": [{"name": "C", "value": "3"}],
            }
        ],
        [("a", "i", ["C", "B", "A"]), IS_B],
    ),
    "nothing": ([], [IS_A, IS_B]),
}


@pytest.mark.parametrize(("items", "expected"), CONTAINERS.values(), ids=CONTAINERS.keys())
def test_lists_with_a_merge_key(items, expected):
    assert containers(*items) == expected


def test_the_order_is_as_the_patch_wants_it():
    order = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    assert containers({"name": "b", "image": "z"}, **order) == [("b", "z", []), IS_A]


FINALIZERS = {
    "deleted": ({"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}, ["a.b/d"]),
    "deleted_and_added": (
        {"$deleteFromPrimitiveList/finalizers": ["a.b/c"], "finalizers": ["a.b/e"]},
        ["a.b/e", "a.b/d"],
    ),
    "deletion_that_is_no_list": (
        {"$deleteFromPrimitiveList/finalizers": "a.b/c"},
        ["a.b/c", "a.b/d"],
    ),
    "there_already": ({"finalizers": ["a.b/d"]}, ["a.b/c", "a.b/d"]),
    "repeats": ({"finalizers": ["a.b/z", "a.b/d", "a.b/d"]}, ["a.b/z", "a.b/c", "a.b/d"]),
    "empty": ({"finalizers": []}, ["a.b/c", "a.b/d"]),
    "null": ({"finalizers": None}, None),
    "ordered": ({"$setElementOrder/finalizers": ["a.b/d", "a.b/c"]}, ["a.b/d", "a.b/c"]),
}


@pytest.mark.parametrize(("metadata", "expected"), FINALIZERS.values(), ids=FINALIZERS.keys())
def test_lists_of_texts(metadata, expected):
    assert merged({"metadata": metadata})["metadata"].get("finalizers") == expected


STRATEGY = {
    "merged": ({"type": "Recreate"}, {**LIVE["spec"]["strategy"], "type": "Recreate"}),
    "retained": ({"$retainKeys": ["type"], "type": "Recreate"}, {"type": "Recreate"}),
    "replaced": ({"$patch": "replace", "type": "Recreate"}, {"type": "Recreate"}),
    "deleted": ({"$patch": "delete"}, {}),
}


@pytest.mark.parametrize(("strategy", "expected"), STRATEGY.values(), ids=STRATEGY.keys())
def test_objects_with_directives(strategy, expected):
    assert merged({"spec": {"strategy": strategy}})["spec"]["strategy"] == expected


def test_lists_without_strategy_are_replaced():
    tolerations = [{"key": "y", "operator": "Exists"}]
    found = merged(pod(tolerations=tolerations))["spec"]["template"]["spec"]
    assert found["tolerations"] == tolerations


def test_a_union_changes_its_member_by_retain_keys():
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    found = merged(pod(volumes=[volume]))["spec"]["template"]["spec"]
    assert found["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_what_is_new_comes_without_nulls_and_deleted_objects():
    affinity = {"nodeAffinity": None, "podAffinity": {"x": None}, "gone": {"$patch": "delete"}}
    found = merged(pod(affinity=affinity, dnsConfig={"$patch": "delete"}))
    assert found["spec"]["template"]["spec"]["affinity"] == {"podAffinity": {}}
    assert "dnsConfig" not in found["spec"]["template"]["spec"]


RETAIN = "invalid patch format of retainKeys"
REFUSED = {
    "no_object": ([1], 400, "json: cannot unmarshal array into Go value of type map[string]inter"),
    "no_key": (
        pod(containers=[{"image": "z"}]),
        500,
        "an item of a list does not contain declared merge key: name",
    ),
    "unknown_in_a_list": (
        pod(containers=[{"name": "q", "$patch": "bogus"}]),
        500,
        "unknown patch type: bogus",
    ),
    "retains_text": ({"spec": {"strategy": {"$retainKeys": "type"}}}, 400, RETAIN),
}


@pytest.mark.parametrize(("patch", "code", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(patch, code, message):
    with pytest.raises(ApiError) as refused:
        merged(patch)
    assert refused.value.code == code
    assert refused.value.message.startswith(message)
