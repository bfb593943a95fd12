"""Make the chart's templates: the manifests' own text, with Helm's where values change it.

In: ``quorate.cli.commands.manifests`` and ``knobs``. Out: ``made``, texts by file name. Comments
stay. Nothing here knows what an object means.
"""

from pathlib import Path
from string import Template
from typing import Any, cast

import yaml

from quorate.cks.components import COMPONENTS, MUTATIONS
from quorate.cli.commands.manifests import NETWORK_PART, PARTS, template
from tools.chart.knobs import KNOBS, ONLY_IF, PARTS_ONLY_IF, PLACEHOLDERS, SCHEDULER, Knob

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "chart" / "quorate"
ALERTS = ROOT / "docs" / "operators" / "alerts.md"
HEADER = "{{- /* Made by tools/chart from src/quorate/deploy: change it there. */ -}}\n"
_PARTS = (*PARTS, NETWORK_PART, *COMPONENTS, MUTATIONS)
_CONFIGURATION = ("ConfigMap", ("data", "config.yaml"))


class PlaceError(LookupError):
    """A knob names a place that the manifests do not have."""


def made() -> dict[str, str]:
    """Return the files that are made, by their path in the chart. Raises PlaceError."""
    files: dict[str, str] = {}
    for part in _PARTS:
        documents = template(part).split("---\n")
        assert "{{" not in template(part), f"{part}: Helm would take it for its own"
        component = part if part in COMPONENTS else SCHEDULER
        text = "---\n".join(_filled(_turned(document, component)) for document in documents)
        if part in PARTS_ONLY_IF:
            text = f"{{{{- if {PARTS_ONLY_IF[part]} }}}}\n{text}{{{{- end }}}}\n"
        files[f"templates/{part}.yaml"] = HEADER + text
        for configuration in () if component else _configurations(documents):
            files["files/config.yaml"] = configuration
    files["files/rules.yaml"] = _rules()
    return files


def _rules() -> str:
    """Return the alert rules: the first YAML of the page that explains them."""
    page = ALERTS.read_text(encoding="utf-8")
    return page.partition("```yaml\n")[2].partition("```")[0]


def stale() -> list[str]:
    """Return which files of the chart are not what would be made now."""
    here = {name: CHART / name for name in made()}
    return [
        name
        for name, text in made().items()
        if not here[name].is_file() or here[name].read_text(encoding="utf-8") != text
    ]


def default_of(knob: Knob) -> object:
    """Return what the manifests say at a knob's place. Raises PlaceError."""
    for part in _PARTS:
        for document in template(part).split("---\n"):
            if _kind(document) == knob.kind:
                _key_line(document, knob.path)
                found: Any = yaml.safe_load(_neutral(document))
                for key in knob.path:
                    found = found[key]
                return cast(object, found)
    raise PlaceError(f"there is no {knob.kind}")


def _configurations(documents: list[str]) -> list[str]:
    kind, path = _CONFIGURATION
    found = []
    for document in documents:
        if _kind(document) == kind:
            lines = document.splitlines(keepends=True)
            first, last = _block(lines, _key_line(document, path))
            indent = _indent(lines[first])
            text = "".join(line[indent:] for line in lines[first:last])
            # What the placeholders stand for is indented as in the ConfigMap.
            found.append(_filled(text, indent))
    return found


def _turned(document: str, component: str) -> str:
    """Put Helm's text into one document, wherever a knob wants it, from below to above."""
    kind = _kind(document)
    lines = document.splitlines(keepends=True)
    order = {"block": 0, "scalar": 0, "after": 1}
    knobs = (one for one in KNOBS if one.kind == kind and component in one.components)
    placed = [(_key_line(document, knob.path), knob) for knob in knobs]
    # From the last line to the first, so that lines keep their numbers.
    for at, knob in sorted(placed, key=lambda one: (-one[0], order[one[1].how])):
        _put(lines, at, knob)
    text = "".join(lines)
    return f"{{{{- if {ONLY_IF[kind]} }}}}\n{text}{{{{- end }}}}\n" if kind in ONLY_IF else text


def _put(lines: list[str], at: int, knob: Knob) -> None:
    first, last = _block(lines, at)
    indent = _column(lines[at])
    if knob.how == "after":
        lines[last:last] = _indented(knob.text, indent)
    elif knob.how == "block":
        lines[first:last] = _indented(f"  {{{{- {knob.text} | nindent INDENT }}}}", indent)
    else:
        key = lines[at].partition(":")[0]
        head, *rest = _indented(knob.text, indent)
        lines[at:last] = [f"{key}: {head.lstrip()}", *rest]


def _indented(text: str, indent: int) -> list[str]:
    deeper = text.replace("INDENT", str(indent + 2))
    return [f"{' ' * indent}{line}\n" for line in deeper.splitlines()]


def _filled(text: str, less: int = 0) -> str:
    indent = "\n" + " " * less
    return Template(text).substitute(
        {name: meant.replace(indent, "\n") for name, meant in PLACEHOLDERS.items()}
    )


def _neutral(document: str) -> str:
    """Return the document as YAML that can be read, with each line where it was."""
    scalars = {"namespace", "image", "replicas", "critical_pods"}
    return Template(document).substitute(
        {name: "1" if name in scalars else "" for name in PLACEHOLDERS}
    )


def _kind(document: str) -> str:
    return str(yaml.safe_load(_neutral(document))["kind"])


def _key_line(document: str, path: tuple[str | int, ...]) -> int:
    """Return the number of the line on which the key at the end of a path stands, from 0."""
    node: Any = yaml.compose(_neutral(document), yaml.SafeLoader)
    line = 0
    for key in path:
        if isinstance(key, int):
            node = node.value[key]
            continue
        for name, value in node.value:
            if name.value == key:
                node, line = value, name.start_mark.line
                break
        else:
            raise PlaceError(f"{'.'.join(map(str, path))}: there is no {key}")
    return line


def _block(lines: list[str], at: int) -> tuple[int, int]:
    """Return the first line below a key, and the first one that is not below it."""
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > _column(lines[at])):
        end += 1
    while end > at + 1 and not lines[end - 1].strip():
        end -= 1
    return at + 1, end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _column(line: str) -> int:
    """Return the column of a key, also behind the dash of a list."""
    return len(line) - len(line.lstrip(" -"))
