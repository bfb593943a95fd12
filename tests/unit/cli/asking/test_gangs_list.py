"""Goal: ``quorate gangs`` and ``why`` take what kubectl's users type, and answer as kubectl does.

Method: the command line in this process, against a server that answers by path over real HTTP.
"""

import json

import pytest
import yaml

from quorate.cli.asking.selection import SelectionError, in_order, parse_selector
from quorate.cli.commands.gangs import _Stream
from quorate.cli.show.gang_data import _camel
from quorate.cli.show.gang_table import GangTable
from quorate.core.model.reasons import ClosedNodes
from tests.paths import ROOT
from tests.unit.cli.api_server import (
    PODS,
    X_GROUPS,
    group,
    kubeconfig,
    listing,
    pod,
    serving,
    small_cluster,
)
from tools.testing import call


def ended(name, group_name, phase):
    return pod(name, group_name, node="n1", cpu="1m", status={"phase": phase})


def made_by(kind, name, made):
    owner = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "o", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def labelled(made, **labels):
    made["metadata"]["labels"] |= labels
    return made


def busy_cluster():
    """The small cluster, and gangs that ended, two without their objects, one of a job."""
    server = small_cluster()
    pods = json.loads(json.dumps(server.answers[PODS][1]["items"]))
    pods += [ended(f"ok-{n}", "ok", "Succeeded") for n in range(2)]
    pods += [ended("bad-0", "bad", "Succeeded"), ended("bad-1", "bad", "Failed")]
    pods += [ended("gone-0", "gone", "Succeeded")]
    pods += [labelled(pod(f"lost-{n}", "lost"), app="lost") for n in range(4)]
    pods += [made_by("Job", "nightly", pod("nightly-0", "some-group", node="n1", cpu="1m"))]
    groups = server.answers[X_GROUPS][1]["items"]
    groups += [group("ok", 2), group("bad", 2), group("some-group", 1)]
    server.answers |= {PODS: listing(*pods), X_GROUPS: listing(*groups)}
    return server.tell()


@pytest.fixture(scope="module")
def cluster():
    with serving(busy_cluster()) as server:
        yield server


@pytest.fixture(autouse=True)
def terminal_of_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def rows_of(said):
    return {line.split()[0]: line.split()[1:] for line in said[1].splitlines()[1:]}


def names_of(said):
    return [one["metadata"]["name"] for one in json.loads(said[1])["items"]]


# Tables


def test_no_row_wraps_in_a_terminal_of_80_columns(quorate):
    """One gang took ten lines at 80 columns, because its sentence was wrapped."""
    _, out, _ = quorate("gangs")
    assert len(out.splitlines()) == 1 + len(names_of(quorate("gangs", "-o", "json")))
    assert max(map(len, out.splitlines())) < 80
    _, wide, _ = quorate("gangs", "-A", "-o", "wide")
    (train,) = [line for line in wide.splitlines() if " train " in line]
    assert "4 members must start together and 0 fit: it can never start here" in train


def test_members_are_those_with_a_node_of_all_that_exist_and_min_stands_apart(quorate):
    """15/8 read as 15 of 8, and 0/1 was said of four pods without their PodGroup."""
    rows = rows_of(quorate("gangs"))
    assert rows["train"][1:3] == ["0/4", "4"]
    assert rows["lost"][1:3] == ["0/4", "?"]
    (lost,) = json.loads(quorate("gangs", "lost", "-o", "json")[1])["items"]
    assert lost["members"]["min"] is None


def test_ended_gangs_are_finished_or_failed_and_come_last(quorate):
    """Gangs of jobs that had succeeded were listed as started, like those that run."""
    said = quorate("gangs")
    rows = rows_of(said)
    assert (rows["ok"][0], rows["bad"][0], rows["done"][0]) == ("Finished", "Failed", "Started")
    assert set(list(rows)[-3:]) == {"ok", "bad", "gone"}
    title, message = quorate("why", "bad")[1].splitlines()[:2]
    assert title.endswith(": Failed")
    assert message == "  all members have ended: 1 succeeded and 1 failed"


