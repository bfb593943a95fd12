"""Where kube-scheduler has a sentence of its own for bad input, it comes first, word for word."""

import pytest

from tests.unit.bad import device_tables, tables
from tests.unit.bad.driving import drive, node

TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
CASES = {
    **tables.IMPOSSIBLE_PODS,
    **{f"claim: {name}": case for name, case in tables.CLAIMS.items()},
    **{f"devices: {name}": case for name, case in device_tables.DEVICES.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_kube_schedulers_sentence_comes_first(oracle, name):
    objects = CASES[name].objects()
    _, sentence = drive(*objects).said("bad")
    [pending] = [one for one in objects if one["kind"] == "Pod"]
    answer = oracle.ask(
        {
            "nodes": [node("node-a"), node("node-b")],
            "objects": [TEAM, *(one for one in objects if one["kind"] not in ("Pod", "Node"))],
            "pod": pending,
        }
    )
    assert sentence.startswith(answer["message"]), answer["message"]
