"""Planner and verifier read the same integers, by code of their own, whatever somebody wrote."""

import random
import re

from quorate.core.check.verify_nodes import _int64
from quorate.core.model.selectors import parse_int64
from tests.property.seeds import SEED

SIGNS = "0123456789+-_ .eEx\n\u0663\u00b2\uff11"


def test_planner_and_verifier_agree_with_a_plain_rule_on_any_text():
    chance = random.Random(SEED)
    numbers = 0
    for _ in range(20_000):
        signs = chance.choice((SIGNS, SIGNS[:10], SIGNS[:12]))
        text = "".join(chance.choices(signs, k=chance.randrange(22)))
        is_number = re.fullmatch("[-+]?[0-9]+", text) and -(2**63) <= int(text) < 2**63
        expected = int(text) if is_number else None
        assert parse_int64(text) == expected, text
        assert _int64(text) == expected, text
        numbers += expected is not None
    assert numbers > 1000