def test_an_ended_gang_waits_for_nothing(quorate):
    """Of a job whose operator had deleted its PodGroup it said Finished, PodGroupNotFound."""
    row = rows_of(quorate("gangs"))["gone"]
    assert (row[0], row[-1]) == ("Finished", "-")
    title = quorate("why", "gone")[1].splitlines()[0]
    assert title.endswith(": Finished")


def test_another_place_in_line_alone_is_no_news(quorate, capsys):
    """With -w each start would print every gang that waits behind it."""
    train = json.loads(quorate("why", "train", "-o", "json")[1])
    assert train["line"]["place"] == 2
    moved = train | {"line": train["line"] | {"place": 1}}
    table = GangTable(with_namespaces=False, wide=False)
    for show in (_Stream("name").show, lambda objects: table.show(objects, 0.0)):
        show([train])
        assert "train" in capsys.readouterr().out
        show([moved])
        assert capsys.readouterr().out == ""


# Which gangs, and in which order


def test_gangs_are_chosen_by_name(quorate):
    """``gangs NAME`` was an error; people type it as they do with kubectl."""
    assert set(rows_of(quorate("gangs", "train", "done"))) == {"train", "done"}
    code, out, err = quorate("gangs", "train", "nobody")
    assert (code, set(rows_of((code, out)))) == (1, {"train"})
    assert err.startswith("Error: no gang, pod or workload of ours is named nobody in namespace")
    assert err.count("\n") == 1


def test_gangs_are_chosen_by_labels_of_their_pods(quorate):
    """There was no -l."""
    assert set(rows_of(quorate("gangs", "-l", "app=lost"))) == {"lost"}
    assert "lost" not in rows_of(quorate("gangs", "-l", "!app"))
    assert quorate("gangs", "-l", "app=none")[2] == (
        "No gangs that -l and --state select found in namespace team.\n"
    )


def test_gangs_are_chosen_by_state(quorate):
    """No filter hid finished gangs."""
    assert set(rows_of(quorate("gangs", "--state", "finished,failed"))) == {"ok", "bad", "gone"}
    chosen = rows_of(quorate("gangs", "--state", "Waiting", "--state", "started"))
    assert {row[0] for row in chosen.values()} == {"Waiting", "Started"}


