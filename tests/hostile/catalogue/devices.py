"""Claims of devices: expressions that crash, last or grow, and claims without end."""

from tests.hostile.catalogue.rows import STARTS, Catalogue
from tests.hostile.harness.attacker import Attacker
from tests.hostile.harness.devices import DRIVER, claim, using
from tools.objects import pod

DEVICES = Catalogue()
_THIRTY = ",".join(str(i) for i in range(30))
_UUID = f"device.attributes['{DRIVER}'].uuid"

CRASHING = {
    "index": "[1][5] == 1",
    "negative-index": "[1][-1] == 1",
    "huge-index": "[1][9223372036854775807] == 1",
    "unsigned-index": "[1][5u] == 1",
    "division": "1 / 0 == 1",
    "modulo": "1 % 0 == 0",
    "overflow": "9223372036854775807 + 1 > 0",
    "least": "-9223372036854775808 / -1 > 0",
    "substring": "'abc'.substring(1, 99) == 'x'",
    "char-at": "'abc'.charAt(5) == 'a'",
    "index-of": "'abc'.indexOf('b', -1) == 1",
    "split": "'a,b'.split(',', -2147483648)[0] == 'a'",
    "replace": "'a'.replace('', 'b', 9223372036854775807) == 'x'",
    "bad-regex": "'a'.matches('(')",
    "huge-regex": "'a'.matches('(((a{1000}){1000}){1000})')",
    "slow-regex": "('a' + 'a').matches('^(([a-z])+.)+[A-Z]([a-z])+$')",
    "missing-key": "{'a': 1}['b'] == 1",
    "bytes": "string(b'\\xff') == 'x'",
    "nan": "double('nan') == 1.0",
    "int-text": "int('x') == 1",
    "unsigned": "uint(-1) == 1u",
    "size-of-null": "size(null) == 0",
    "duration": "duration('9223372036854775807s') > duration('1s')",
    "time": "timestamp('9999-12-31T23:59:59Z') + duration('999h') != timestamp(0)",
    "zone": "timestamp('2020-01-01T00:00:00Z').getFullYear('X/Y') == 1",
    "mixed": "semver('1.2.3').compareTo(quantity('1')) == 0",
    "huge-quantity": "quantity('9e999').asInteger() > 0",
    "large-quantity": "quantity('1e999').isGreaterThan(quantity('1'))",
    "map-division": "[1, 2].map(x, x / 0)[0] == 1",
    "no-attribute": "device.attributes['no'].such == 1",
    "escape": "'\\x1b[2J' == ''",
}
LASTING = {
    "nested-3": f"[{_THIRTY}].all(a, [{_THIRTY}].all(b, [{_THIRTY}].all(c, {_UUID} != 'x')))",
    "nested-2": f"[{_THIRTY}].all(a, [{_THIRTY}].all(b, a + b >= 0 && {_UUID} != 'x'))",
    "nested-4": "".join(f"[{_THIRTY}].all({name}, " for name in "abcd") + "a + b + c + d >= 0))))",
    "growing": "".join(f"cel.bind(s{i + 1}, s{i} + s{i}, " for i in range(1, 28)).join(
        ("cel.bind(s1, 'aaaaaaaaaaaaaaaa', ", "s28.size() > 0" + ")" * 28)
    ),
    "doubling": "cel.bind(x, [1, 2, 3], cel.bind(y, x + x, cel.bind(z, y + y, z.all(q, q > 0))))",
    "not": "!" * 9_000 + "true",
    "minus": "-" * 9_000 + "1 == 1",
    "and": "true && " * 1_200 + "true",
    "brackets": "(" * 90 + "true" + ")" * 90,
    "select": "device" + ".a" * 4_900,
    "indexes": "[1]" + "[0]" * 3_300 + " == 1",
    "ternaries": "true ? " * 700 + "true" + " : false" * 700,
    "plus": "1 + " * 2_400 + "1 > 0",
    "in": "1 in " * 1_900 + "[1]",
    "method": "'a'" + ".lowerAscii()" * 750 + " == 'a'",
    "list": "[" + "1," * 5_000 + "1].size() > 0",
    "map": "{'a':" * 90 + "1" + "}" * 90 + " == {}",
    "optional": "device" + ".?a" * 3_300 + ".hasValue()",
    "text": "'" + "\u00e9" * 4_900 + "'.size() > 0",
    "number": "9" * 9_000 + " > 0",
    "names": "a" * 10_000,
}


def _ask(a: Attacker, expressions: dict[str, str]) -> None:
    for name, expression in expressions.items():
        a.create(claim(name, expression))
        a.create(pod(f"p-{name}", requests={"cpu": "1m"}, **using(name)))


