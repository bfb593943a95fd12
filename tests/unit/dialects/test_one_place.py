"""A dialect is named in its own file and in the table, and nowhere else in what runs."""

import ast

from quorate.dialects import DIALECTS
from tools import house

SCHEDULER_NAMES = {
    ("quorate.core.model.policy", "coscheduler"),
    ("quorate.lint.manifests", "volcano"),
    ("quorate.lint.pod_sources", "volcano"),
    ("quorate.lint.workloads.promise", "volcano"),
    ("quorate.shell.report.volcano_queues", "volcano"),
}
"""Where the name of a scheduler is meant, which Volcano and CoreWeave gave the same word."""
NAMES = {dialect.name for dialect in DIALECTS}
KEYS = {key.key for dialect in DIALECTS for key in dialect.keys}
OTHERS = {
    name: ast.parse(path.read_text())
    for name, path in house.modules("quorate").items()
    if not name.startswith("quorate.dialects")
}
"""The simulation writes manifests as users do, so it names what it writes."""


def test_no_module_outside_names_a_dialect_or_its_keys():
    said = {
        (module, node.value)
        for module, tree in OTHERS.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in NAMES | KEYS
    }
    assert said == SCHEDULER_NAMES


def test_no_module_outside_imports_a_dialect():
    own = {f"quorate.dialects.{name}" for name in ("coscheduler", "sigs", "native", "volcano")}
    own |= {"quorate.dialects.x_k8s"}
    imported = {
        (module, name)
        for module, tree in OTHERS.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if name in own
    }
    assert imported == set()
