"""Goal: files in, findings out: in order, silenced where asked, nothing passed over quietly."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from quorate.lint.check import Text, check
from quorate.lint.manifests import Options
from quorate.lint.reading import read
from quorate.lint.rules import NAMES
from tests.unit.lint.world import group, job, lint, lint_text, pod, rules

ROOT = Path(__file__).resolve().parents[3]
GOOD_FOLDERS = ("examples", "tests/e2e/manifests")
GOOD_FILES = [path for folder in GOOD_FOLDERS for path in sorted((ROOT / folder).glob("*.yaml"))]


def failing(name):
    other = job(2, name, labels={}, schedulerName="default-scheduler")
    return yaml.safe_dump_all([group(9, name), other, pod(name, labels={"a": 5})])


@pytest.mark.parametrize("path", GOOD_FILES, ids=lambda path: path.name)
def test_good_examples_are_clean(path):
    report = check([Text(path.name, path.read_text())], Options())
    assert report.findings == ()
    assert report.unreadable == report.skipped == ()
    assert report.objects


def test_there_are_good_examples():
    assert len(GOOD_FILES) >= 5


def test_coreweaves_documented_example_waits_as_it_is_written_and_lint_says_exactly_that():
    text = (ROOT / "examples" / "coreweave-podgroup.yaml").read_text()
    assert "# quorate lint: allow min-above-replicas\n" in text
    as_documented = text.replace("# quorate lint: allow min-above-replicas\n", "")
    assert rules(lint_text(as_documented)) == {"min-above-replicas"}
    assert rules(lint_text(as_documented.replace("replicas: 2", "replicas: 4"))) == set()


FROM_CLIENTS = """
# as training-operator, mpi-operator, KubeRay, spark-operator and Determined write them
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: mpi1}
spec: {minMember: 3, scheduleTimeoutSeconds: 0, minResources: {cpu: "5"}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: ray-rayjob1-pg}
spec: {minMember: 0, minResources: {}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: spark-pi-pg}
spec: {minMember: 1, queue: spark, minResources: {cpu: "33", memory: 132Gi}}
---
apiVersion: v1
kind: Pod
metadata:
  name: task
  labels:
    pod-group.scheduling.sigs.k8s.io/name: exp-1
    pod-group.scheduling.sigs.k8s.io/min-available: "0"
spec: {schedulerName: coscheduler, containers: [{name: c, image: c}]}
"""


def test_what_other_peoples_operators_write_is_no_error():
    report = lint_text(FROM_CLIENTS)
    assert report.errors == 0
    assert rules(report) == {"podgroup-without-pods", "min-not-positive", "min-available-invalid"}


def test_findings_come_by_file_and_line():
    texts = [Text("z.yaml", failing("z")), Text("a.yaml", failing("a"))]
    found = check(texts, Options()).findings
    assert [f.file for f in found] == ["z.yaml"] * 2 + ["a.yaml"] * 2
    lines = [f.line for f in found]
    assert lines[:2] == sorted(lines[:2])


def test_files_are_read_together():
    texts = [Text("a", yaml.safe_dump(group(2))), Text("b", yaml.safe_dump(job(2)))]
    assert check(texts, Options()).findings == ()


def test_rules_can_be_ignored_by_the_call_and_by_a_comment_of_the_document():
    bad = [group(3), job(2, schedulerName="default-scheduler")]
    assert rules(lint(*bad)) == {"min-above-replicas", "default-scheduler"}
    assert rules(lint(*bad, ignore=["min-above-replicas"])) == {"default-scheduler"}
    first, second = yaml.safe_dump(bad[0]), yaml.safe_dump(bad[1])
    comment = "# quorate lint: allow min-above-replicas, default-scheduler\n"
    assert rules(lint_text(f"{comment}{first}---\n{second}")) == {"default-scheduler"}
    assert rules(lint_text(f"{first}---\n{comment}{second}")) == {"min-above-replicas"}
    assert rules(lint_text(f"{comment}{first}---\n{comment}{second}")) == set()


def test_a_list_is_taken_apart_and_its_items_keep_their_lines():
    whole = {"apiVersion": "v1", "kind": "List", "items": [group(3), job(2)]}
    text = yaml.safe_dump(whole, sort_keys=False)
    (found,) = lint_text(text).findings
    assert found.rule == "min-above-replicas"
    assert text.splitlines()[found.line - 1].strip() == "minMember: 3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1", "has no kind: is it a manifest"),
        ("kind: Pod", "has no apiVersion"),
        ("kind: 5\napiVersion: v1", "has no kind"),
        ("- a\n- b", "is no object of Kubernetes"),
        ("just words", "is no object of Kubernetes"),
        ("apiVersion: v1\nkind: List\nitems: [5]", "has no object at items[0]"),
        ("apiVersion: v1\nkind: List\nitems: [{a: 1}]", "has no kind"),
    ],
)
def test_what_is_no_object_is_said_where_it_was_named_and_skipped_in_a_folder(text, words):
    report = check([Text("f", text, named=True)], Options())
    if words:
        assert len(report.unreadable) == 1
        assert words in report.unreadable[0]
        assert report.unreadable[0].startswith("f:")
        folder = check([Text("f", text, named=False)], Options())
        assert (folder.unreadable, folder.skipped) == ((), report.unreadable)


def test_a_helm_template_is_told_what_to_do():
    report = lint_text("a: {{ .Values.b }}\n")
    assert "helm template" in report.unreadable[0]


def test_one_bad_file_does_not_hide_the_findings_of_another():
    report = check([Text("bad", "a: ["), Text("f", failing("x"))], Options())
    assert len(report.unreadable) == 1
    assert report.errors


# Reading


def test_folders_are_read_recursively_and_in_order(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("z.yaml", "b/a.yml", "b/b.json", "b/c.txt", ".git/d.yaml"):
        (tmp_path / name).write_text("{}")
    texts, failed = read([str(tmp_path), str(tmp_path / "z.yaml")], lambda: sys.stdin.buffer)
    assert [Path(text.file).name for text in texts] == ["z.yaml", "a.yml", "b.json"]
    assert failed == []


def test_what_cannot_be_read_is_one_line_each(tmp_path):
    (tmp_path / "latin").write_bytes(b"a: \xe4")
    (tmp_path / "empty").mkdir()
    names = [str(tmp_path / name) for name in ("latin", "empty", "nothing")]
    texts, failed = read(names, lambda: sys.stdin.buffer)
    assert texts == []
    assert ["not UTF-8" in failed[0], "in this folder" in failed[1], "no such file" in failed[2]]
    assert [line.partition(":")[0] for line in failed] == names


def test_a_source_without_end_is_not_read_without_end():
    texts, failed = read(["/dev/zero"], lambda: sys.stdin.buffer)
    assert texts == []
    assert "larger than" in failed[0]


def test_the_documentation_names_every_rule():
    text = (ROOT / "docs" / "users" / "lint.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in text] == []


def test_lint_imports_nothing_of_the_cluster():
    code = "import sys, quorate.lint.check; print([m for m in ('aiohttp', 'typer', 'asyncio') " \
           "if m in sys.modules])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
