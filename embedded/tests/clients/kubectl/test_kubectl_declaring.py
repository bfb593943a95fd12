"""kubectl apply, create, replace, diff, edit and patch."""

import json

import pytest

from embedded.tests.clients.running import (
    WAITS,
    as_yaml,
    config_map,
    deployment,
    job,
    pod,
    pod_group,
    train,
)

WRONG_POD = """
apiVersion: v1
kind: Pod
metadata: {name: wrong}
spec:
  contaners: []
  containers: [{name: main, image: busybox, imagge: x}]
"""
INVALID_POD = """
apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec:
  restartPolicy: Sometimes
  containers:
  - {name: main, image: x, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}
  - {name: main}
"""


def test_apply_creates_then_changes_then_finds_nothing_to_do(kubectl):
    several = [config_map(one="1", two="2"), deployment(), job()]
    text = as_yaml(*several)
    assert kubectl("apply", "-f", "-", manifest=text).splitlines() == [
        "configmap/settings created",
        "deployment.apps/web created",
        "job.batch/work created",
    ]
    again = kubectl("apply", "-f", "-", manifest=text)
    assert [line.split()[-1] for line in again.splitlines()] == ["unchanged"] * 3
    del several[0]["data"]["two"]
    changed = kubectl("apply", "-f", "-", manifest=as_yaml(*several))
    assert changed.splitlines()[0] == "configmap/settings configured"
    assert json.loads(kubectl("get", "cm", "settings", "-o", "json"))["data"] == {"one": "1"}


def test_apply_prunes_what_left_the_files(kubectl):
    first, second = config_map("first"), config_map("second")
    for one in (first, second):
        one["metadata"]["labels"] = {"set": "a"}
    kubectl("apply", "-f", "-", manifest=as_yaml(first, second))
    pruned = ("--prune", "-l", "set=a", "--prune-allowlist=core/v1/ConfigMap")
    said = kubectl("apply", *pruned, "-f", "-", manifest=as_yaml(first))
    assert said.splitlines()[-1] == "configmap/second pruned"
    assert kubectl("get", "cm", "-l", "set=a", "-o", "name") == "configmap/first"


def test_server_side_apply_merges_and_the_last_writer_counts(kubectl):
    web = deployment()
    apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    assert kubectl(*apply, manifest=as_yaml(web)) == "deployment.apps/web serverside-applied"
    web["spec"]["replicas"] = 3
    kubectl(*apply, "--field-manager=other", manifest=as_yaml(web))
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "3"


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client side", "server side"])
def test_a_dry_run_on_the_server_answers_and_keeps_nothing(kubectl, how):
    shown = kubectl(
        "apply", *how, "--dry-run=server", "-o", "json", "-f", "-", manifest=as_yaml(pod())
    )
    assert json.loads(shown)["spec"]["schedulerName"] == "default-scheduler"
    assert kubectl.refused("get", "pod", "solo").endswith('pods "solo" not found')


def test_create_refuses_what_is_there_and_replace_what_may_not_change(kubectl):
    kubectl("create", "-f", "-", manifest=as_yaml(pod(), config_map(a="1")))
    said = kubectl.refused("create", "-f", "-", manifest=as_yaml(pod()))
    assert "(AlreadyExists)" in said
    kubectl("replace", "-f", "-", manifest=as_yaml(config_map(b="2")))
    assert json.loads(kubectl("get", "cm", "settings", "-o", "json"))["data"] == {"b": "2"}
    said = kubectl.refused("replace", "-f", "-", manifest=as_yaml(pod()))
    assert "pod updates may not change fields other than" in said
    forced = ("replace", "--force", "--grace-period=0", "-f", "-")
    assert "replaced" in kubectl(*forced, manifest=as_yaml(pod()))


def test_unknown_fields_are_refused_unless_one_says_warn_or_ignore(kubectl):
    said = kubectl.refused("create", "-f", "-", manifest=WRONG_POD)
    assert 'unknown field "spec.containers[0].imagge", unknown field "spec.contaners"' in said
    warned = kubectl.run("create", "--validate=warn", "-f", "-", manifest=WRONG_POD)
    assert warned.code == 0
    assert 'Warning: unknown field "spec.contaners"' in warned.err
    kubectl("delete", "pod", "wrong", "--now")
    ignored = kubectl.run("create", "--validate=false", "-f", "-", manifest=WRONG_POD)
    assert (ignored.code, ignored.err) == (0, "")


def test_every_invalid_field_is_named_in_one_answer(kubectl):
    said = kubectl.refused("create", "-f", "-", manifest=INVALID_POD)
    for field in ("metadata.name", "spec.restartPolicy", "spec.containers[1].name"):
        assert f"* {field}: " in said
    assert "must be less than or equal to cpu limit of 1" in said


