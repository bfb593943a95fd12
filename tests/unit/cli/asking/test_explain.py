"""Goal: ``why`` and ``gangs`` print what they saw, in every form, or one line when they cannot.

Method: the command line in this process, against a server that answers by path over real HTTP.
"""

import json
import socket

import pytest
import yaml

from pocketkube.server.http import prepare_certificates, tls_context
from quorate.shell.watch.objects import gang_kinds
from tests.unit.cli.api_server import (
    EVENTS,
    X_GROUPS,
    ApiServer,
    kubeconfig,
    serving,
    small_cluster,
    status,
)
from tools.testing import call


@pytest.fixture(scope="module")
def cluster():
    with serving(small_cluster()) as server:
        yield server


# What is printed


def test_the_namespace_is_that_of_the_context(quorate):
    code, out, err = quorate("gangs")
    assert (code, err) == (0, "")
    head, *rows = [line.split() for line in out.splitlines()]
    assert head == ["GANG", "STATE", "MEMBERS", "MIN", "GPUS", "PLACE", "AGE", "REASON"]
    assert [row[:4] for row in rows] == [
        ["done", "Started", "1/1", "1"],
        ["train", "Waiting", "0/4", "4"],
    ]
    assert rows[1][-1] == "NotEnoughRoom"


def test_another_namespace_all_namespaces_and_pods(quorate):
    def names(*args):
        code, out, _ = quorate("gangs", *args, "-o", "json")
        assert code == 0
        found = [one["metadata"] for one in json.loads(out)["items"]]
        return {(one["namespace"], one["name"]) for one in found}

    assert names() == {("team", "train"), ("team", "done")}
    assert names("-n", "other") == {("other", "far")}
    assert names("-A") == {("team", "train"), ("team", "done"), ("other", "far")}
    assert names("--pods") - names() == {("team", "alone")}


def test_gangs_wide_says_more_of_each(quorate):
    _, out, _ = quorate("gangs", "-o", "wide")
    head, *rows = out.splitlines()
    assert head.split()[8:] == ["API", "RUNNING", "PRIORITY", "SCHEDULER", "OWNER", "WHY"]
    assert rows[0].split()[8:13] == ["x-k8s", "1", "0", "quorate", "-"]
    assert rows[0].endswith("   the one member that exists has a node")


def test_json_and_yaml_hold_the_same(quorate):
    for words in (("gangs", "-A"), ("why", "train")):
        _, as_json, _ = quorate(*words, "-o", "json")
        _, as_yaml, _ = quorate(*words, "-o", "yaml")
        first = json.loads(as_json)
        for one in first.get("items", [first]):
            assert one["schedulerLeads"] is True
        assert yaml.safe_load(as_yaml) == first


def test_why_has_the_sentence_the_facts_and_the_remedy(quorate):
    code, out, err = quorate("why", "train")
    assert (code, err) == (0, "")
    lines = [line.strip() for line in out.splitlines()]
    assert lines[0] == (
        "Gang team/train (PodGroup, scheduling.x-k8s.io/v1alpha1): Waiting, NotEnoughRoom"
    )
    assert "4 members must start together and 1 fit" in lines[1]
    assert "members   4 needed, 4 exist, 0 bound, 0 running" in lines
    assert sum(line.startswith("hint      add nodes with ") for line in lines) == 1
    assert sum(" lacks " in line for line in lines) <= 1, "it was said twice"
    assert not any(line.startswith("pod  ") for line in lines)


def test_why_wide_lists_the_pods(quorate):
    _, out, _ = quorate("why", "done", "-o", "wide")
    assert "  pod       done-0: Running on n2 (quorate)\n" in out
    assert "  nodes     2 in the cluster\n" in quorate("why", "train", "-o", "wide")[1]


def test_a_pod_stands_for_its_gang_and_a_name_may_carry_its_namespace(quorate):
    plain = quorate("why", "train", "-o", "json")
    assert quorate("why", "train-2", "-o", "json") == plain
    assert quorate("why", "team/train", "-n", "other", "-o", "json") == plain
    assert quorate("why", "far", "-A")[1].startswith("Gang other/far")


