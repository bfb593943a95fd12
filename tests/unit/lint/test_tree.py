"""Goal: any text becomes the values that kubectl would send, with the line of each field.

Expected values of scalars are those of kubectl 1.36 (create --dry-run=client -o json).
"""

import json

import pytest

from quorate.lint.tree import SIZE_MAX, TextError, documents
from tests.unit.lint.world import lint_text


def value(text):
    (document,) = documents(text)
    return document.value


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("text", "text"),
        ("'5'", "5"),
        ('"yes"', "yes"),
        ("5", 5),
        ("-5", -5),
        ("+1", 1),
        ("0x1F", 31),
        ("0777", 511),
        ("0o17", 15),
        ("0b11", 3),
        ("1_000", 1000),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5),
        ("1.0", 1),
        ("1e3", 1000),
        ("yes", True),
        ("y", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("2001-01-01", "2001-01-01"),
        ("1:30", "1:30"),
        ("!!str 5", "5"),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)
def test_scalars(written, meant):
    found = value(f"a: {written}")["a"]
    assert (found, type(found)) == (meant, type(meant))


def test_aliases_and_merge_keys():
    text = "base: &b {x: 1, y: [2]}\nother: *b\nmerged:\n  <<: *b\n  x: 3\n"
    assert value(text) == {
        "base": {"x": 1, "y": [2]},
        "other": {"x": 1, "y": [2]},
        "merged": {"x": 3, "y": [2]},
    }


TEXT = """\
# first
a:
  b:
  - c: 1
    d: 2
---
---
x: {y: 1}
"""


def test_each_field_knows_its_line():
    first, second = documents(TEXT)
    assert (first.number, second.number) == (0, 2)
    assert first.line_of(("a",)) == 2
    assert first.line_of(("a", "b", 0, "d")) == 5
    assert first.line_of(("a", "b", 0, "nothing", "here")) == 4, "the nearest around it"
    assert second.line_of(("x", "y")) == 8


def test_json_of_several_objects_with_tabs_has_lines_too():
    first, second = documents('{\n\t"a": {"b": "\\ud83d\\ude00"}\n}\n\n{"c":\n [1, 2]}')
    assert first.value == {"a": {"b": "😀"}}
    assert second.value == {"c": [1, 2]}
    assert second.line_of(("c", 1)) == 6


def test_what_begins_with_a_brace_may_still_be_yaml():
    assert value("{a: 1}") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("a: 1\n\tb: 2", "tab", 2),
        ("a: b: c", "mapping values are not allowed", 1),
        ("a: [1", "", 2),
        ("a: *x", "alias *x is not defined", 1),
        ("a: &x [*x]", "alias *x refers to itself", 1),
        ("? [a]\n: b", "a key is not a plain text", 1),
        ("a: {{ .Values.x }}", "a key is not a plain text", 1),
        ("a\x00b", "control characters", 1),
        ("[" * 100_000, "", 0),
        ("- " * 5000 + "x", "levels deep", 1),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "", 0),
        ("a: \ud800", "surrogates", 1),
    ],
)
def test_what_is_no_text_of_ours_is_one_line_that_says_where(text, words, line):
    with pytest.raises(TextError) as caught:
        documents(text)
    assert words in caught.value.message
    assert "\n" not in caught.value.message
    assert line in (0, caught.value.line)


def test_a_small_text_that_stands_for_billions_of_values_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(TextError, match=f"more than {SIZE_MAX:,} values"):
        documents("\n".join(lines))


def test_a_key_that_is_written_twice_is_a_finding_in_yaml_and_in_json():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n"
    (found,) = lint_text(text).findings
    assert (found.rule, found.line, found.path) == ("duplicate-key", 5, "metadata.name")
    assert "in lines 4 and 5" in found.message
    as_json = '{"apiVersion": "v1", "kind": "ConfigMap",\n"metadata": {"name": "a", "name": "b"}}'
    (found,) = lint_text(as_json).findings
    assert (found.rule, found.line) == ("duplicate-key", 2)
    once = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert lint_text(once).findings == ()