def test_custom_resources_follow_the_schema_of_their_definition(kubectl):
    kubectl("apply", "-f", "-", manifest=as_yaml(train(), pod_group()))
    assert kubectl("get", "train", "express", "-o", "jsonpath={.spec.line}") == "red"
    said = kubectl.refused("apply", "-f", "-", manifest=as_yaml(train(cars=40)))
    assert "spec.cars: Invalid value: 40: spec.cars " in said
    unknown = train()
    unknown["spec"]["wheels"] = 3
    said = kubectl.refused("apply", "-f", "-", manifest=as_yaml(unknown))
    assert 'strict decoding error: unknown field "spec.wheels"' in said


def test_a_definition_is_served_as_soon_as_it_is_established_and_no_longer_than_it_lives(kubectl):
    crd = json.loads(kubectl("get", "crd", "trains.rail.example.com", "-o", "json"))
    text = json.dumps(
        {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "spec": crd["spec"]}
        | {"metadata": {"name": "ferries.sea.example.com"}}
    )
    text = text.replace("rail.example", "sea.example").replace('"tr"', '"fe"')
    text = text.replace("trains", "ferries").replace("Train", "Ferry").replace('"train"', '"ferry"')
    kubectl("apply", "-f", "-", manifest=text)
    kubectl("wait", "--for=condition=Established", "crd/ferries.sea.example.com", WAITS)
    ferry = {**train("one"), "apiVersion": "sea.example.com/v1", "kind": "Ferry"}
    kubectl("apply", "-f", "-", manifest=as_yaml(ferry))
    assert kubectl("get", "fe", "-o", "name") == "ferry.sea.example.com/one"
    kubectl("delete", "crd", "ferries.sea.example.com")
    assert "(NotFound)" in kubectl.refused("get", "ferries.v1.sea.example.com")


@pytest.mark.parametrize(
    ("type_", "patch"),
    [
        (
            "strategic",
            '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}',
        ),
        ("merge", '{"spec":{"replicas":5}}'),
        ("json", '[{"op":"replace","path":"/spec/replicas","value":5}]'),
    ],
)
def test_patch_of_each_type(kubectl, type_, patch):
    kubectl("apply", "-f", "-", manifest=as_yaml(deployment()))
    assert kubectl("patch", "deployment", "web", "--type", type_, "-p", patch).endswith("patched")
    spec = json.loads(kubectl("get", "deployment", "web", "-o", "json"))["spec"]
    names = [one["name"] for one in spec["template"]["spec"]["containers"]]
    assert (spec["replicas"], sorted(names)) in [(5, ["main"]), (2, ["main", "side"])]
    again = kubectl("patch", "deployment", "web", "--type", type_, "-p", patch)
    assert again.endswith("patched (no change)")


def test_patches_that_cannot_be_are_refused(kubectl):
    kubectl("apply", "-f", "-", manifest=as_yaml(deployment(), train()))
    patch = ("patch", "deployment", "web")
    said = kubectl.refused(*patch, "-p", '{"spec":{"replicas":"x"}}')
    assert said.startswith("The request is invalid: patch: Invalid value")
    said = kubectl.refused(
        *patch, "--type=json", "-p", '[{"op":"test","path":"/spec/replicas","value":9}]'
    )
    assert said.startswith("The request is invalid")
    said = kubectl.refused(*patch, "-p", "{spec")
    assert "(BadRequest)" in said or "unable to parse" in said
    said = kubectl.refused("patch", "train", "express", "-p", '{"spec":{"cars":8}}')
    assert "strategic-merge-patch+json is not supported by rail.example.com/v1" in said
    scaled = ("--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":3}}')
    assert kubectl(*patch, *scaled) == "scale.autoscaling/web patched"
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "3"


def test_edit_saves_what_the_editor_wrote_and_refuses_what_is_invalid(kubectl, tmp_path):
    def editor(expression: str) -> str:
        path = tmp_path / "editor"
        path.write_text(f'#!/bin/sh\nsed -i "{expression}" "$1"\n')
        path.chmod(0o755)
        return str(path)

    kubectl("apply", "-f", "-", manifest=as_yaml(deployment()))
    edit = ("edit", "deployment", "web")
    assert kubectl(*edit, KUBE_EDITOR=editor("s/replicas: 2/replicas: 3/")).endswith("edited")
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    assert "no changes made" in kubectl.run(*edit, KUBE_EDITOR="true").err
    said = kubectl.refused(
        *edit, KUBE_EDITOR=editor("s/replicas: 3/replicas: nine/"), TMPDIR=str(tmp_path)
    )
    assert 'deployments.apps "web" is invalid' in said


def test_diff_shows_what_apply_would_change(kubectl):
    web = deployment()
    kubectl("apply", "-f", "-", manifest=as_yaml(web))
    same = kubectl.run("diff", "-f", "-", manifest=as_yaml(web))
    assert (same.code, same.out) == (0, "")
    web["spec"]["replicas"] = 7
    other = kubectl.run("diff", "-f", "-", manifest=as_yaml(web))
    assert other.code == 1
    assert "-  replicas: 2\n+  replicas: 7\n" in other.out