def test_no_colours_where_nobody_sees_them_and_none_where_nobody_wants_them(quorate, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    assert "\x1b[" in quorate("gangs")[1]
    assert "\x1b[" in quorate("why", "train")[1]
    assert "\x1b[" not in quorate("gangs", "-o", "json")[1]
    assert "\x1b[" not in quorate("why", "train", "-o", "yaml")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in quorate("gangs")[1]
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b" not in quorate("gangs")[1]


# What is not there


def test_nothing_found(quorate):
    code, out, err = quorate("gangs", "-n", "empty")
    assert (code, out) == (0, "")
    assert err == "No gangs found in namespace empty; -A looks in all.\n"
    code, out, _ = quorate("gangs", "-n", "empty", "-o", "json")
    assert (code, json.loads(out)["items"]) == (0, [])
    code, out, err = quorate("why", "nobody")
    assert (code, out) == (1, "")
    assert err == (
        "Error: no gang, pod or workload of ours is named nobody in namespace team. "
        "See: quorate gangs -A --pods\n"
    )


def test_a_mistyped_name_and_one_of_another_namespace(quorate):
    assert "in namespace team; did you mean train? See:" in quorate("why", "trian")[2]
    assert "but there is one in namespace other (-n other)." in quorate("why", "far")[2]
    assert "in namespace team; did you mean gang/train? See:" in quorate("why", "job/train")[2]


@pytest.mark.parametrize("name", ["", "/", "/train", "team/"])
def test_what_is_no_name(quorate, name):
    code, _, err = quorate("why", name)
    assert code == 2
    assert "is no name: write NAME, NAMESPACE/NAME or KIND/NAME" in err


# Clusters that cannot be read: one line that says what and what to do


def failing(capsys, *args):
    assert call("gangs", *args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    return err


def answer_of(server, folder, capsys, **options):
    with serving(server):
        return failing(capsys, "--kubeconfig", kubeconfig(folder, server.url, **options))


def test_expired_credentials(tmp_path, capsys):
    server = ApiServer(all_others=status(401, "Unauthorized", "Unauthorized"))
    said = answer_of(server, tmp_path, capsys)
    assert "does not accept the kubeconfig's credentials (401 Unauthorized)" in said
    assert "Log in again" in said


def test_missing_permissions_name_what_is_needed(tmp_path, capsys):
    """They were told one after another, and the line asked for more than was needed."""
    server = small_cluster()
    for path in (X_GROUPS, EVENTS):
        server.answers[path] = status(403, "Forbidden", 'it is forbidden: User "me" cannot list')
    said = answer_of(server, tmp_path, capsys, namespace="team")
    assert said == (
        "Error: not permitted to list and watch events and podgroups.scheduling.x-k8s.io in "
        'namespace team: it is forbidden: User "me" cannot list. Have the ClusterRole view, or '
        "quorate-viewer, bound by a RoleBinding there.\n"
    )


def test_rights_in_one_namespace_are_enough_for_it(tmp_path, capsys):
    """Nodes were asked for, and sixteen kinds more, in all namespaces."""
    whole = small_cluster()
    paths = [*gang_kinds(frozenset(), "team"), "/api/v1/namespaces/team/events"]
    refusal = status(403, "Forbidden", "it is forbidden")
    server = ApiServer({path: whole.answer_at(path) for path in paths}, refusal)
    with serving(server):
        config = kubeconfig(tmp_path, server.url, namespace="team")
        for words in (("gangs",), ("why", "train"), ("why", "team/train", "-n", "other")):
            assert call(*words, "--kubeconfig", config) == 0
            out, err = capsys.readouterr()
            assert ("NotEnoughRoom" in out, err) == (True, "")
        assert call("why", "trian", "--kubeconfig", config) == 1
        assert "in namespace team; did you mean train?" in capsys.readouterr().err
        for words, kinds in ((("gangs", "-A"), "events, "), (("nodes",), "nodes, ")):
            assert call(*words, "--kubeconfig", config) == 2
            assert capsys.readouterr().err == (
                f"Error: not permitted to list and watch {kinds}podgroups.scheduling.k8s.io, "
                "podgroups.scheduling.sigs.k8s.io, podgroups.scheduling.volcano.sh, "
                "podgroups.scheduling.x-k8s.io and pods in the whole cluster: it is forbidden. "
                "Have the ClusterRole quorate-viewer bound by a ClusterRoleBinding"
                f"{', or look in one namespace: -n NAMESPACE' if kinds == 'events, ' else ''}.\n"
            )


def test_nobody_listens(tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"
        said = failing(capsys, "--kubeconfig", kubeconfig(tmp_path, url))
    assert f"cannot be reached: {url.removeprefix('https://')}: connection refused." in said
    assert "Check --kubeconfig and --context." in said


def test_no_such_host(tmp_path, capsys, monkeypatch):
    def unknown(*_asked, **_more):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    config = kubeconfig(tmp_path, "https://nowhere.invalid:6443")
    assert "cannot be reached: nowhere.invalid:6443" in failing(capsys, "--kubeconfig", config)


def test_a_certificate_of_an_unknown_authority(tmp_path, capsys):
    prepare_certificates(tmp_path)
    server = small_cluster()
    with serving(server, tls_context(tmp_path)):
        config = kubeconfig(tmp_path, server.url)
        said = failing(capsys, "--kubeconfig", config)
        assert "TLS with the API server failed: " in said
        assert "certificate-authority of the kubeconfig's cluster." in said
        trusting = {"certificate-authority": str(tmp_path / "ca.crt")}
        config = kubeconfig(tmp_path, server.url, **trusting)
        assert call("gangs", "--kubeconfig", config) == 0


def test_tls_where_the_server_speaks_plain_http(tmp_path, capsys):
    server = small_cluster()
    with serving(server):
        config = kubeconfig(tmp_path, server.url.replace("http:", "https:"))
        assert "TLS with the API server failed: " in failing(capsys, "--kubeconfig", config)


def test_a_server_that_is_no_kubernetes(tmp_path, capsys):
    server = ApiServer(all_others=(400, "<html>what?</html>"))
    said = answer_of(server, tmp_path, capsys)
    assert (
        "/api/v1/namespaces/default/pods cannot be listed: 400 Unknown: <html>what?</html>." in said
    )
    assert "Is this the API server of a Kubernetes cluster?" in said


def test_a_context_that_does_not_exist(tmp_path, capsys):
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")
    said = failing(capsys, "--kubeconfig", config, "--context", "ghost")
    assert "no context is named 'ghost'; choose one of main with --context" in said


def test_a_kubeconfig_without_a_current_context(tmp_path, capsys):
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")
    whole = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    del whole["current-context"]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(whole))
    said = failing(capsys, "--kubeconfig", config)
    assert "no context is current; choose one of main with --context" in said


def test_no_kubeconfig_at_all(tmp_path, capsys, monkeypatch):
    assert "no such kubeconfig; give its path" in failing(capsys, "--kubeconfig", "nothing")
    monkeypatch.setenv("HOME", str(tmp_path))
    said = failing(capsys)
    assert f"{tmp_path}/.kube/config: no such kubeconfig" in said


def test_a_configuration_that_cannot_be_used(tmp_path, capsys):
    path = tmp_path / "config.yaml"
    path.write_text("kind: Wrong\n")
    assert str(path) in failing(capsys, "--config", str(path))
