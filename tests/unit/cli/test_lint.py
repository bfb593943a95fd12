"""Goal: ``quorate lint`` is fit for CI: exit codes, forms, standard input, shapes."""

import io
import json
from pathlib import Path

import pytest
import yaml

from quorate.lint.rules import NAMES
from tests.unit.lint.operators import train_job, worker_set
from tests.unit.lint.world import group, job, labelled
from tools.testing import call

ROOT = Path(__file__).resolve().parents[3]
SHAPE = """\
about: two nodes
pools:
- name: small
  count: 2
  capacity: {cpu: 4, memory: 16Gi, pods: 10}
"""


@pytest.fixture
def lint(tmp_path, capsys, monkeypatch):
    """Write objects to ``f.yaml``, lint it in its folder, return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(objects, *args):
        Path("f.yaml").write_text(yaml.safe_dump_all(objects, sort_keys=False))
        code = call("lint", *(args or ["f.yaml"]))
        return code, *capsys.readouterr()

    return run


GOOD = [group(2), job(2)]
BAD = [group(3), job(2)]
DOUBTFUL = [group(2)]


def test_exit_codes(lint):
    assert lint(GOOD)[0] == 0
    assert lint(BAD)[0] == 1
    assert lint(DOUBTFUL)[0] == 0
    assert lint(DOUBTFUL, "f.yaml", "--strict")[0] == 1
    assert lint(GOOD, "f.yaml", "--strict")[0] == 0
    assert lint(BAD, "f.yaml", "missing.yaml")[0] == 2


def test_the_table_has_place_rule_sentence_and_remedy(lint):
    code, out, err = lint(BAD)
    assert (code, err) == (1, "")
    assert out == (
        "f.yaml\n"
        "  line 6: error min-above-replicas: PodGroup g, spec.minMember\n"
        "    PodGroup g needs 3 members (spec.minMember), and Job j makes 2\n"
        "    hint: set parallelism and completions of Job j to 3, or lower minMember to 2; more "
        "members may come from elsewhere\n"
        "1 error, 0 warnings in 2 objects of 1 file\n"
    )


def test_where_all_is_well_it_says_what_it_understood(lint):
    """A line for each gang: name, min, pods, GPUs; and pods of no gang."""
    limits = {"nvidia.com/gpu": "8"}
    web = {**job(3, "web", labels={}, schedulerName="default-scheduler"), "kind": "Job"}
    made = [*[group(2), job(2, limits=limits)], worker_set(), train_job("elsewhere"), web]
    assert lint(made) == (
        0,
        "gang default/g: min 2, 2 pods, 16 GPUs, schedulerName quorate (Job j)\n"
        "gang default/w: min 4, 4 pods, 24 GPUs, schedulerName quorate, 2 of them "
        "(LeaderWorkerSet w; PodGroup by LeaderWorkerSet's controller, if its schedulerProvider "
        "is volcano)\n"
        "no gang: Job web: 3 pods, schedulerName default-scheduler\n"
        "not known: the pods of TrainJob w: its runtime elsewhere is in none of the files\n"
        "0 errors, 0 warnings in 5 objects of 1 file\n",
        "",
    )
    assert "gang default/g: min 3, 2 pods" not in lint(BAD)[1]
    assert "gang default/g: min 3, 2 pods" in lint(BAD, "f.yaml", "-o", "wide")[1]


def test_many_gangs_are_not_all_shown(lint):
    made = [job(1, f"j{number}", labels=labelled("1", f"g{number}")) for number in range(103)]
    lines = lint(made)[1].splitlines()
    assert len(lines) == 102
    assert lines[-2] == "... and 3 more; -o json has all"


def test_wide_says_what_the_rule_is_for(lint):
    out = lint(BAD, "f.yaml", "-o", "wide")[1]
    assert "    rule:   fewer pods than the gang needs (document 0)\n" in out


def test_data_has_all_that_a_program_needs(lint):
    """One object with apiVersion and kind; what was understood stands beside the findings."""
    made = [*BAD, job(1, "k", labels={})]
    found = json.loads(lint(made, "f.yaml", "-o", "json")[1])
    assert found == {
        "apiVersion": "quorate.dev/v1alpha1",
        "kind": "LintReport",
        "errors": 1,
        "warnings": 0,
        "files": 1,
        "objects": 3,
        "findings": [
            {
                "file": "f.yaml",
                "document": 0,
                "line": 6,
                "object": {"kind": "PodGroup", "namespace": "", "name": "g"},
                "path": "spec.minMember",
                "severity": "error",
                "rule": "min-above-replicas",
                "message": "PodGroup g needs 3 members (spec.minMember), and Job j makes 2",
                "hint": "set parallelism and completions of Job j to 3, or lower minMember to 2; "
                "more members may come from elsewhere",
            }
        ],
        "gangs": [
            {
                "namespace": "default",
                "name": "g",
                "api": "x-k8s",
                "gangs": 1,
                "min": 3,
                "pods": 2,
                "gpus": 0,
                "object": {"kind": "PodGroup", "namespace": "", "name": "g"},
                "madeBy": [{"kind": "Job", "namespace": "", "name": "j"}],
                "schedulerNames": ["quorate"],
                "operator": "",
                "queue": "",
            }
        ],
        "podsWithoutGang": [
            {
                "namespace": "default",
                "object": {"kind": "Job", "namespace": "", "name": "k"},
                "pods": 1,
                "gpus": 0,
                "schedulerNames": ["quorate"],
            }
        ],
        "notKnown": [],
        "unreadable": [],
        "skipped": [],
    }
    assert yaml.safe_load(lint(made, "f.yaml", "-o", "yaml")[1]) == found
    assert json.loads(lint(GOOD, "f.yaml", "-o", "json")[1])["findings"] == []


def test_the_docs_describe_the_report_as_it_is(lint):
    """Every field, and no other, is in docs/users/lint.md."""
    page = (ROOT / "docs" / "users" / "lint.md").read_text()
    described = yaml.safe_load(page.partition("```yaml report\n")[2].partition("```")[0])
    made = [*BAD, job(1, "k", labels={}), train_job("elsewhere")]
    assert shape_of(described) == shape_of(json.loads(lint(made, "f.yaml", "-o", "json")[1]))


def shape_of(value):
    """Return the names of fields, at all depths, without values; of a list its first item's."""
    if isinstance(value, dict):
        return {key: shape_of(below) for key, below in value.items()}
    return [shape_of(value[0])] if isinstance(value, list) and value else None


