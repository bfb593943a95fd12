"""The docs are true: links resolve, the menu has every page, what the code has has its row."""

import ast
import json
import re
from pathlib import Path

import pytest
import typer.main
import yaml

from quorate.cli.main import app
from quorate.core.model.reasons import Reason
from quorate.lint.check import Text, check
from quorate.lint.finding import Severity
from quorate.lint.manifests import Options
from quorate.shell.configuration import config
from tests.paths import ROOT, tracked
from tools import house
from tools.controlplane.versions import OPERATORS
from tools.site.hooks import PAGES

DOCS = ROOT / "docs"
TEXTS = {path: path.read_text() for path in tracked("*.md")}
FENCE = re.compile(r"(?ms)^ *```.*?^ *```$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
README_LINES_MAX = 120


def prose(path: Path) -> str:
    return FENCE.sub("", TEXTS[path])


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    found: set[str] = set()
    for heading in re.findall(r"(?m)^#+ +(.+?)\s*$", prose(path)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found


def page(name: str) -> str:
    return TEXTS[DOCS / name]


def rows(name: str) -> set[str]:
    """Return what stands in backquotes in the first column of a page's tables."""
    lines = re.findall(r"(?m)^\| *([^|\n]+?) *\|", page(name))
    return {word for line in lines for word in re.findall(r"`([^`]+)`", line)}


def headings(name: str) -> set[str]:
    return set(re.findall(r"(?m)^#+ +(.+?)\s*$", prose(DOCS / name)))


def test_relative_links_lead_somewhere():
    dead = []
    for source in TEXTS:
        for target in LINK.findall(prose(source)):
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, anchor = target.partition("#")
            path = (source.parent / name).resolve() if name else source
            if not path.exists() or (anchor and anchor not in anchors(path)):
                dead.append(f"{source.relative_to(ROOT)}: {target}")
    assert dead == []


def test_pages_that_source_names_exist():
    files = tracked("*.py", "*.md", "*.yaml", "*.toml", "Makefile")
    dead = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in re.findall(r"(?<![\w./-])docs/[\w/.-]*\.\w+", path.read_text())
        if not (ROOT / name).is_file()
    ]
    assert dead == []


WORD = re.compile(r"[A-Za-z_]\w*")
OF_OTHERS = {
    # Kubernetes' and its Go code's.
    *("syncJob", "Parse", "metav1", "CreateOptions", "RequestInfo", "MilliValue", "httpproxy"),
    "leaderelection",
    # Python's, Slurm's, and the beginning of a long word.
    *("finally", "preexec_fn", "sinfo", "sand"),
}
"""Names in docstrings that are no names of ours."""


def docstrings(tree: ast.Module) -> list[ast.Constant]:
    """Return the strings that stand for themselves: under what they describe, or beside a name."""
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def names_in(tree: ast.Module) -> set[str]:
    """Return the names that code has, and the words of its strings; docstrings have none."""
    names: set[str] = set()
    docs = set(map(id, docstrings(tree)))
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "module", "asname"):
            names.update(WORD.findall(getattr(node, field, None) or ""))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            names.update(WORD.findall(node.value))
    return names


def test_names_in_double_backquotes_are_names_of_the_code():
    """A docstring that names what is gone sends its reader nowhere."""
    trees = {path: house.tree_of(path) for path in tracked("*.py")}
    known = OF_OTHERS.union(*map(names_in, trees.values()))
    known.update(WORD.findall(" ".join(str(path.relative_to(ROOT)) for path in trees)))
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for path, tree in trees.items()
        for text in docstrings(tree)
        for name in re.findall(r"``([\w.]+(?:=\w+)?)(?:\(\))?``", text.value)
        if not name.endswith(".go")
    }
    assert [(path, name) for path, name in sorted(named) if set(WORD.findall(name)) - known] == []
    used = {word for _, name in named for word in WORD.findall(name)}
    assert OF_OTHERS - used == set(), "nobody names these"


def test_paths_in_backquotes_exist():
    """They count from the repository's top, from the page, or from quorate's package."""
    rooms = "tests|src|tools|bench|examples|embedded|docs|core|shell|dialects|cli"
    top = rf"`((?:{rooms})/[\w./-]*)(?=`|::)"
    dead = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in TEXTS
        if page.name != "CHANGELOG.md" and not page.name.startswith("add-")
        for name in re.findall(top, prose(page))
        if not any((start / name).exists() for start in (ROOT, page.parent, ROOT / "src/quorate"))
    ]
    assert dead == []


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, in which a Python function is named."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def menu(entries: list) -> list[str]:
    found = []
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            found += menu(value) if isinstance(value, list) else [value]
    return found


def test_every_page_is_in_the_menu_and_nothing_else():
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)
    pages = {path.relative_to(DOCS).as_posix() for path in TEXTS if path.is_relative_to(DOCS)}
    named = menu(settings["nav"])
    patterns = [one for one in named if "*" in one]
    by_pattern = {one for one in pages if any(Path(one).match(pattern) for pattern in patterns)}
    expected = pages - by_pattern | set(PAGES.values()) | set(patterns)
    assert sorted(named) == sorted(expected)


def test_lists_are_lists_on_the_site_too():
    """Python-Markdown wants a blank line before a list, and blocks in it indented by four."""
    wrong = []
    for path, text in TEXTS.items():
        wrong += [(path, line) for line in re.findall(r"(?m)^ {1,3}```.*$", text)]
        start = r"(?m)^(?![-*\d\s|#]).+\n(?:- |\d+\. ).*$"
        wrong += [(path, found) for found in re.findall(start, prose(path))]
    assert wrong == []


def test_the_readme_is_short():
    assert len(TEXTS[ROOT / "README.md"].splitlines()) <= README_LINES_MAX


