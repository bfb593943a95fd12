"""CEL selectors that nobody would write: they are answered or broken, and never expensive."""

import contextlib
import logging
import random

import pytest

from quorate.core.cluster.devices.views import SharedTraits
from quorate.core.model import policy
from quorate.core.room.devices.cel.expressions import Expressions
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.cel.text import CelError, rewrite, tokens_of
from tests.property.seeds import SEED, times
from tests.unit.core.devices.traits import TRAITS, A, C

WORDS = f"""( ) [ ] {{ }} , . : ? ! - + * / % == != < <= && || in .? [? true false null 0 1 -1
9223372036854775807 1u 0x10 1.5 1e300 "" "a" 'b' r"\\w{{5}}" b"x" "[a" ''' "1.2.3" "1Gi" device
device.driver device.attributes device.capacity {A} {C} .memory .kind .v .uuid x y z cel.bind(x,1,
cel.bind(a,device, [1,2].all(x, [1,2,3].map(y, .exists(x, .filter(y, .map(x, .exists_one(x, has(
size( .size() .matches("a") .matches( .contains( .split(",") .join( .replace( .substring(1)
.lowerAscii() .sort() .distinct() .flatten() lists.range(3) lists.range( quantity("1Gi") quantity(
semver("1.2.3") semver( .compareTo( .isGreaterThan( .add( .asInteger() .sign() .major() .orValue(1)
optional.of( optional.none() duration("1s") timestamp("2020-01-01T00:00:00Z") int( uint( double(
string( bytes( bool( dyn( type( math.greatest( min( sum( sets.contains( strings.quote( .charAt(0)
.indexOf( base64.encode( [1] [0] [5] {{"a":1}} Foo{{a:1}} .getFullYear() // \\""".split()
STEPS_MAX = 300
"""An expression of the longest text takes about 4 ms."""
LEAVES = ("1", '"a"', "true", "x", "y", "device", "[1, 2]", '["a", "b"]', '{"a": 1}', "1.5", "null")
LEAVES += (f"{A}.kind", f"{A}.cores", f"{A}.v", f"{C}.memory", "device.driver", "device.attributes")
LEAVES += ('quantity("1Gi")', 'semver("1.2.3")', "-1", "1u")
OPERATORS = ("+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||", "in", "? x :")
METHODS = (
    "size",
    "sort",
    "distinct",
    "reverse",
    "first",
    "last",
    "lowerAscii",
    "sign",
    "asInteger",
)
METHODS += ("major", "value", "hasValue", "flatten", "min", "sum", "trim", "contains", "join")
METHODS += ("split", "compareTo", "isLessThan", "sub", "substring", "slice", "orValue", "replace")
MACROS = ("all", "exists", "map", "filter", "exists_one")


def words(chance: random.Random) -> str:
    """Words in any order, brackets closed now and then."""
    parts, open_brackets = [], []
    for _ in range(chance.choice([1, 2, 3, 5, 8, 13, 21, 34])):
        parts.append(chance.choice(WORDS))
        for sign in parts[-1]:
            if sign in "([{":
                open_brackets.append(")]}"["([{".index(sign)])
            elif open_brackets and open_brackets[-1] == sign:
                open_brackets.pop()
        if open_brackets and chance.random() < 0.3:
            parts.append(open_brackets.pop())
    return " ".join([*parts, *reversed(open_brackets)])


def grammatical(chance: random.Random, depth: int) -> str:
    """An expression that can be parsed, of any types."""
    if depth <= 0 or chance.random() < 0.1:
        return chance.choice(LEAVES)
    one, other = (grammatical(chance, depth - 1) for _ in range(2))
    return chance.choice(
        [
            f"{one} {chance.choice(OPERATORS)} {other}",
            f"({one})[{other}]",
            f"[{one}, {other}]",
            f"{{{one}: {other}}}",
            f"({one}).{chance.choice(MACROS)}({chance.choice('xy')}, {other})",
            f"cel.bind({chance.choice('xy')}, {one}, {other})",
            f"({one}).{chance.choice(METHODS)}({other if chance.random() < 0.5 else ''})",
            f"!{one}",
        ]
    )


@pytest.fixture(autouse=True)
def _quiet():
    """The library logs each function that raises."""
    logging.getLogger("cel").disabled = True
    yield
    logging.getLogger("cel").disabled = False


def test_any_text_is_answered_or_broken():
    expressions, answers = Expressions(), {True: 0, False: 0, Broken: 0}
    for number in range(times(12_000)):
        chance = random.Random(f"{SEED}/{number}")
        text = words(chance) if number % 2 else grammatical(chance, chance.randint(1, 4))
        text = f"({text}) == ({chance.choice(LEAVES)})" if number % 8 == 0 else text
        traits = SharedTraits(TRAITS)
        answer = expressions.matches(text, traits)
        assert isinstance(answer, bool | Broken), (SEED, text)
        answers[Broken if isinstance(answer, Broken) else answer] += 1
        steps = expressions._known.get(text).program.steps(TRAITS)
        assert steps <= STEPS_MAX, (SEED, text)
    assert min(answers.values()) > 0, (SEED, answers)


@pytest.mark.parametrize(
    "alphabet", ["'\\", "'\"\\ ", "r'\\\n", "1.eExX0", "/*\n'", ".?[a(", "({[]})"]
)
def test_any_signs_are_read_or_refused(alphabet):
    for number in range(50):
        chance = random.Random(f"{SEED}/{alphabet}/{number}")
        text = "".join(chance.choices(alphabet, k=chance.choice([10, 100, policy.CEL_TEXT_MAX])))
        for read in (tokens_of, rewrite):
            with contextlib.suppress(CelError):
                read(text)