def test_gangs_are_sorted_by_a_word_or_by_a_path(quorate):
    """There was no --sort-by."""
    by_min = names_of(quorate("gangs", "--sort-by", "min", "-o", "json"))
    assert by_min.index("done") < by_min.index("ok") < by_min.index("train")
    assert by_min[-1] == "lost"  # nobody knows its min
    assert names_of(quorate("gangs", "--sort-by", "{.metadata.name}", "-o", "json")) == sorted(
        by_min
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--state", "done"], "'done' is no state: choose among waiting, starting, started, "),
        (["--sort-by", "size"], "'size' is neither one of namespace, name, age, "),
        (["--sort-by", ".metadata.size"], "no gang has that field (see -o json)"),
        (["-l", "a=b=c"], "is no label selector: write key=value, "),
        (["-w", "-o", "yaml"], "--watch prints a table, wide, name or json"),
        (["--request-timeout", "soon"], "'soon' is no time: write 30s, 2m, 1h, or 0 for ever"),
    ],
)
def test_a_choice_that_means_nothing_is_one_line_and_exit_code_2(quorate, args, said):
    code, out, err = quorate("gangs", *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("Error: ")
    assert said in err


@pytest.mark.parametrize(
    ("text", "labels", "holds"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b,c!=d", {"a": "b"}, True),
        ("c!=d", {"c": "d"}, False),
        ("a in (x, y),!z", {"a": "y"}, True),
        ("a notin (x,y)", {"a": "y"}, False),
        ("example.com/a", {"example.com/a": ""}, True),
        ("!a", {"a": "b"}, False),
    ],
)
def test_selectors_mean_what_they_mean_to_kubectl(text, labels, holds):
    assert all(one.holds(labels) for one in parse_selector(text)) is holds


@pytest.mark.parametrize("text", ["", ",", "a,", "a=(b)", "a in b", "a in (b", "=b", "a in (b))"])
def test_selectors_that_are_none_are_refused(text):
    with pytest.raises(SelectionError):
        parse_selector(text)


def test_what_lacks_the_field_comes_last_whatever_the_order():
    made = [{"metadata": {"namespace": "", "name": str(n)}, "n": n} for n in (10, None, 9)]
    assert [one["n"] for one in in_order(made, ".n")] == [9, 10, None]


# Names


@pytest.mark.parametrize(
    ("typed", "gang"),
    [
        ("gang/train", "train"),
        ("podgroup.scheduling.x-k8s.io/train", "train"),
        ("pg/train", "train"),
        ("pod/train-2", "train"),
        ("po/alone", "alone"),
        ("job/nightly", "some-group"),
        ("job.batch/nightly", "some-group"),
        ("Jobs/nightly", "some-group"),
        ("vcjob/nightly", "some-group"),
        ("vcjobs/nightly", "some-group"),
        ("vj/nightly", "some-group"),
        ("nightly", "some-group"),
        ("team/train", "train"),
    ],
)
def test_why_takes_a_kind_a_namespace_or_neither_before_the_name(quorate, typed, gang):
    """``why pod/NAME`` looked for NAME in namespace pod; no workload was found."""
    code, out, err = quorate("why", typed, "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["metadata"]["name"] == gang


def test_why_takes_several_names_and_says_which_are_missing(quorate):
    """Two names were an error."""
    code, out, err = quorate("why", "train", "gang/alone", "pod/train", "job/x")
    assert code == 1
    assert out.count("Gang team/train") == 1
    assert [line.partition(" in ")[0] for line in err.splitlines()] == [
        "Error: no gang is named alone",
        "Error: no pod of ours is named train",
        "Error: no job with pods of ours is named x",
    ]


def test_names_are_printed_so_that_why_takes_them(quorate):
    """There was no -o name."""
    code, out, _ = quorate("gangs", "--pods", "-o", "name")
    names = out.splitlines()
    assert "podgroup.scheduling.x-k8s.io/train" in names
    assert {"gang/lost", "pod/alone"} <= set(names)
    assert quorate("why", *names)[0] == code == 0


# Data


def test_data_has_api_version_and_kind_and_keys_as_kubernetes_writes_them(quorate):
    """There was no kind, ``ruled_out`` beside ``schedulerLeads``, a list of one, "None"."""
    one = json.loads(quorate("why", "train", "-o", "json")[1])
    assert (one["apiVersion"], one["kind"]) == ("quorate.dev/v1alpha1", "Gang")
    assert one["blockers"][0]["ruledOut"] == [{"message": "Insufficient cpu", "nodes": 2}]
    assert json.loads(quorate("why", "done", "-o", "json")[1])["reason"] == ""
    several = json.loads(quorate("why", "train", "done", "-o", "json")[1])
    assert (several["kind"], len(several["items"])) == ("GangList", 2)
    assert not [key for key in _keys(several) if "_" in key]


def test_the_page_on_json_names_every_field_and_no_other(quorate):
    """There was no schema, and no promise of stability."""
    page = (ROOT / "docs/users/json.md").read_text()
    described = yaml.safe_load(page.partition("```yaml gang\n")[2].partition("```")[0])
    several = json.loads(quorate("why", "train", "nightly", "-o", "json")[1])["items"]
    (closed,) = described["blockers"][0]["closed"]
    assert closed.keys() == _camel(ClosedNodes("in triage", 1)).keys()
    described["blockers"][0]["closed"] = several[0]["blockers"][0]["closed"]
    assert _keys(described) == _keys(several)


def _keys(value):
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()


# Time


def test_an_api_server_that_accepts_and_never_answers_is_told_within_the_timeout(tmp_path, capsys):
    """``gangs`` was silent for more than a minute; there was no --request-timeout."""
    server = small_cluster()
    server.answer_never = True
    with serving(server):
        config = kubeconfig(tmp_path, server.url)
        for words in (["gangs"], ["why", "train"]):
            code = call(*words, "--kubeconfig", config, "--request-timeout", "300ms")
            out, err = capsys.readouterr()
            assert (code, out) == (2, "")
            assert err == (
                "Error: the API server did not answer within 0.3 s. Check --kubeconfig and "
                "--context, or give it more time with --request-timeout.\n"
            )
