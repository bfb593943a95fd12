"""The one door of the command line: what others wrote gives neither terminal nor CI a command."""

import ast
import json
from pathlib import Path

import pytest
import yaml
from rich.text import Text

from quorate import cli
from quorate.cli.show import output

ROOT = Path(cli.__file__).parent
EVIL = "a\x1b[2Jb\nc\r\u202ed\x9b\x7fe"


def test_only_output_prints():
    """A command that printed by itself would have to remember to make text plain."""
    doors = {"print", "echo", "secho", "print_exc", "excepthook"}
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if path.name in ("output.py", "progress.py") or not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            text = ast.unparse(node)
            if name in doors or text.startswith(("sys.stdout.write", "sys.stderr.write")):
                found.append(f"{path.name}: {text[:60]}")
    assert found == ["manifests.py: sys.stdout.write(text if output == 'yaml' else _as_json(text"]


def test_a_line_stays_one_line(capsys):
    output.say(EVIL)
    assert output.error(EVIL) == 2
    out, err = capsys.readouterr()
    assert out == "a\\x1b[2Jb\\nc\\r\\u202ed\\x9b\\x7fe\n"
    assert err == "Error: a\\x1b[2Jb c \\u202ed\\x9b\\x7fe\n"


def test_a_line_has_a_bound(capsys):
    output.say("x" * 1_000_000)
    assert len(capsys.readouterr().out) == output.LINE_CHARS_MAX + 1


@pytest.mark.parametrize(
    "command",
    [
        "::error file=a::b",
        "x ::set-output name=path::b",
        "::add-mask::b",
        "##[error]b",
        "##vso[task.setvariable variable=PATH]b",
        "##teamcity[buildStop]",
    ],
)
def test_a_command_of_a_ci_service_is_none_any_more(command):
    shown = output.shown(command)
    assert "\\x" in shown
    assert "::" not in shown.partition(" file")[0].partition(" name")[0].partition("mask")[0]
    assert "##" not in shown


@pytest.mark.parametrize("text", ["fe80::1 is taken", "std::vector", "# a # b", "spec::x"])
def test_what_is_no_command_stays(text):
    assert output.shown(text) == text


def test_styled_lines_keep_their_styles_and_lose_what_hides(capsys):
    line = Text("  state: ").append(EVIL, style="red")
    output.print_lines([line])
    output.Table(("A", "WHY")).show([[Text(EVIL), Text("x " + EVIL)]])
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    assert out.count("\n") == 3
    assert "\\u202ed" in out


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_data_is_escaped_and_loses_nothing(form, read, capsys):
    value = {"name": EVIL, "tag": "\U000e0041x", "plain": "größe"}
    output.print_data(value, form)
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable()
    assert read(out) == value


def test_no_text_makes_a_line_of_its_own_in_yaml(capsys):
    output.print_data({"a": "x\nFORGED: all is well", "b": "größe\n\n- FORGED"}, "yaml")
    assert not [line for line in capsys.readouterr().out.split("\n") if "FORGED" in line[:12]]


def test_a_defect_shows_where_it_was_met_and_nothing_else(capsys):
    try:
        raise ValueError(EVIL)
    except ValueError as error:
        output.defect(error)
    err = capsys.readouterr().err
    assert "test_output.py" in err
    assert err.replace("\n", "").isprintable()