@DEVICES.attack("index out of bounds")
def an_index_beyond_a_list(a: Attacker) -> None:
    _ask(a, {"index": CRASHING["index"]})


@DEVICES.attack("claim")
def expressions_that_fail(a: Attacker) -> None:
    _ask(a, CRASHING)


@DEVICES.attack(refused=422)
def expressions_that_last_or_are_deep(a: Attacker) -> None:
    _ask(a, LASTING)


@DEVICES.attack("CEL")
def an_expression_of_its_own_for_each_of_many_claims(a: Attacker) -> None:
    for number in range(60):
        loops = f"[{_THIRTY}].all(a, [{_THIRTY}].all(b, a + b != {number} && {_UUID} != 'x'))"
        a.create(claim(f"c{number}", loops))
        a.create(pod(f"p{number}", requests={"cpu": "1m"}, **using(f"c{number}")))


@DEVICES.attack(STARTS)
def honest_looks_at_unique_attributes(a: Attacker) -> None:
    for number in range(40):
        a.create(claim(f"c{number}", f"{_UUID} == 'node-{number % 8}-{number % 7}'"))
        a.create(pod(f"p{number}", requests={"cpu": "1m"}, **using(f"c{number}")))


@DEVICES.attack("100 claims are too many")
def more_claims_than_any_pod_needs(a: Attacker) -> None:
    names = [f"c{i}" for i in range(100)]
    a.create(*(claim(name) for name in names))
    a.create(pod("bomb", **using(*names)))


@DEVICES.attack("claim")
def claims_of_all_devices_that_there_are(a: Attacker) -> None:
    """Each asks for 32 devices of eight that a node has."""
    names = [f"c{i}" for i in range(12)]
    a.create(*(claim(name, count=32) for name in names))
    a.create(pod("bomb", **using(*names)))
    a.create(claim("all", allocationMode="All"), pod("all", **using("all")))


@DEVICES.attack()
def requests_selectors_and_constraints_to_the_limit(a: Attacker) -> None:
    one = claim("large")
    exactly = claim("x", *(f"{_UUID} != 'a{i}'" for i in range(32)))
    first = exactly["spec"]["devices"]["requests"][0]["exactly"]
    requests = [{"name": f"r{i}", "exactly": first} for i in range(32)]
    attribute = f"{DRIVER}/uuid"
    constraints = [{"requests": [], "matchAttribute": attribute} for _ in range(32)]
    one["spec"]["devices"] = {"requests": requests, "constraints": constraints}
    a.create(one, pod("large", **using("large")))
    subs = [
        {"name": f"s{i}", "deviceClassName": "gpus", "selectors": first["selectors"]}
        for i in range(8)
    ]
    first_of = claim("first-of")
    first_of["spec"]["devices"]["requests"] = [
        {"name": f"r{i}", "firstAvailable": subs} for i in range(32)
    ]
    a.create(first_of, pod("first-of", **using("first-of")))


@DEVICES.attack("claim")
def claims_of_no_class_and_of_others(a: Attacker) -> None:
    one = claim("no-class")
    one["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "there-is-none"
    a.create(one, pod("p0", **using("no-class")))
    a.create(pod("p1", **using("there-is-none")))
    spec = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "there-is-none"}]}
    a.create(pod("p2", **spec))
    both = claim("kept")
    both["metadata"]["finalizers"] = ["example.com/never"]
    a.create(both)
    a.delete(both)
    a.create(pod("p3", **using("kept")))


@DEVICES.attack()
def statuses_of_claims_written_by_the_user(a: Attacker) -> None:
    """An allocation of devices that are not there, and of all that are."""
    results = [
        {"request": "r", "driver": DRIVER, "pool": f"node-{i % 8}", "device": f"gpu-{i // 8}"}
        for i in range(32)
    ]
    results[0] |= {"pool": "no-such-pool", "device": "no-such-device"}
    for name, shown in (("odd", results), ("none", [])):
        one = claim(name)
        a.create(one)
        status = {"allocation": {"devices": {"results": shown}}}
        a.patch(one, {"status": status}, "/status")
        a.create(pod(f"p-{name}", requests={"cpu": "1m"}, **using(name)))


@DEVICES.attack()
def templates_and_shared_claims(a: Attacker) -> None:
    spec = claim("x")["spec"]
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    a.create(template | {"metadata": {"name": "t"}, "spec": {"spec": spec}})
    use = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}
    a.create_many(pod(f"t{i}", requests={"cpu": "1m"}, **use) for i in range(100))
    a.create(claim("shared"))
    a.create_many(pod(f"s{i}", requests={"cpu": "1m"}, **using("shared")) for i in range(300))