def test_every_field_of_the_configuration_has_its_row():
    documented = rows("operators/configure.md")
    sections = {
        "nodeLifeCycle": "_LIFE_CYCLE",
        "leaderElection": "_ELECTION",
        "recorder": "_RECORDER",
    }
    fields = set(config._TOP) - set(sections)
    for section, table in sections.items():
        fields |= {f"{section}.{name}" for name in getattr(config, table)}
    assert fields - documented == set()
    assert set(config._PROFILE) - documented == set()


def test_defaults_of_the_configuration_are_those_of_the_code():
    text = page("operators/configure.md")
    shipped = config.Config.default()
    election, policy = shipped.leader_election, shipped.policy
    expected = {
        "attemptTimeoutSeconds": policy.attempt_timeout_s,
        "backoffSeconds": policy.backoff_s,
        "backoffMaxSeconds": policy.backoff_s_max,
        "holdSlotSeconds": policy.hold_s,
        "holdSlotMaxSeconds": policy.hold_s_max,
        "heldSlotsMaxPerGang": policy.held_slots_per_gang_max,
        "heldSlotsMaxPerNamespace": policy.held_slots_per_namespace_max,
        "bindConcurrency": shipped.bind_concurrency,
        "leaderElection.leaseDurationSeconds": election.lease_duration_s,
        "leaderElection.renewDeadlineSeconds": election.renew_deadline_s,
        "leaderElection.retryPeriodSeconds": election.retry_period_s,
        "recorder.maxBytes": shipped.recorder.bytes_max,
    }
    wrong = [n for n, value in expected.items() if f"| `{n}` | {value:.0f} |" not in text]
    assert wrong == []


def test_every_reason_has_its_section():
    assert {str(reason) for reason in Reason} - headings("users/why-it-waits.md") == set()


def test_reasons_that_nodes_would_help_are_marked():
    for reason in Reason:
        section = page("users/why-it-waits.md").split(f"\n### {reason}\n")[1].split("\n#")[0]
        assert ("◆" in section) == reason.nodes_would_help, reason


def test_every_command_and_option_has_its_row():
    text = page("users/cli.md")
    commands = typer.main.get_command(app).commands
    assert {name for name in commands if f"| `quorate {name}" not in text} == set()
    options = {
        option
        for command in commands.values()
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and option != "--help"
    }
    assert {one for one in options if f"`{one}`" not in text} == set()


def test_every_warning_of_the_log_is_in_the_runbook():
    said = set()
    for path in tracked(*(f"src/quorate/{one}/*.py" for one in ("shell", "cli", "cks"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("warning", "error", "exception", "critical")
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and "log" in ast.unparse(node.func.value)
            ):
                said.add(node.args[0].value)
    assert len(said) > 20
    assert {one for one in said if "%s" not in one} - rows("operators/runbook.md") == set()


def test_what_is_applied_in_somebodys_cluster_needs_no_clone():
    """``kubectl apply -f examples/`` was what to type after an installation by Helm or pip."""
    pages = [*DOCS.glob("users/*.md"), *DOCS.glob("operators/*.md")]
    assert [path.name for path in pages if "apply -f examples/" in TEXTS[path]] == []
    assert "install-0" in [one.id for one in MANIFESTS]


def test_every_alert_asks_for_metrics_that_there_are_and_is_in_the_runbook():
    [block] = re.findall(r"(?ms)^```yaml\n(.*?)^```$", page("operators/alerts.md"))
    alerts = [rule for group in yaml.safe_load(block)["groups"] for rule in group["rules"]]
    metrics = rows("operators/metrics.md")  # compared with the code in unit/shell/report
    for alert in alerts:
        named = {one.removesuffix("_bucket") for one in re.findall(r"quorate_\w+", alert["expr"])}
        assert named
        assert named <= metrics, alert["alert"]
        assert alert["alert"] in headings("operators/runbook.md")


def test_every_panel_of_the_dashboard_asks_for_metrics_that_there_are():
    board = json.loads((DOCS / "operators" / "grafana.json").read_text())
    metrics = rows("operators/metrics.md")
    for panel in board["panels"]:
        for target in panel["targets"]:
            named = re.findall(r"quorate_\w+", target["expr"])
            assert named
            assert {one.removesuffix("_bucket") for one in named} <= metrics, panel["title"]


def test_clients_are_tested_at_the_versions_that_the_docs_name():
    lines = page("users/frameworks.md").splitlines()
    (named,) = [line for line in lines if line.startswith("| version |")]
    assert set(re.findall(r"v[\d.]+\d", named)) == set(OPERATORS.values())


def test_lines_of_quorate_why_are_labelled_in_the_docs_as_in_the_terminal():
    prints = (ROOT / "src/quorate/cli/show/why_text.py").read_text()
    shown = [
        block
        for text in TEXTS.values()
        for block in FENCE.findall(text)
        if "$ quorate why" in block
    ]
    labels = {label for block in shown for label in re.findall(r"(?m)^  (\w+) {2,}", block)}
    assert len(labels) >= 2
    assert [label for label in labels if f'f"  {label} ' not in prints] == []


MANIFESTS = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in sorted([*DOCS.glob("users/*.md"), DOCS / "operators" / "install.md"])
    for number, block in enumerate(
        re.findall(
            r"(?ms)^(?:```yaml[^\n]*|kubectl apply -f - <<'END')\n(.*?)^(?:```|END)$", TEXTS[path]
        )
    )
    if "kind:" in block
]


@pytest.mark.parametrize("block", MANIFESTS)
def test_manifests_of_the_docs_pass_lint(block):
    report = check([Text("page", block)], Options())
    assert report.unreadable == ()
    assert [one.message for one in report.findings if one.severity is Severity.ERROR] == []
