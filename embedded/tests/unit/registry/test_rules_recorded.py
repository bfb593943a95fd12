"""The rules make of each object what a real API server made of it (rules_recorded)."""

import json
import re

import pytest

from embedded.tests.unit.registry.rules_world import CASES, answer_of, cases_of, recorded

FILES = sorted(path.stem for path in CASES.glob("*.yaml"))
ALL = [(name, case) for name in FILES for case in cases_of(name)]
# Go writes these values in the form of its own structures, with names of its own, or of null.
_STRUCTURE = re.compile(r"^((?:Invalid|Duplicate|Unsupported) value): (?:[\[{].*[\]}]|null)(?=:|$)")
_DIFFERENCE = re.compile(r"\n@@.*", re.DOTALL)


def comparable(answer: dict, case: dict) -> dict:
    """Leave the order and the repetitions of causes, and Go's structures, out of an answer."""
    base = case["object"]["metadata"].get("generateName")
    if base and "object" not in answer:
        generated = re.compile(re.escape(base) + r"\w{5}")
        answer = json.loads(generated.sub(f"{base}?????", json.dumps(answer)))
    causes = answer.get("details", {}).get("causes")
    if causes is None:
        return answer
    found = {
        (one["reason"], one["field"], _DIFFERENCE.sub("", _STRUCTURE.sub(r"\1", one["message"])))
        for one in causes
    }
    rest = {key: value for key, value in answer["details"].items() if key != "causes"}
    return {
        "code": answer["code"],
        "reason": answer["reason"],
        "details": rest,
        "causes": sorted(found),
    }


@pytest.mark.parametrize(("file", "case"), ALL, ids=[f"{name}-{c['name']}" for name, c in ALL])
def test_the_rules_answer_as_a_real_server_did(file: str, case: dict):
    assert comparable(answer_of(case), case) == comparable(recorded(file)[case["name"]], case)


def test_every_answer_has_its_case():
    for name in FILES:
        assert set(recorded(name)) == {case["name"] for case in cases_of(name)}