def test_standard_input(lint, monkeypatch):
    text = yaml.safe_dump_all(BAD, sort_keys=False)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, _ = lint(GOOD, "-")
    assert code == 1
    assert out.startswith("<stdin>\n  line 6: error min-above-replicas")


def test_folders_and_files_together(lint, tmp_path):
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "job.json").write_text(json.dumps(job(2)))
    (tmp_path / "pods" / "values.yaml").write_text("a: 1\n")
    code, out, err = lint([group(2)], "f.yaml", "pods")
    assert code == 0
    assert "0 errors, 0 warnings in 2 objects of 3 files" in out
    assert err == "Skipped: pods/values.yaml:1: document 0 has no kind: is it a manifest of " \
                  "Kubernetes?\n"  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", "f.yaml:"),
        ("a: {{ .Values.b }}", "helm template ... | quorate lint -"),
        ("a: 1", "f.yaml:1: document 0 has no kind"),
        ("[" * 100_000, "f.yaml:"),
        ("\x00", "f.yaml:1: control characters are not allowed"),
    ],
)
def test_unreadable_input_is_one_line_and_exit_code_2(capsys, tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    Path("f.yaml").write_text(text)
    assert call("lint", "f.yaml", "-o", "json") == 2
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["findings"], report["objects"]) == ([], 0)
    assert err == f"Error: {report['unreadable'][0]}\n"
    assert err.count("\n") == 1
    assert said in err


def test_an_empty_file_is_clean(lint):
    assert lint([]) == (0, "0 errors, 0 warnings in 0 objects of 1 file\n", "")


def test_text_of_a_file_is_never_read_as_markup(lint):
    made = job(2, labels={"a": "[bold]x[/bold]"})
    assert '"[bold]x[/bold]"' in lint([made])[1]


def test_options_reach_the_rules(lint):
    other = [group(2), job(2, schedulerName="mine")]
    assert "scheduler-unknown" in lint(other)[1]
    args = ("--scheduler-name", "mine", "--scheduler-name", "yours")
    clean = "\n0 errors, 0 warnings in 2 objects of 1 file\n"
    assert lint(other, "f.yaml", *args)[1].endswith(clean)
    assert lint(BAD, "f.yaml", "--ignore", "min-above-replicas")[0] == 0
    spread = [group(2, namespace="a"), job(2)]
    assert lint(spread, "f.yaml", "-n", "a")[1].endswith(clean)
    assert "error namespaces-differ" in lint(spread, "f.yaml", "-n", "b")[1]


def test_a_rule_that_does_not_exist_cannot_be_ignored(lint):
    code, _, err = lint(GOOD, "f.yaml", "--ignore", "min-above")
    assert code == 2
    assert err.startswith("Error: --ignore min-above: no such rule. The rules are ")
    assert NAMES[-1] in err


def test_a_shape_of_a_file(lint, tmp_path):
    (tmp_path / "shape.yaml").write_text(SHAPE)
    fits = [group(2), job(2, requests={"cpu": "4"})]
    assert lint(fits, "f.yaml", "--shape", "shape.yaml")[0] == 0
    too_many = [group(3), job(3, requests={"cpu": "4"})]
    code, out, _ = lint(too_many, "f.yaml", "--shape", "shape.yaml")
    assert code == 1
    assert "gang-above-shape" in out
    assert "3 members must start together and 2 fit" in out


def test_a_shape_by_name_and_one_that_is_none(lint):
    assert lint(GOOD, "f.yaml", "--shape", "small")[0] == 0
    code, out, err = lint(GOOD, "f.yaml", "--shape", "nothing")
    assert (code, out) == (2, "")
    assert err.startswith("Error: --shape nothing: ")
    assert err.count("\n") == 1


def test_the_examples_are_clean(capsys):
    folders = [str(ROOT / "examples"), str(ROOT / "tests" / "e2e" / "manifests")]
    assert call("lint", "--strict", *folders) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out
